import { expect, it } from 'vitest';
import { ManualClock } from '../../test/fakes/manual-clock.ts';
import { QueueGauge } from './queue-gauge.ts';

function setUp(unit?: number) {
  const clock = new ManualClock();
  const gauge = new QueueGauge({ id: 1, urn: 'mngq:p=pub', type: 'KiB', threshold: 4, clock, ...(unit !== undefined && { unit }) });
  return { clock, gauge };
}

it('measures the waiting time of messages without storing them', () => {
  const { clock, gauge } = setUp();
  gauge.came();
  clock.advance(10);
  gauge.came();
  clock.advance(20);
  gauge.went(2);
  clock.advance(970);
  // Waits of 30 ms and 20 ms.
  expect(gauge.status()).toMatchObject({ size: 0, peak: 2, inputPerSecond: 2, outputPerSecond: 2, avgWaitingTime: 25_000 });
  clock.advance(1000);
  expect(gauge.status()).toMatchObject({ inputPerSecond: 0, outputPerSecond: 0, avgWaitingTime: 0 });
});

it('reports bytes in its unit, rounded up', () => {
  const { clock, gauge } = setUp(1024);
  gauge.came(3000);
  gauge.went(1000);
  gauge.countDrop(10);
  clock.advance(1000);
  expect(gauge.status()).toMatchObject({ size: 2, peak: 3, drop: 1, threshold: 4, inputPerSecond: 3, outputPerSecond: 1 });
  gauge.dropAll();
  expect(gauge.status()).toMatchObject({ size: 0, drop: 2 });
});
