/** How often access control has refused somebody, by way and reason, for Prometheus in its text format (version 0.0.4). */
import type { AccessProtocol, AccessRequest, Denied, Direction } from './access-check.ts';

/** Refusals of one kind. */
export interface RefusalCount {
  readonly direction: Direction;
  readonly protocol: AccessProtocol;
  /** `Denied.code`. */
  readonly code: string;
  readonly count: number;
}

const METRIC = 'millrace_access_refused_total';

/** Grows with the kinds of refusal that this server knows, never with who is refused. */
export class RefusalCounts {
  /** By the kind as one text. */
  #counts = new Map<string, RefusalCount>();
  /** Of all kinds, taken ones too. */
  total = 0;

  note({ direction, protocol }: Pick<AccessRequest, 'direction' | 'protocol'>, { code }: Pick<Denied, 'code'>): void {
    this.add([{ direction, protocol, code, count: 1 }]);
  }

  /** Those of somebody else. */
  add(counts: readonly RefusalCount[]): void {
    for (const each of counts) {
      const kind = `${each.direction} ${each.protocol} ${each.code}`;
      this.#counts.set(kind, { ...each, count: (this.#counts.get(kind)?.count ?? 0) + each.count });
      this.total += each.count;
    }
  }

  /** Since the last call, for a report. */
  take(): readonly RefusalCount[] {
    if (this.#counts.size === 0) return [];
    const taken = [...this.#counts.values()];
    this.#counts = new Map();
    return taken;
  }

  /** One line for each kind that has occurred. */
  metrics(): string {
    const lines = Array.from(
      this.#counts.values(),
      ({ direction, protocol, code, count }) => `${METRIC}{direction="${direction}",protocol="${protocol}",reason="${code}"} ${count}\n`,
    );
    return `# HELP ${METRIC} Publishers (incoming) and viewers (outgoing) whom access control refused\n# TYPE ${METRIC} counter\n${lines.join('')}`;
  }
}
