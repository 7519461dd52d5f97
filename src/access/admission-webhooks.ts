/** Asks control servers about clients (`AdmissionWebhooks`), for all virtual hosts. */
import type { AdmissionWebhooksConfig } from '../config/index.ts';
import type { Clock } from '../util/clock.ts';
import type { Logger } from '../util/logger.ts';
import { type AccessCheck, type AccessRequest, type Denied, isEnabledFor, type Passed } from './access-check.ts';
import type { AccessSettings } from './access-controls.ts';
import { ControlServer, type ControlServerFigures, type ControlServerSettings } from './control-server.ts';

/** Time for the remaining closing requests when the server stops, ms. The whole stop takes at most 5 s. */
const STOP_MS = 1500;
const GONE: Denied = { admitted: false, code: 'no-virtual-host', reason: 'the virtual host changed during the request' };

/** An admitted client, as plain values that pass between threads as JSON. */
export interface AdmissionRecord {
  /** The virtual host whose control server was asked. */
  readonly vhost: string;
  readonly settings: ControlServerSettings;
  readonly request: AccessRequest;
  /** Complete URL to which the client was redirected. */
  readonly newUrl?: string | undefined;
}

/** `threads`: number of threads that have an instance and send requests, each with its part of the limits; default 1. */
export interface AdmissionWebhooksOptions {
  readonly clock: Clock;
  readonly logger: Pick<Logger, 'warn'>;
  readonly threads?: number;
}

/**
 * Control servers by URL and key: virtual hosts with the same server share its connections and limits. The main thread and each delivery
 * thread have one, and call `stop`.
 */
export class AdmissionWebhooks {
  readonly #options: AdmissionWebhooksOptions;
  readonly #servers = new Map<string, ControlServer>();
  /** Settings by virtual host. */
  #settings = new Map<string, AdmissionWebhooksConfig>();
  #named = new Set<string>();
  #stopped: Promise<void> | null = null;

  constructor(options: AdmissionWebhooksOptions) {
    this.#options = options;
  }

  /** Takes the present virtual hosts. A control server that none of them names is closed when all clients it admitted have left. */
  follow(hosts: readonly { readonly name: string; readonly access?: AccessSettings | undefined }[]): void {
    this.#settings = new Map(
      hosts.flatMap(({ name, access }) => (access?.admissionWebhooks === undefined ? [] : [[name, access.admissionWebhooks] as const])),
    );
    this.#named = new Set([...this.#settings.values()].map(keyOf));
    for (const [key, server] of this.#servers) this.#giveUp(key, server);
  }

  /** The check of one virtual host. */
  check(settings: AdmissionWebhooksConfig): AccessCheck {
    return {
      covers: (direction, protocol) => isEnabledFor(settings, direction, protocol),
      judge: (request) => this.#serverOf(settings).judge(request, settings.timeout),
    };
  }

  /** Asks the control server of `vhost` again, by the present settings, about a client that it has admitted before. */
  async judge(vhost: string, request: AccessRequest): Promise<Passed | Denied> {
    const settings = this.#settings.get(vhost);
    return settings === undefined ? GONE : this.#serverOf(settings).judge(request, settings.timeout);
  }

  /** Takes over an admission of a thread that has died. The returned function reports the end; call it once. */
  adopt({ settings, request, newUrl }: Omit<AdmissionRecord, 'vhost'>): () => void {
    return this.#serverOf(settings).adopt(request, newUrl);
  }

  get figures(): ControlServerFigures[] {
    return [...this.#servers.values()].map(({ figures }) => figures);
  }

  /** Sends the remaining closing requests, within 1.5 s, and closes everything. Idempotent. */
  stop(): Promise<void> {
    this.#stopped ??= this.#end();
    return this.#stopped;
  }

  async #end(): Promise<void> {
    await Promise.all([...this.#servers.values()].map((server) => server.drained(STOP_MS)));
    for (const server of this.#servers.values()) server.close();
  }

  #serverOf(settings: ControlServerSettings): ControlServer {
    const key = keyOf(settings);
    const known = this.#servers.get(key);
    if (known !== undefined) return known;
    const { clock, logger, threads = 1 } = this.#options;
    const server = new ControlServer(settings, { clock, logger, threads, onIdle: () => this.#giveUp(key, server) });
    this.#servers.set(key, server);
    return server;
  }

  #giveUp(key: string, server: ControlServer): void {
    if (this.#named.has(key) || !server.idle || this.#servers.get(key) !== server) return;
    this.#servers.delete(key);
    server.close();
  }
}

function keyOf({ controlServerUrl, secretKey }: ControlServerSettings): string {
  return JSON.stringify([controlServerUrl, secretKey]);
}
