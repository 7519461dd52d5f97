import { expect, test, vi } from 'vitest';
import { AdmissionRegistry } from './admission-registry.ts';

const VIEWER = { feed: 1, session: 's', remoteAddress: '192.0.2.1' };

/** A registry, and the adoptions that it reports. */
function start() {
  const ended: string[] = [];
  const onOver = vi.fn();
  const registry = new AdmissionRegistry({ onOver, adopt: (record) => () => void ended.push(record) });
  const bind = (thread: number, ticket: number, session = `${thread}.${ticket}`, exists = true): { session: string } => {
    registry.bind(thread, { ticket, record: `record of ${thread}.${ticket}` }, { sighting: { ...VIEWER, session }, exists });
    return { ...VIEWER, session };
  };
  return { registry, bind, ended, onOver };
}

test('an admission ends once, with its session, and the end is reported to the thread that asked', () => {
  const { registry, bind, onOver, ended } = start();
  bind(1, 7, 's');
  bind(1, 8, 't');
  bind(2, 7, 'u');
  expect(registry.sessionOver({ ...VIEWER, feed: 2 })).toBeUndefined();
  expect(onOver).not.toHaveBeenCalled();
  expect(registry.takeOver().size).toBe(0);
  const records = ['s', 't', 'u', 's', 'nobody'].map((session) => registry.sessionOver({ ...VIEWER, session }));
  expect(records).toEqual(['record of 1.7', 'record of 1.8', 'record of 2.7', undefined, undefined]);
  expect([...registry.takeOver()]).toEqual([
    [1, [7, 8]],
    [2, [7]],
  ]);
  expect(registry.takeOver().size).toBe(0);
  expect([registry.size, ended]).toEqual([0, []]);
});

test('an admission reported after the end of its stream is over at once', () => {
  const { registry, bind } = start();
  bind(1, 7, 's', false);
  expect([...registry.takeOver()]).toEqual([[1, [7]]]);
  expect(registry.size).toBe(0);
});

test('sessions of a dead thread may continue in other threads, and their ends are reported here', () => {
  const { registry, bind, ended } = start();
  const [first, second] = [bind(1, 1), bind(2, 1)];
  registry.threadGone(1);
  registry.threadGone(1);
  expect(ended).toEqual([]);
  for (const session of [first, second]) registry.sessionOver({ ...VIEWER, ...session });
  expect(ended).toEqual(['record of 1.1']);
  expect([...registry.takeOver()]).toEqual([[2, [1]]]);
});

test('a stopped thread has reported all its ends itself', () => {
  const { registry, bind, ended } = start();
  bind(1, 1);
  const other = bind(2, 1);
  registry.threadStopped(1);
  registry.threadGone(1);
  registry.sessionOver({ ...VIEWER, session: '1.1' });
  expect(registry.takeOver().size).toBe(0);
  registry.threadGone(2);
  registry.close();
  registry.close();
  registry.sessionOver({ ...VIEWER, ...other });
  expect([ended, registry.size]).toEqual([['record of 2.1'], 0]);
});

test('an earlier session ends once, independent of threads, or with the registry', () => {
  const { registry, ended, onOver } = start();
  const closed = [vi.fn(), vi.fn()];
  const later = { ...VIEWER, session: 't' };
  registry.enterSession(VIEWER, 'again', () => closed[0]?.());
  registry.enterSession(later, 'again', () => closed[1]?.());
  for (const thread of [0, 1]) {
    registry.threadStopped(thread);
    registry.threadGone(thread);
  }
  expect(registry.size).toBe(2);
  expect([registry.sessionOver(VIEWER), registry.sessionOver(VIEWER)]).toEqual(['again', undefined]);
  expect(closed.map((each) => each.mock.calls.length)).toEqual([1, 0]);
  registry.close();
  registry.close();
  expect(closed.map((each) => each.mock.calls.length)).toEqual([1, 1]);
  expect([registry.size, ended, onOver.mock.calls.length]).toEqual([0, [], 0]);
});
