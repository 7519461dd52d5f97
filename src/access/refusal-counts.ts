/** Counts refusals by access control, by direction, protocol and reason. */
import { labelText, type MetricDefinition, type MetricSource, type MetricsPage } from '../util/metrics.ts';
import type { AccessProtocol, AccessRequest, Denied, Direction } from './access-check.ts';

/** Refusals of one kind. */
export interface RefusalCount {
  readonly direction: Direction;
  readonly protocol: AccessProtocol;
  /** `Denied.code`. */
  readonly code: string;
  readonly count: number;
}

const METRIC: MetricDefinition = {
  name: 'millrace_access_refused_total',
  help: 'Publishers (incoming) and viewers (outgoing) refused by access control',
  type: 'counter',
};

/** Grows with the kinds of refusal that this server knows, never with the refused clients. */
export class RefusalCounts implements MetricSource {
  readonly definitions = [METRIC];
  /** Counts by kind, as one text. */
  #counts = new Map<string, RefusalCount>();
  /** Number of all refusals, including those already taken. */
  total = 0;

  note({ direction, protocol }: Pick<AccessRequest, 'direction' | 'protocol'>, { code }: Pick<Denied, 'code'>): void {
    this.add([{ direction, protocol, code, count: 1 }]);
  }

  /** Adds the counts of another thread. */
  add(counts: readonly RefusalCount[]): void {
    for (const each of counts) {
      const kind = `${each.direction} ${each.protocol} ${each.code}`;
      this.#counts.set(kind, { ...each, count: (this.#counts.get(kind)?.count ?? 0) + each.count });
      this.total += each.count;
    }
  }

  /** The counts since the last call, for a report. */
  take(): readonly RefusalCount[] {
    if (this.#counts.size === 0) return [];
    const taken = [...this.#counts.values()];
    this.#counts = new Map();
    return taken;
  }

  /** A figure for each kind that has occurred. */
  collect(page: MetricsPage): void {
    const family = page.family(METRIC);
    for (const { direction, protocol, code, count } of this.#counts.values())
      family.add(count, labelText({ direction, protocol, reason: code }));
  }
}
