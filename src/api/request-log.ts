/** Log lines about requests of the API: changes, and all refusals and failures, with the reason. */
import type { IncomingMessage } from 'node:http';
import { repeatedSecrets } from '../config/index.ts';
import { inSlices } from '../util/in-slices.ts';
import { withoutOwnSecrets } from '../util/known-secrets.ts';
import type { Logger } from '../util/logger.ts';
import { maskedUrl } from '../util/masked-url.ts';
import type { Answer } from './envelope.ts';
import type { ApiError } from './errors.ts';

const READS: ReadonlySet<string | undefined> = new Set(['GET', 'HEAD', 'OPTIONS']);
/** Statuses of reads that are no fault: a browser without a token, a stream that is not live, the end of a file. */
const ORDINARY: ReadonlySet<number> = new Set([401, 404, 416]);
/** Limit of a batch's faults in a line. */
const MAX_FAULTS = 3;
const MAX_LENGTH = 500;
/** Members of a body that are looked at before its line is left for later turns of the event loop. */
const SHORT = 200;
const REFUSED = 400;
const FAILED = 500;

/** The fields of a line besides the response. */
export interface AnsweredRequest {
  readonly target: string;
  /** The body, whose secrets an error may repeat; undefined: none was read. */
  readonly body: unknown;
  /** Whether the request changes nothing, regardless of its method. */
  readonly reads: boolean;
  readonly peer: string | undefined;
  /** Name of its token. */
  readonly token: string | undefined;
}

/** Each error code has its own share of lines, so that one client that repeats its requests hides no other refusals. */
export class RequestLog {
  readonly #logger: Logger;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** Logs a request whose `answer` has been sent. */
  answered({ method }: Pick<IncomingMessage, 'method'>, { target, body, reads, peer, token }: AnsweredRequest, answer: Answer): void {
    const { status, faults = [] } = answer;
    const isRead = reads || READS.has(method);
    if (isRead && (status < REFUSED || ORDINARY.has(status))) return;
    const fields = { method, target: cut(maskedUrl(target)), status, peer, token };
    const [first] = faults;
    if (first === undefined) this.#logger.info(fields, 'API request answered');
    else {
      const tell = (text: string): void => this.#logger.limited.info({ ...fields, code: first.code }, `${outcome(status)}: ${text}`);
      const text = this.#reason(faults, answer, body);
      if (typeof text === 'string') tell(text);
      else void text.then(tell);
    }
  }

  /** A large body takes many turns of the event loop. */
  #reason(faults: readonly ApiError[], { reason }: Answer, body: unknown): string | Promise<string> {
    const texts = [...new Set(faults.map(({ message }) => message.trim().replace(/\s+/g, ' ')))];
    const more = texts.length > MAX_FAULTS ? [`${texts.length - MAX_FAULTS} more`] : [];
    const whole = [...texts.slice(0, MAX_FAULTS), ...more, ...(reason === undefined ? [] : [reason])].join('; ');
    const shown = (secrets: readonly string[]): string => cut(maskedUrl(withoutOwnSecrets(whole, secrets)));
    if (typeof body !== 'object' || body === null) return shown([]);
    const steps = repeatedSecrets(body, whole);
    for (let count = 0; count < SHORT; count += 1) {
      const step = steps.next();
      if (step.done === true) return shown(step.value);
    }
    return inSlices(steps).then(shown);
  }
}

function outcome(status: number): string {
  if (status < REFUSED) return 'API request partly refused';
  return status < FAILED ? 'API request refused' : 'API request failed';
}

function cut(text: string): string {
  return text.length > MAX_LENGTH ? `${text.slice(0, MAX_LENGTH)}…` : text;
}
