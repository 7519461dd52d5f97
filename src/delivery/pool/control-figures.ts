/** Figures of requests to control servers, summed over all delivery threads. */
import type { AccessSettings } from '../../access/access-controls.ts';
import { type ControlServerFigures, controlServerPlace } from '../../access/control-server.ts';

/** Per thread, plus a sum for ended threads: counters never decrease. Nothing to close. */
export class ControlFigures {
  readonly #threads = new Map<number, readonly ControlServerFigures[]>();
  /** By URL. */
  readonly #past = new Map<string, ControlServerFigures>();

  get all(): readonly ControlServerFigures[] {
    return [...this.#threads.values(), [...this.#past.values()]].flat();
  }

  /** Sets a thread's counts since it started. */
  set(thread: number, figures: readonly ControlServerFigures[]): void {
    this.#threads.set(thread, figures);
  }

  /** Pending requests of the thread count as failed. */
  threadGone(thread: number): void {
    for (const figures of this.#threads.get(thread) ?? []) this.#keep(figures);
    this.#threads.delete(thread);
  }

  /** Takes the present virtual hosts; drops figures of control servers that none of them names. */
  follow(hosts: readonly { readonly access?: AccessSettings | undefined }[]): void {
    const named = hosts.flatMap(({ access }) => access?.admissionWebhooks ?? []);
    const urls = new Set(named.map(({ controlServerUrl }) => controlServerPlace(controlServerUrl)));
    for (const url of this.#past.keys()) if (!urls.has(url)) this.#past.delete(url);
  }

  #keep({ url, ...last }: ControlServerFigures): void {
    const past = this.#past.get(url);
    this.#past.set(url, {
      ...{ url, inFlight: 0, admitted: 0, closingsPending: 0 },
      requests: last.requests + (past?.requests ?? 0),
      allowed: last.allowed + (past?.allowed ?? 0),
      refused: last.refused + (past?.refused ?? 0),
      failed: last.failed + last.inFlight + (past?.failed ?? 0),
      closingsDelivered: last.closingsDelivered + (past?.closingsDelivered ?? 0),
      closingsLost: last.closingsLost + last.closingsPending + (past?.closingsLost ?? 0),
    });
  }
}
