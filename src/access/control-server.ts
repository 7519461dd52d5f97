/** One control server of admissions: it decides who may begin, and is notified of ends. */
import type { Clock } from '../util/clock.ts';
import { ControlServerClient, ControlServerFault } from '../util/control-server-client.ts';
import type { Logger } from '../util/logger.ts';
import { RefusalLog } from '../util/refusal-log.ts';
import type { AccessRequest, Denied, Passed } from './access-check.ts';
import { closingMessage, openingMessage, readAdmissionAnswer } from './admission-messages.ts';
import { ClosingQueue } from './closing-queue.ts';
import { withPortOf } from './new-url.ts';

/** Limit of questions sent at once, and of reports of ended sessions sent at once, for all threads together. */
const MAX_CONNECTIONS = 64;
/** Minimum of a thread's part of that limit. */
const MIN_CONNECTIONS = 8;
/** Maximum of open requests, including those that wait for a connection; further clients are refused. */
const MAX_QUESTIONS = 2048;
/** Answers have only four members. */
const MAX_ANSWER_BYTES = 64 * 1024;
/** Time limit for the answer to a closing, ms, as in the reference server. */
const CLOSING_TIMEOUT_MS = 500;

const BUSY: Denied = { admitted: false, code: 'webhook-busy', reason: 'too many requests to the control server are open' };
const FAILED: Denied = { admitted: false, code: 'webhook-failed', reason: 'the control server gave no usable answer' };
const REFUSED: Denied = { admitted: false, code: 'webhook-refused', reason: 'the control server does not allow it' };
const LIFETIME = 'the lifetime that its control server gave it is over';
/** Log lines for faults of many requests. */
const ASKING_FAILS = 'a control server fails: whoever it is asked about is refused';
const CLOSING_FAILS = 'a control server fails: it does not hear of ends of sessions';

/** Counters since the start, and open requests. */
export interface ControlServerFigures {
  readonly url: string;
  readonly requests: number;
  readonly allowed: number;
  readonly refused: number;
  /** Questions without a usable answer, or without room in the queue. */
  readonly failed: number;
  readonly inFlight: number;
  /** Admitted sessions that have not ended. */
  readonly admitted: number;
  readonly closingsDelivered: number;
  readonly closingsLost: number;
  readonly closingsPending: number;
}

/** URL, key and limits of a control server. */
export interface ControlServerSettings {
  readonly controlServerUrl: string;
  readonly secretKey: string;
}

/** `onIdle` is called when no admitted client is left whose end must be reported. */
export interface ControlServerOptions {
  readonly clock: Clock;
  readonly logger: Pick<Logger, 'warn'>;
  readonly onIdle: () => void;
  /** Number of threads that send requests at the same time: each has its part of the limits. */
  readonly threads: number;
}

/** The owner calls `close`, after `drained` if pending reports must not be lost. */
export class ControlServer {
  /** URL without query and credentials. */
  readonly url: string;
  readonly #clock: Clock;
  readonly #openings: ControlServerClient;
  /** A separate client, so that reports do not wait for questions. */
  readonly #closingClient: ControlServerClient;
  readonly #closings: ClosingQueue;
  readonly #log: RefusalLog;
  readonly #onIdle: () => void;
  readonly #maxQuestions: number;
  #requests = 0;
  #allowed = 0;
  #refused = 0;
  #failed = 0;
  #admitted = 0;
  #wake: (() => void) | null = null;

