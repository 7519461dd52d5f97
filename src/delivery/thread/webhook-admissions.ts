/** Asks the control servers of `AdmissionWebhooks` about viewers, and keeps the admissions until the sessions end. */
import type { AccessCheck, Denied, Passed } from '../../access/access-check.ts';
import type { AccessSettings } from '../../access/access-controls.ts';
import { type AdmissionRecord, AdmissionWebhooks, type AdmissionWebhooksOptions } from '../../access/admission-webhooks.ts';
import type { ControlServerFigures } from '../../access/control-server.ts';
import type { AdmissionWebhooksConfig } from '../../config/index.ts';
import type { AdmissionText } from '../thread-protocol.ts';

const BUSY: Denied = { admitted: false, code: 'webhook-busy', reason: 'too many clients wait for the control server' };
const STOPPING: Denied = { admitted: false, code: 'webhook-closed', reason: 'the server is stopping' };

interface Entry extends AdmissionRecord {
  readonly closed: () => void;
}

/** `limit`: open requests to all control servers; further viewers are refused. */
export interface WebhookAdmissionsOptions extends AdmissionWebhooksOptions {
  readonly limit: number;
}

/** One per thread, which calls `stop`. */
export class WebhookAdmissions {
  readonly #webhooks: AdmissionWebhooks;
  readonly #limit: number;
  /** Present admissions, by ticket. */
  readonly #entries = new Map<number, Entry>();
  #waiting = 0;
  #lastTicket = 0;
  #closed = false;

  constructor(options: WebhookAdmissionsOptions) {
    this.#webhooks = new AdmissionWebhooks(options);
    this.#limit = options.limit;
  }

  /** Pending requests. */
  get waiting(): number {
    return this.#waiting;
  }

  /** Number of present admissions. */
  get size(): number {
    return this.#entries.size;
  }

  get figures(): readonly ControlServerFigures[] {
    return this.#webhooks.figures;
  }

  /** The current virtual hosts. */
  follow(hosts: readonly { readonly name: string; readonly access?: AccessSettings | undefined }[]): void {
    this.#webhooks.follow(hosts);
  }

  /** The check of the virtual host `vhost`. */
  check(settings: AdmissionWebhooksConfig, vhost: string): AccessCheck {
    const check = this.#webhooks.check(settings);
    return {
      covers: (direction, protocol) => check.covers(direction, protocol),
      judge: (request) => this.#ask({ vhost, settings, request }, check),
    };
  }

  /** State of an admission, for use after the end of this thread; undefined if it has ended. */
  recordOf(ticket: number): AdmissionText | undefined {
    const entry = this.#entries.get(ticket);
    if (entry === undefined) return undefined;
    const { vhost, settings, newUrl } = entry;
    const { parts: _, ...request } = entry.request;
    const { controlServerUrl, secretKey } = settings;
    return JSON.stringify({ vhost, settings: { controlServerUrl, secretKey }, request, newUrl } satisfies AdmissionRecord);
  }

  /** The admission is no longer used in any thread. */
  over(ticket: number): void {
    const entry = this.#entries.get(ticket);
    this.#entries.delete(ticket);
    entry?.closed();
  }

  /** Refuses all waiting clients, and reports all ends within a second and a half. Idempotent. */
  async stop(): Promise<void> {
    this.#closed = true;
    for (const ticket of [...this.#entries.keys()]) this.over(ticket);
    await this.#webhooks.stop();
  }

  async #ask(asked: Omit<AdmissionRecord, 'newUrl'>, check: AccessCheck): Promise<Passed | Denied> {
    if (this.#closed) return STOPPING;
    if (this.#waiting >= this.#limit) return BUSY;
    this.#waiting += 1;
    let said: Passed | Denied;
    try {
      said = await check.judge(asked.request);
    } finally {
      this.#waiting -= 1;
    }
    if (!said.admitted || said.closed === undefined) return said;
    const { closed, newUrl } = said;
    if (this.#closed) {
      closed();
      return STOPPING;
    }
    this.#lastTicket += 1;
    const ticket = this.#lastTicket;
    this.#entries.set(ticket, { ...asked, newUrl, closed });
    return { ...said, ticket, closed: () => this.over(ticket) };
  }
}
