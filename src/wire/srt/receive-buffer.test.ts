import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ReceiveBuffer } from './receive-buffer.ts';
import { addSequence, SEQUENCE_MASK, sequenceOffset } from './sequence.ts';

const LIMIT = 1024;

type Step =
  | { readonly do: 'insert'; readonly offset: number; readonly due: number }
  | { readonly do: 'give-up'; readonly offset: number; readonly count: number }
  | { readonly do: 'release'; readonly now: number };

const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    {
      weight: 8,
      arbitrary: fc.record({ do: fc.constant('insert' as const), offset: fc.integer({ min: -20, max: 600 }), due: fc.nat(100) }),
    },
    {
      weight: 1,
      arbitrary: fc.record({ do: fc.constant('give-up' as const), offset: fc.integer({ min: -20, max: 600 }), count: fc.nat(50) }),
    },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('release' as const), now: fc.nat(100) }) },
  ),
  { maxLength: 80 },
);

/** A simple equivalent: the state of every number from `first` to `end`. */
class Model {
  first: number;
  end: number;
  readonly held = new Map<number, number>();
  readonly gone = new Set<number>();

  constructor(first: number) {
    this.first = first;
    this.end = first;
  }

  get numbers(): number[] {
    return Array.from({ length: sequenceOffset(this.first, this.end) }, (_unused, index) => addSequence(this.first, index));
  }

  get missing(): number[] {
    return this.numbers.filter((number) => !this.held.has(number) && !this.gone.has(number));
  }

  reach(number: number): void {
    if (sequenceOffset(this.end, number) >= 0) this.end = addSequence(number, 1);
  }

  release(now: number): { out: number[]; lost: number } {
    const out: number[] = [];
    let lost = 0;
    for (;;) {
      const next = this.numbers.find((number) => this.held.has(number));
      if (next === undefined || (this.held.get(next) ?? 0) > now) return { out, lost };
      lost += this.missing.filter((number) => sequenceOffset(number, next) > 0).length;
      this.held.delete(next);
      out.push(next);
      this.first = addSequence(next, 1);
    }
  }
}

test('behaves like a simple model buffer, also across the wrap of sequence numbers', () => {
  fc.assert(
    fc.property(fc.constantFrom(0, 5000, SEQUENCE_MASK - 100), steps, (start, script) => {
      const buffer = new ReceiveBuffer(start, LIMIT);
      const model = new Model(start);
      for (const step of script) {
        if (step.do === 'insert') {
          const number = addSequence(model.first, step.offset);
          const expected = step.offset < 0 || model.gone.has(number) ? 'late' : model.held.has(number) ? 'duplicate' : 'inserted';
          const payload = new Uint8Array(4);
          new DataView(payload.buffer).setUint32(0, number);
          expect(buffer.insert(number, payload, step.due)).toBe(expected);
          if (expected !== 'inserted') continue;
          model.held.set(number, step.due);
          model.reach(number);
        } else if (step.do === 'give-up') {
          const first = addSequence(model.first, step.offset);
          const last = addSequence(first, step.count);
          buffer.giveUp({ first, last });
          for (let number = first; sequenceOffset(number, last) >= 0; number = addSequence(number, 1)) {
            if (sequenceOffset(model.first, number) < 0) continue;
            model.reach(number);
            if (!model.held.has(number)) model.gone.add(number);
          }
        } else {
          const out: number[] = [];
          const lost = buffer.release(step.now, (payload) => out.push(new DataView(payload.buffer).getUint32(0)));
          expect({ out, lost }).toEqual(model.release(step.now));
        }
        expect([buffer.end, buffer.missing, buffer.present]).toEqual([model.end, model.missing.length, model.held.size]);
        const next = model.numbers.find((number) => model.held.has(number));
        expect(buffer.nextDueTime).toBe(next === undefined ? Number.POSITIVE_INFINITY : model.held.get(next));
        expect(buffer.acknowledged).toBe(model.missing[0] ?? model.end);
        const ranges = buffer.missingRanges(model.first, LIMIT);
        const listed = ranges.flatMap(({ first, last }) =>
          Array.from({ length: sequenceOffset(first, last) + 1 }, (_unused, index) => addSequence(first, index)),
        );
        expect(listed).toEqual(model.missing);
      }
    }),
    { numRuns: 200 },
  );
});