  constructor({ controlServerUrl: url, secretKey }: ControlServerSettings, { clock, logger, onIdle, threads }: ControlServerOptions) {
    this.url = controlServerPlace(url);
    this.#clock = clock;
    this.#log = new RefusalLog(logger, clock);
    this.#onIdle = onIdle;
    this.#maxQuestions = Math.ceil(MAX_QUESTIONS / threads);
    const maxConnections = Math.max(MIN_CONNECTIONS, Math.ceil(MAX_CONNECTIONS / threads));
    const limits = { url, secretKey, maxAnswerBytes: MAX_ANSWER_BYTES, maxConnections };
    this.#openings = new ControlServerClient({ ...limits, maxPending: this.#maxQuestions });
    this.#closingClient = new ControlServerClient(limits);
    this.#closings = new ClosingQueue({
      send: (message) => this.#closingClient.ask(message, { timeoutMs: CLOSING_TIMEOUT_MS }),
      onFault: (fault) => {
        if (fault?.kind === 'closed') return;
        this.#log.note(CLOSING_FAILS, { server: this.url, detail: fault?.message ?? 'too many wait to be told' });
      },
      onIdle: () => this.#settled(),
      maxInFlight: maxConnections,
    });
  }

  /** No request is open, no client admitted, and no closing request waits. */
  get idle(): boolean {
    return this.#openings.pending + this.#admitted + this.#closings.pending === 0;
  }

  get figures(): ControlServerFigures {
    return {
      url: this.url,
      requests: this.#requests,
      allowed: this.#allowed,
      refused: this.#refused,
      failed: this.#failed,
      inFlight: this.#openings.pending,
      admitted: this.#admitted,
      closingsDelivered: this.#closings.delivered,
      closingsLost: this.#closings.lost,
      closingsPending: this.#closings.pending,
    };
  }

  /** Asks about `request`. Never rejects: without an answer the client is refused. */
  async judge(request: AccessRequest, timeoutMs: number): Promise<Passed | Denied> {
    this.#requests += 1;
    if (this.#openings.pending >= this.#maxQuestions) {
      this.#fails(`${this.#maxQuestions} questions are open already`);
      return BUSY;
    }
    try {
      const answer = readAdmissionAnswer(await this.#openings.ask(openingMessage(request, this.#clock.now()), { timeoutMs }));
      if (typeof answer === 'string') {
        this.#fails(answer);
        return FAILED;
      }
      const { allowed, lifetimeMs, newUrl, reason } = answer;
      if (!allowed) {
        this.#refused += 1;
        return { ...REFUSED, ...(reason !== undefined && { said: reason }) };
      }
      return this.#admit(request, { lifetimeMs, newUrl });
    } catch (error) {
      if (!(error instanceof ControlServerFault)) throw error;
      if (error.kind === 'closed') this.#failed += 1;
      else this.#fails(error.message);
      return FAILED;
    } finally {
      this.#settled();
    }
  }

  /** Takes over a client admitted elsewhere. The returned function reports the end; call it once. `newUrl`: complete. */
  adopt(request: AccessRequest, newUrl: string | undefined): () => void {
    this.#admitted += 1;
    return () => {
      this.#admitted -= 1;
      this.#closings.push(closingMessage(request, newUrl ?? request.url, this.#clock.now()));
    };
  }

  /** Resolves when all reports are sent, after `ms` at the latest. Open requests end now. */
  async drained(ms: number): Promise<void> {
    this.#openings.close();
    if (this.#closings.pending === 0) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#wake = resolve;
    const deadline = setTimeout(resolve, ms);
    await promise;
    clearTimeout(deadline);
  }

  /** Idempotent. */
  close(): void {
    this.#openings.close();
    this.#closings.clear();
    this.#closingClient.close();
    this.#log.close();
  }

  #admit(request: AccessRequest, { lifetimeMs, newUrl }: { readonly lifetimeMs: number; readonly newUrl: string | undefined }): Passed {
    this.#allowed += 1;
    const expiresAt = this.#clock.now() + lifetimeMs;
    const finalUrl = newUrl === undefined ? undefined : withPortOf(newUrl, request.url);
    const passed = { admitted: true, expiresAt, expiry: LIFETIME, newUrl: finalUrl } as const;
    // A single image is not a session.
    if (request.protocol === 'thumbnail') return passed;
    return { ...passed, closed: this.adopt(request, finalUrl) };
  }

  #fails(detail: string): void {
    this.#failed += 1;
    this.#log.note(ASKING_FAILS, { server: this.url, detail });
  }

  #settled(): void {
    if (this.#closings.pending === 0) this.#wake?.();
    if (this.idle) this.#onIdle();
  }
}

/** The name of a control server in logs and figures: its URL without query and credentials. */
export function controlServerPlace(url: string): string {
  const { origin, pathname } = new URL(url);
  return `${origin}${pathname}`;
}
