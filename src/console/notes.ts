/** Problems of the last minutes as sentences: from counters that grew, and from the server's health. */

import { type LiveEvent, protocolName } from '../client/index.ts';
import { counted } from './format.ts';
import type { Sample } from './metrics-text.ts';
import { REASONS } from './refusal-words.ts';

/** One sentence. */
export interface Note {
  /** Wall clock, ms. */
  readonly at: number;
  readonly text: string;
  readonly level: 'warning' | 'bad';
  /** Number of repetitions, the last at `at`; absent: 1. */
  readonly times?: number;
}

const MAX_NOTES = 100;

const REFUSED = 'millrace_access_refused_total';
const OVERFLOW = 'millrace_newcomers_refused_total';

/** The newest sentences, each once, so that repetitions do not hide others; older sentences are dropped. */
export class NoteBook {
  #notes: readonly Note[] = [];
  #counters: ReadonlyMap<string, number> | null = null;
  #reasons: ReadonlySet<string> = new Set();

  /** Newest first. */
  get all(): readonly Note[] {
    return this.#notes;
  }

  /** Adds a sentence for events that report a problem. */
  hear(event: LiveEvent): void {
    const text = eventWords(event);
    if (text !== null) this.#add([{ at: event.time === undefined ? Date.now() : Date.parse(event.time), text, level: 'warning' }]);
  }

  /** Compares with the previous values; at the first call only the reasons are new. `isTold`: refusals arrive as events. */
  take(at: number, samples: readonly Sample[], reasons: readonly string[], isTold = false): void {
    const fresh: Note[] = reasons.filter((reason) => !this.#reasons.has(reason)).map((text) => ({ at, text, level: 'bad' }));
    for (const reason of this.#reasons) if (!reasons.includes(reason)) fresh.push({ at, text: `Resolved: ${reason}`, level: 'warning' });
    this.#reasons = new Set(reasons);
    const counters = new Map<string, number>();
    for (const sample of samples) {
      if (sample.name !== REFUSED && sample.name !== OVERFLOW) continue;
      const key = `${sample.name} ${JSON.stringify(sample.labels)}`;
      counters.set(key, sample.value);
      const more = sample.value - (this.#counters?.get(key) ?? 0);
      if (this.#counters !== null && more > 0 && !(isTold && sample.name === REFUSED))
        fresh.push({ at, text: sentenceOf(sample, more), level: 'warning' });
    }
    this.#counters = counters;
    this.#add(fresh);
  }

  #add(fresh: readonly Note[]): void {
    for (const note of fresh.toReversed()) {
      const said = this.#notes.find(({ text }) => text === note.text);
      const again = said === undefined ? note : { ...note, times: (said.times ?? 1) + 1 };
      this.#notes = [again, ...this.#notes.filter((other) => other !== said)].slice(0, MAX_NOTES);
    }
  }
}

function eventWords({
  type,
  direction,
  protocol = '',
  reason = '',
  detail,
  count = 1,
  app,
  stream,
  task,
  id,
  state,
}: LiveEvent): string | null {
  const place = [app, stream].filter((name) => name !== undefined).join('/');
  if (type === 'refusal.counted') {
    const who = counted(count, direction === 'incoming' ? 'publisher' : 'viewer');
    const why = detail ?? REASONS[reason] ?? reason;
    return `${who}${place === '' ? '' : ` of ${place}`} refused over ${protocolName(protocol)}: ${why}`;
  }
  if (type === 'stream.sourceLost') return `${place} lost its source: ${detail ?? reason}`;
  if (type === 'task.changed' && state === 'error') return `${task} ${id} of ${place} failed: ${reason}`;
  return null;
}

function sentenceOf({ name, labels }: Sample, count: number): string {
  if (name === OVERFLOW) return `${counted(count, 'new connection')} refused: too many are waiting to be admitted`;
  const who = labels['direction'] === 'incoming' ? 'publisher' : 'viewer';
  const way = protocolName(labels['protocol'] ?? '');
  const code = labels['reason'] ?? '';
  return `${counted(count, who)} refused over ${way}: ${REASONS[code] ?? code}`;
}
