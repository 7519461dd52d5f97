import { afterEach, expect, test, vi } from 'vitest';
import { ManualClock } from '../../../test/fakes/manual-clock.ts';
import { RecordingLogger } from '../../../test/fakes/recording-logger.ts';
import type { AccessRequest, Denied, Passed } from '../../access/access-check.ts';
import type { AdmissionRecord } from '../../access/admission-webhooks.ts';
import type { AdmissionText, SessionSighting } from '../thread-protocol.ts';
import { ViewerAdmissions } from './viewer-admissions.ts';

const DENIED: Denied = { admitted: false, code: 'no', reason: 'no' };
const REQUEST: AccessRequest = {
  ...{ direction: 'outgoing', protocol: 'llhls', url: 'http://a.test:80/app/live/llhls.m3u8?seat=7' },
  client: { address: '192.0.2.1', port: 1, realIp: '192.0.2.1' },
};
const VIEWER: SessionSighting = { feed: 1, session: 's', remoteAddress: '192.0.2.1' };
const SETTINGS = { controlServerUrl: 'http://127.0.0.1:1/', secretKey: 'SECRET' };
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

afterEach(() => void vi.useRealTimers());

/** Thread 1 admits viewers by itself, and is notified of ended tickets. */
function admissions() {
  const asked: (readonly [vhost: string, url: string])[] = [];
  const over: number[] = [];
  const revoked: string[] = [];
  const gone = new Set<string>();
  const adopted: AdmissionRecord[] = [];
  const state = { says: (): object => ({}) };
  const clock = new ManualClock();
  const made: ViewerAdmissions = new ViewerAdmissions({
    judge: async (vhost, request) => {
      const number = asked.push([vhost, request.url]);
      const said = await state.says();
      if ('code' in said) return said as Denied;
      const passed: Passed = { admitted: true, expiresAt: Number.POSITIVE_INFINITY, closed: () => void over.push(number), ...said };
      return passed;
    },
    adopt: (record) => {
      adopted.push(record);
      return () => void over.push(0);
    },
    onOver: () => over.push(...[...made.takeOver().values()].flat()),
    revoke: (sessions) => revoked.push(...sessions),
    isThere: ({ session }) => !gone.has(session),
    clock,
    logger: new RecordingLogger(),
  });
  const letIn = (request = REQUEST): { ticket: number; record: AdmissionText } => {
    const ticket = asked.push(['v', request.url]);
    return { ticket, record: JSON.stringify({ vhost: 'v', settings: SETTINGS, request, ...state.says() }) };
  };
  const seen = (sighting: SessionSighting, isThere = true): void => made.seen(1, { sighting, ended: null }, isThere);
  /** A viewer whose session is over. */
  const left = (sighting = VIEWER, request = REQUEST): void => {
    made.seen(1, { sighting, ended: null, ...letIn(request) }, true);
    made.sessionOver(sighting);
    clock.advance(1000);
  };
  return { made, asked, over, revoked, gone, adopted, state, clock, letIn, seen, left };
}

test('a viewer that returns with its session is asked about again by its first URL, and ends again', async () => {
  const { made, asked, over, revoked, clock, seen, left } = admissions();
  left();
  expect(over).toEqual([1]);
  // The stream has restarted.
  const again = { ...VIEWER, feed: 2 };
  seen(again);
  seen(again);
  await settled();
  expect([asked, over, revoked]).toEqual([
    [
      ['v', REQUEST.url],
      ['v', REQUEST.url],
    ],
    [1],
    [],
  ]);
  made.sessionOver(again);
  expect(over).toEqual([1, 2]);
  clock.advance(1000);
  seen(VIEWER);
  await settled();
  expect(asked).toHaveLength(3);
});

test.each<[what: string, said: object]>([
  ['is refused', DENIED],
  ['is redirected', { newUrl: 'http://a.test:80/app/other' }],
])('a viewer that %s on its return is disconnected', async (_what, said) => {
  const { over, revoked, state, seen, left } = admissions();
  left();
  state.says = () => said;
  seen(VIEWER);
  await settled();
  expect(revoked).toEqual(['s']);
  // A client that was admitted for another place has its end, too.
  expect(over).toEqual('code' in said ? [1] : [1, 2]);
});

test('a viewer redirected to the same place may return there, until the new expiry', async () => {
  const { revoked, state, seen, left } = admissions();
  state.says = () => ({ newUrl: 'http://a.test:80/app/other' });
  left();
  state.says = () => ({ newUrl: 'http://a.test:80/app/other', expiresAt: new ManualClock().now() });
  seen(VIEWER);
  await settled();
  await expect.poll(() => revoked).toEqual(['s']);
});

test('unknown sessions, and sessions seen by a second thread, are not asked about', async () => {
  const { made, asked, letIn, seen } = admissions();
  const admission = letIn();
  seen(VIEWER);
  made.seen(1, { sighting: VIEWER, ended: null, ...admission }, true);
  seen(VIEWER);
  seen({ ...VIEWER, session: 'stranger' });
  await settled();
  expect(asked).toHaveLength(1);
});

test('a viewer that leaves while the control server is asked has its end, and may return', async () => {
  const { asked, over, gone, clock, seen, left } = admissions();
  left();
  seen(VIEWER);
  gone.add('s');
  await settled();
  expect([asked.length, over]).toEqual([2, [1, 2]]);
  gone.clear();
  clock.advance(1000);
  seen(VIEWER);
  await settled();
  expect(asked).toHaveLength(3);
});

