import { expect, it } from 'vitest';
import type { StreamPresence } from '../../core/unknown-stream.ts';
import type { FromThread } from '../thread-protocol.ts';
import { PendingDemands } from './pending-demands.ts';

const wanted = (stream: string) => ({ vhost: 'v', app: 'a', stream, query: '' });

function setUp(limit = 10) {
  const posted: FromThread[] = [];
  const desk = new PendingDemands((message) => posted.push(message), limit);
  const told: [string, StreamPresence][] = [];
  const ask = (name: string, stream = 's') => desk.ask(wanted(stream), (found) => told.push([name, found]));
  return { desk, posted, told, ask };
}

it('asks once for all requests of a stream, and answers all', () => {
  const { desk, posted, told, ask } = setUp();
  ask('first');
  ask('second');
  ask('other', 't');
  expect(posted).toEqual([
    { type: 'demand', question: 1, wanted: wanted('s') },
    { type: 'demand', question: 2, wanted: wanted('t') },
  ]);
  desk.answered(1, true);
  desk.answered(1, false);
  desk.answered(7, true);
  expect([told, desk.waiting]).toEqual([
    [
      ['first', true],
      ['second', true],
    ],
    1,
  ]);
  ask('third');
  expect(posted.length).toBe(3);
});

it('forgets a request that left, once', () => {
  const { desk, told, ask } = setUp();
  const forget = ask('first');
  ask('second');
  forget?.();
  forget?.();
  expect(desk.waiting).toBe(1);
  desk.answered(1, false);
  forget?.();
  expect([told, desk.waiting]).toEqual([[['second', false]], 0]);
});

it('refuses demands beyond its limit', () => {
  const { ask, desk } = setUp(1);
  const forget = ask('first');
  expect(ask('second')).toBeNull();
  forget?.();
  expect(ask('third')).not.toBeNull();
  expect(desk.waiting).toBe(1);
});

it('answers all requests with a refusal when it closes', () => {
  const { desk, told, ask } = setUp();
  ask('first');
  desk.close();
  desk.close();
  expect([told, desk.waiting]).toEqual([[['first', false]], 0]);
});
