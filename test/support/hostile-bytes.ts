/** Inputs that every parser must survive: samples cut at every byte, flipped bits, random bytes. */
import fc from 'fast-check';
import { ProtocolError } from '../../src/util/protocol-error.ts';

const RUNS = 300;

/**
 * Runs `parse` with every prefix of `samples`, with samples of which one byte is changed, and with random bytes. It may return or throw
 * `ProtocolError`; anything else fails the test.
 */
export function survivesHostileBytes(parse: (data: Uint8Array) => unknown, samples: readonly Uint8Array[]): void {
  const attempt = (data: Uint8Array): void => {
    try {
      parse(data);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
    }
  };
  for (const sample of samples) {
    for (let length = 0; length <= sample.length; length++) attempt(sample.slice(0, length));
    fc.assert(
      fc.property(fc.nat(Math.max(0, sample.length - 1)), fc.integer({ min: 0, max: 255 }), (at, value) => {
        const changed = sample.slice();
        changed[at] = value;
        attempt(changed);
      }),
      { numRuns: RUNS },
    );
  }
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (data) => attempt(data)),
    { numRuns: RUNS },
  );
}
