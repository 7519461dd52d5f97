/** Lines for the log about the media ports, at most one a minute; losses are warnings. */
import type { FanoutCounters } from './fanout/fanout.ts';

const INTERVAL_MS = 60_000;

/** Counts of the transport since its start. */
export type TransportCounters = FanoutCounters & {
  /** Datagrams that looked like STUN and were not. */
  readonly malformed: number;
  /** Sessions, and connections by TCP, that a limit refused: too many of one address, or too many that were not completed. */
  readonly turnedAway: number;
};

/** Losses that viewers and publishers notice, and that no other line reports. */
const TROUBLES = [
  'droppedEvents',
  'droppedStrangers',
  'droppedInjected',
  'droppedFrames',
  'congested',
  'ignoredNacks',
  'turnedAway',
] as const;

/** One line, ready for the logger. */
export interface ReportLine {
  readonly level: 'debug' | 'warn';
  readonly fields: Readonly<Record<string, number>>;
  readonly message: string;
}

/** Compares the figures with those of the last line, at the given monotonic time (ms). */
export class TransportReport {
  #before: TransportCounters | null = null;
  #at = Number.NEGATIVE_INFINITY;

  /** The report for now; null if nothing has changed, or it is not time yet. `read` is called only when it is. */
  next(now: number, read: () => TransportCounters): ReportLine | null {
    if (now - this.#at < INTERVAL_MS) return null;
    const counters = read();
    const before = this.#before;
    const isFirst = this.#at === Number.NEGATIVE_INFINITY;
    this.#at = now;
    this.#before = counters;
    if (isFirst) return null;
    const grown = Object.entries(counters).flatMap(([name, value]) => {
      const more = value - (before?.[name as keyof TransportCounters] ?? 0);
      return name !== 'viewers' && more > 0 ? [[name, more] as const] : [];
    });
    if (grown.length === 0) return null;
    const troubles = grown.filter(([name]) => (TROUBLES as readonly string[]).includes(name));
    if (troubles.length === 0) return { level: 'debug', fields: Object.fromEntries(grown), message: 'WebRTC media in the last minute' };
    const message = `WebRTC falls behind or is flooded: ${troubles.map(([name, more]) => `${more} ${name}`).join(', ')} in the last minute`;
    return { level: 'warn', fields: Object.fromEntries(grown), message };
  }
}
