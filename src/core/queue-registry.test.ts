import { expect, test } from 'vitest';
import { ManualClock } from '../../test/fakes/manual-clock.ts';
import { QueueRegistry } from './queue-registry.ts';

test.each([
  ['mngq:v=default#app:s=/live:p=imr:r=indicator', 'inbound'],
  ['mngq:v=default#app:s=/live:p=trs:r=decoder_h264_0', 'decoder'],
  ['mngq:v=default#app:s=/live:p=pub:r=streamworker_[push]_a:r=b_[x]', 'push'],
  ['mngq:p=pub:r=appworker_[egress]_1', 'egress'],
  // A stream name must not select a kind.
  ['mngq:v=default#app:s=/_[made-up]_:p=imr:r=indicator', 'inbound'],
])('%s is of the kind %s', (urn, kind) => {
  const queues = new QueueRegistry(new ManualClock());
  queues.create({ urn, type: 'Packet', threshold: 1 });
  expect([...queues.totals.keys()]).toEqual([kind]);
});

test('counters include the drops of removed queues and of ended processes', () => {
  const queues = new QueueRegistry(new ManualClock());
  const gauge = () => queues.gauge({ urn: 'mngq:v=a#b:s=/c:p=trs:r=encoder_1', type: 'Frame', threshold: 8 });
  const [one, two] = [gauge(), gauge()];
  one.came(3);
  one.countDrop(2);
  const figures = { size: 1, peak: 1, drop: 5, inputPerSecond: 0, outputPerSecond: 0, avgWaitingTime: 0 };
  two.mirror(figures);
  expect(queues.totals.get('encoder')).toEqual({ size: 4, drop: 7 });
  two.mirror({ ...figures, size: 0, drop: 1 });
  expect(queues.totals.get('encoder')).toEqual({ size: 3, drop: 8 });
  queues.remove(one);
  queues.remove(one);
  expect(queues.totals.get('encoder')).toEqual({ size: 0, drop: 8 });
});
