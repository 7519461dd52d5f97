import { expect, test } from 'vitest';
import { LivePacer } from './live-pacer.ts';

const SECOND = 1_000_000;
const PAYLOAD = 1316;
/** Bytes of a packet with the headers of SRT, UDP and IPv4. */
const ON_THE_WIRE = 1360;

/** Passes this many payloads per second, evenly, from one second to another. */
function feed(pacer: LivePacer, perSecond: number, from: number, to: number): void {
  for (let at = from * SECOND; at < to * SECOND; at += SECOND / perSecond) pacer.countInput(PAYLOAD, at);
}

test('the bandwidth is INPUTBW plus OHEADBW when MAXBW is 0', () => {
  const pacer = new LivePacer({ maximum: 0, input: 400_000, overhead: 50 });
  expect(pacer.bandwidth).toBe(600_000);
  feed(pacer, 1000, 0, 3);
  expect(pacer.bandwidth).toBe(600_000);
  expect(new LivePacer({ maximum: 300_000, input: 400_000, overhead: 50 }).bandwidth).toBe(300_000);
});

test('without INPUTBW the input is measured, and followed', () => {
  const pacer = new LivePacer({ maximum: 0, input: 0, overhead: 25 });
  feed(pacer, 200, 0, 1);
  expect(pacer.bandwidth).toBe(125_000_000);
  feed(pacer, 200, 1, 3);
  expect(pacer.bandwidth / (200 * ON_THE_WIRE * 1.25)).toBeCloseTo(1, 2);
  feed(pacer, 500, 3, 6);
  expect(pacer.bandwidth / (500 * ON_THE_WIRE * 1.25)).toBeCloseTo(1, 2);
  feed(pacer, 10, 6, 10);
  expect(pacer.bandwidth).toBe(125_000);
});

test('packets leave at the rate of the bandwidth', () => {
  const pacer = new LivePacer({ maximum: 0, input: 1000 * ON_THE_WIRE, overhead: 20 });
  let sent = 0;
  for (let now = 0; now <= 2 * SECOND; now += 100) {
    while (pacer.mayStart(now)) {
      pacer.started(now);
      sent += 1;
    }
  }
  // Payloads that could not be sent for 20 ms may be sent at once.
  expect(sent).toBeGreaterThanOrEqual(2400);
  expect(sent).toBeLessThan(2400 + 30);
});
