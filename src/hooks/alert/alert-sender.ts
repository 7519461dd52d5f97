/** Sends alerts to their server, one after the other, so they arrive in order. */
import type { Clock } from '../../util/clock.ts';
import { ControlServerClient, ControlServerFault } from '../../util/control-server-client.ts';
import type { Logger } from '../../util/logger.ts';
import { RefusalLog } from '../../util/refusal-log.ts';

/** Limit of waiting alerts; a new alert replaces the oldest. */
export const MAX_WAITING = 256;
/** Pause before each further attempt, ms. */
const PAUSES_MS: readonly number[] = [500, 1000];
/** The answer is discarded. */
const MAX_ANSWER_BYTES = 64 * 1024;
const FAILS = 'the server of alerts fails: it does not hear of them';

/** Figures since the start, and the length of the queue. */
export interface AlertFigures {
  /** Alerts that the server answered, with any status. */
  readonly delivered: number;
  /** Delivered alerts with another answer than status 200 and a JSON object. */
  readonly unwelcome: number;
  /** Alerts that were given up. */
  readonly failed: number;
  /** Alerts replaced because too many waited. */
  readonly dropped: number;
  readonly waiting: number;
}

/** Destination of alerts. */
export interface AlertSenderOptions {
  readonly url: string;
  readonly secretKey: string;
  /** Time limit of one attempt, ms. */
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly logger: Pick<Logger, 'warn'>;
  /** Default: 500 and 1000 ms. */
  readonly pausesMs?: readonly number[];
}

/** One for each destination; its owner calls `stop`. */
export class AlertSender {
  readonly #options: AlertSenderOptions;
  readonly #client: ControlServerClient;
  readonly #log: RefusalLog;
  readonly #queue: object[] = [];
  readonly #end = new AbortController();
  #sending: Promise<void> | null = null;
  #delivered = 0;
  #unwelcome = 0;
  #failed = 0;
  #dropped = 0;

  /** Throws a TypeError unless the URL is one of HTTP. */
  constructor(options: AlertSenderOptions) {
    const { url, secretKey, logger, clock } = options;
    this.#options = options;
    this.#client = new ControlServerClient({ url, secretKey, maxConnections: 1, maxAnswerBytes: MAX_ANSWER_BYTES });
    this.#log = new RefusalLog(logger, clock);
  }

  get figures(): AlertFigures {
    return {
      delivered: this.#delivered,
      unwelcome: this.#unwelcome,
      failed: this.#failed,
      dropped: this.#dropped,
      waiting: this.#queue.length + Number(this.#sending !== null),
    };
  }

  /** Queues an alert to be sent as JSON. Never throws, never waits. */
  push(alert: object): void {
    if (this.#end.signal.aborted) return;
    if (this.#queue.length >= MAX_WAITING) {
      this.#queue.shift();
      this.#dropped += 1;
    }
    this.#queue.push(alert);
    this.#sending ??= this.#sendAll();
  }

  /**
   * Accepts no more alerts; resolves when the waiting ones are sent, after `graceMs` at the latest. The rest counts as failed. Idempotent.
   */
  async stop(graceMs: number): Promise<void> {
    const { promise: late, resolve } = Promise.withResolvers<void>();
    const deadline = setTimeout(resolve, graceMs);
    await Promise.race([this.#sending, late]);
    clearTimeout(deadline);
    this.#end.abort();
    this.#client.close();
    await this.#sending;
    this.#log.close();
  }

  async #sendAll(): Promise<void> {
    for (let alert = this.#queue.shift(); alert !== undefined; alert = this.#queue.shift()) {
      await this.#send(alert);
    }
    this.#sending = null;
  }

  async #send(alert: object): Promise<void> {
    const { timeoutMs, pausesMs = PAUSES_MS } = this.#options;
    const { signal } = this.#end;
    for (let attempt = 0; !signal.aborted; attempt += 1) {
      try {
        await this.#client.ask(alert, { timeoutMs, signal });
        this.#delivered += 1;
        return;
      } catch (error) {
        const fault = error instanceof ControlServerFault ? error : new ControlServerFault('connection', String(error));
        this.#log.note(FAILS, { detail: fault.message });
        if (fault.kind === 'answer') {
          this.#delivered += 1;
          this.#unwelcome += 1;
          return;
        }
        const pause = pausesMs[attempt];
        if (pause === undefined || fault.kind === 'closed') break;
        await rest(pause, signal);
      }
    }
    this.#failed += 1;
  }
}

/** Resolves after `ms`, or when `signal` is aborted. */
function rest(ms: number, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms);
  signal.addEventListener('abort', () => resolve(), { once: true });
  return promise.finally(() => clearTimeout(timer));
}