test('a forgotten viewer starts again: after 10,000 others, or with a very long URL', async () => {
  const { asked, revoked, seen, left } = admissions();
  for (let n = 0; n <= 10_000; n += 1) left({ ...VIEWER, session: `s${n}` });
  expect(revoked).toEqual(Array.from({ length: 1000 }, (_, n) => `s${n}`));
  const before = asked.length;
  seen({ ...VIEWER, session: 's0' });
  seen({ ...VIEWER, session: 's1000' });
  await settled();
  expect(asked.length - before).toBe(1);
  left({ ...VIEWER, session: 'long' }, { ...REQUEST, url: `${REQUEST.url}&x=${'y'.repeat(5000)}` });
  expect(revoked.at(-1)).toBe('long');
});

test('a close ends all admissions, including those being asked about', async () => {
  const { made, over, seen, left } = admissions();
  left();
  seen(VIEWER);
  made.close();
  await settled();
  expect(over).toEqual([1, 2]);
});

test('a viewer that returns at once is asked about after the control server could process its end', async () => {
  const { made, asked, over, clock, letIn, seen } = admissions();
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  made.seen(1, { sighting: VIEWER, ended: null, ...letIn() }, true);
  made.sessionOver(VIEWER);
  clock.advance(100);
  seen(VIEWER);
  clock.advance(399);
  vi.advanceTimersByTime(399);
  await settled();
  expect([asked.length, over]).toEqual([1, [1]]);
  clock.advance(1);
  vi.advanceTimersByTime(1);
  await settled();
  expect(asked).toHaveLength(2);
  made.sessionOver(VIEWER);
  expect(over).toEqual([1, 2]);
  seen(VIEWER);
  expect(vi.getTimerCount()).toBe(1);
  made.close();
  expect(vi.getTimerCount()).toBe(0);
});

test('a viewer whose stream restarts during the question is admitted to the new stream', async () => {
  const { made, asked, over, revoked, gone, state, seen, left } = admissions();
  left();
  const { promise, resolve } = Promise.withResolvers<object>();
  state.says = () => promise;
  seen(VIEWER);
  made.sessionOver(VIEWER);
  const again = { ...VIEWER, feed: 2 };
  seen(again);
  resolve({});
  await settled();
  expect([asked.length, over, revoked, gone.size]).toEqual([2, [1], [], 0]);
  made.sessionOver(VIEWER);
  expect(over).toEqual([1]);
  made.sessionOver(again);
  expect(over).toEqual([1, 2]);
});

test('when a thread dies its viewers end here, and may return through another thread', async () => {
  const { made, asked, over, adopted, clock, letIn, seen } = admissions();
  made.seen(1, { sighting: VIEWER, ended: null, ...letIn() }, true);
  made.threadGone(1);
  made.sessionOver(VIEWER);
  expect([adopted.length, adopted[0]?.request.url, over]).toEqual([1, REQUEST.url, [0]]);
  clock.advance(1000);
  seen(VIEWER);
  await settled();
  expect(asked).toHaveLength(2);
  made.threadGone(1);
  made.sessionOver(VIEWER);
  expect(over).toEqual([0, 2]);
  expect(adopted).toHaveLength(1);
});

test('an end reported before the start of its session is not reported again', () => {
  const { made, over, left } = admissions();
  made.seen(1, { sighting: VIEWER, ended: null, ticket: 7 }, true);
  made.sessionOver(VIEWER);
  expect(over).toEqual([]);
  left();
  expect(over).toHaveLength(1);
});

test('of 40 returning viewers 32 are asked about at once, and the others after the first answers', async () => {
  const { asked, revoked, state, seen, left } = admissions();
  const crowd = Array.from({ length: 40 }, (_, n) => ({ ...VIEWER, session: `s${n}` }));
  for (const viewer of crowd) left(viewer);
  const { promise, resolve } = Promise.withResolvers<object>();
  state.says = () => promise;
  for (const viewer of crowd) seen(viewer);
  await settled();
  expect(asked).toHaveLength(40 + 32);
  state.says = () => DENIED;
  resolve({});
  await settled();
  expect(asked).toHaveLength(80);
  expect(revoked).toEqual(crowd.slice(32).map(({ session }) => session));
});

test('waiting viewers are not asked about after a close', async () => {
  const { made, asked, over, state, seen, left } = admissions();
  const crowd = Array.from({ length: 40 }, (_, n) => ({ ...VIEWER, session: `s${n}` }));
  for (const viewer of crowd) left(viewer);
  const { promise, resolve } = Promise.withResolvers<object>();
  state.says = () => promise;
  for (const viewer of crowd) seen(viewer);
  made.close();
  resolve({});
  await settled();
  expect([asked.length, over.length]).toEqual([72, 72]);
});

test('a viewer that returns while very many are asked about starts over', () => {
  const { revoked, state, seen, left } = admissions();
  for (let n = 0; n < 10_000; n += 1) left({ ...VIEWER, session: `s${n}` });
  state.says = () => new Promise(() => undefined);
  for (let n = 0; n < 10_000; n += 1) seen({ ...VIEWER, session: `s${n}` });
  state.says = () => ({});
  left();
  expect(revoked).toEqual([]);
  seen(VIEWER);
  expect(revoked).toEqual(['s']);
});
