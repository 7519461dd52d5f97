/** Questions of a delivery thread to the control servers of `AdmissionWebhooks`, which the main thread asks. */
import { type AccessCheck, type AccessRequest, type Denied, isEnabledFor, type Passed } from '../../access/access-check.ts';
import type { AdmissionWebhooksConfig } from '../../config/index.ts';
import type { FromThread, WebhookVerdict } from '../thread-protocol.ts';

const BUSY: Denied = { admitted: false, code: 'webhook-busy', reason: 'too many wait for a control server' };
const STOPPING: Denied = { admitted: false, code: 'webhook-closed', reason: 'the server stops' };

/** One for each thread. `close` refuses all who wait; it may be called twice. */
export class WebhookDesk {
  readonly #post: (message: FromThread) => void;
  readonly #limit: number;
  readonly #questions = new Map<number, (said: Passed | Denied) => void>();
  #lastQuestion = 0;
  #closed = false;

  /** `limit`: questions that may be open at once; those who ask more are refused. */
  constructor(post: (message: FromThread) => void, limit: number) {
    this.#post = post;
    this.#limit = limit;
  }

  get waiting(): number {
    return this.#questions.size;
  }

  /** The check of the virtual host `vhost`. */
  check(settings: AdmissionWebhooksConfig, vhost: string): AccessCheck {
    return {
      covers: (direction, protocol) => isEnabledFor(settings, direction, protocol),
      judge: (request) => this.#ask(vhost, request),
    };
  }

  /** The main thread has answered. */
  answered(question: number, verdict: WebhookVerdict): void {
    const resolve = this.#questions.get(question);
    this.#questions.delete(question);
    const ticket = verdict.admitted ? verdict.ticket : undefined;
    const closed = (): void => {
      if (ticket !== undefined) this.#post({ type: 'admission-over', ticket });
    };
    if (resolve === undefined) closed();
    else if (!verdict.admitted) resolve(verdict);
    else {
      const { expiresAt, expiry, newUrl } = verdict;
      resolve({
        ...{ admitted: true, expiresAt, newUrl, closed },
        ...(expiry !== undefined && { expiry }),
        ...(ticket !== undefined && { ticket }),
      });
    }
  }

  close(): void {
    this.#closed = true;
    for (const resolve of this.#questions.values()) resolve(STOPPING);
    this.#questions.clear();
  }

  #ask(vhost: string, request: AccessRequest): Denied | Promise<Passed | Denied> {
    if (this.#closed) return STOPPING;
    if (this.#questions.size >= this.#limit) return BUSY;
    const { promise, resolve } = Promise.withResolvers<Passed | Denied>();
    this.#lastQuestion += 1;
    this.#questions.set(this.#lastQuestion, resolve);
    this.#post({ type: 'admission', question: this.#lastQuestion, vhost, request });
    return promise;
  }
}
