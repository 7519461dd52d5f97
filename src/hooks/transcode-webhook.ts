/** Asks a control server which output profiles to use for a stream (`TranscodeWebhook`). */
import { ConfigError, type OutputProfilesConfig, readOutputProfiles, type TranscodeWebhookConfig } from '../config/index.ts';
import { ineffectiveInProfile, sentenceOf } from '../config/ineffective.ts';
import type { Advice, AdvisedStream, ProfileAdviser } from '../core/profile-advice.ts';
import { asNumbers } from '../monitoring/real.ts';
import { tracksInformation } from '../monitoring/stream-info.ts';
import { ControlServerClient, ControlServerFault } from '../util/control-server-client.ts';
import type { Logger } from '../util/logger.ts';
import { formatTimestamp } from '../util/timestamp.ts';

/** Outcomes that the configuration may tolerate, with the member for each. */
const LETS_PASS = {
  connection: 'useLocalProfilesOnConnectionFailure',
  disallow: 'useLocalProfilesOnServerDisallow',
  answer: 'useLocalProfilesOnErrorResponse',
} as const;

/** Asks for each stream of one application. It fails closed: local profiles replace the answer only if the configuration says so. */
export class TranscodeWebhook implements ProfileAdviser {
  readonly #config: TranscodeWebhookConfig;
  readonly #client: ControlServerClient;
  readonly #logger: Logger;

  constructor(config: TranscodeWebhookConfig, logger: Logger) {
    this.#config = config;
    this.#client = new ControlServerClient({ url: config.controlServerUrl, secretKey: config.secretKey });
    this.#logger = logger;
  }

  async advise(stream: AdvisedStream, signal: AbortSignal): Promise<Advice> {
    let answer: Readonly<Record<string, unknown>>;
    try {
      answer = await this.#client.ask(questionOf(stream), { timeoutMs: this.#config.timeout, signal });
    } catch (error) {
      if (!(error instanceof ControlServerFault)) throw error;
      if (error.kind === 'answer') return this.#instead('answer', error.message);
      const isOver = error.kind === 'closed' && signal.aborted;
      return this.#instead('connection', isOver ? `${error.message}: no more of the stream can be held` : error.message);
    }
    const allowed = readAllowed(answer['allowed']);
    if (allowed === null)
      return this.#instead('answer', `the control server must say 'allowed': true or false, but says ${shown(answer['allowed'])}`);
    if (!allowed) return this.#instead('disallow', `the control server refuses the stream${reasonIn(answer)}`);
    try {
      const { typed } = readOutputProfiles(requireObject(answer['outputProfiles']));
      this.#tellIneffective(stream, typed);
      return { kind: 'profiles', outputProfiles: typed };
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      return this.#instead('answer', `the control server gives output profiles that cannot be used: ${error.message}`);
    }
  }

  close(): void {
    this.#client.close();
  }

  #instead(outcome: keyof typeof LETS_PASS, reason: string): Advice {
    return { kind: this.#config[LETS_PASS[outcome]] ? 'local' : 'refused', reason };
  }

  #tellIneffective({ vhost, app, stream }: AdvisedStream, { outputProfile }: OutputProfilesConfig): void {
    for (const profile of outputProfile) {
      for (const each of ineffectiveInProfile(profile)) {
        this.#logger.limited.warn({ vhost, app, stream }, sentenceOf(`output profile '${profile.name}' of the control server`, each));
      }
    }
  }
}

/** The body of the question, with the members that the reference server sends. */
function questionOf(stream: AdvisedStream): object {
  const { vhost, app, stream: name, sourceType, sourceUrl, createdAt } = stream;
  const tracks = asNumbers(tracksInformation(stream));
  return {
    source: sourceUrl,
    stream: { application: app, createdTime: formatTimestamp(createdAt), name, sourceType, sourceUrl, tracks, virtualHost: vhost },
  };
}

/** Booleans of control servers may be texts. */
function readAllowed(value: unknown): boolean | null {
  const text = typeof value === 'string' ? value.toLowerCase() : value;
  if (text === true || text === 'true') return true;
  return text === false || text === 'false' ? false : null;
}

function requireObject(value: unknown): object {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value;
  throw new ConfigError(`outputProfiles must be an object, but got ${shown(value)}`, { path: 'outputProfiles' });
}

function reasonIn({ reason }: Readonly<Record<string, unknown>>): string {
  return typeof reason === 'string' && reason !== '' ? `: ${shown(reason)}` : '';
}

/** Text of a control server, shortened for a log line. */
function shown(value: unknown): string {
  const text = value === undefined ? 'nothing' : JSON.stringify(value);
  return text.length > 200 ? `${text.slice(0, 200)}…` : text;
}
