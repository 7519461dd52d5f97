import { expect, test } from 'vitest';
import { ManualClock } from '../../../test/fakes/manual-clock.ts';
import { RecordingLogger } from '../../../test/fakes/recording-logger.ts';
import type { AccessRequest, Denied, Passed } from '../../access/access-check.ts';
import type { SessionSighting } from '../thread-protocol.ts';
import { ViewerAdmissions } from './viewer-admissions.ts';

const DENIED: Denied = { admitted: false, code: 'no', reason: 'no' };
const REQUEST: AccessRequest = {
  ...{ direction: 'outgoing', protocol: 'llhls', url: 'http://a.test:80/app/live/llhls.m3u8?seat=7' },
  client: { address: '192.0.2.1', port: 1, realIp: '192.0.2.1' },
};
const VIEWER: SessionSighting = { outlet: 1, session: 's', remoteAddress: '192.0.2.1' };
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

function admissions() {
  const asked: (readonly [vhost: string, url: string])[] = [];
  const over: number[] = [];
  const revoked: string[] = [];
  const gone = new Set<string>();
  const state = { says: (): object => ({}) };
  const made = new ViewerAdmissions({
    judge: async (vhost, request) => {
      const number = asked.push([vhost, request.url]);
      const said = state.says();
      if ('code' in said) return said as Denied;
      const passed: Passed = { admitted: true, expiresAt: Number.POSITIVE_INFINITY, closed: () => void over.push(number), ...said };
      return passed;
    },
    revoke: (sessions) => revoked.push(...sessions),
    isThere: ({ session }) => !gone.has(session),
    clock: new ManualClock(),
    logger: new RecordingLogger(),
  });
  /** A viewer with a session, which is over. */
  const left = async (sighting = VIEWER, request = REQUEST): Promise<void> => {
    const verdict = await made.ask(1, 'v', request);
    made.seen(sighting, verdict.admitted ? verdict.ticket : undefined, true);
    made.sessionOver(sighting);
  };
  return { made, asked, over, revoked, gone, state, left };
}

test('one who comes back with its session is asked about again, by the URL of its beginning, and has another end', async () => {
  const { made, asked, over, revoked, left } = admissions();
  await left();
  expect(over).toEqual([1]);
  // The stream has begun anew.
  const again = { ...VIEWER, outlet: 2 };
  made.seen(again, undefined, true);
  made.seen(again, undefined, true);
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
  made.seen(VIEWER, undefined, true);
  await settled();
  expect(asked).toHaveLength(3);
});

test.each<[what: string, said: object]>([
  ['is refused', DENIED],
  ['is to be elsewhere', { newUrl: 'http://a.test:80/app/other' }],
])('one who %s by then is sent away', async (_what, said) => {
  const { made, over, revoked, state, left } = admissions();
  await left();
  state.says = () => said;
  made.seen(VIEWER, undefined, true);
  await settled();
  expect(revoked).toEqual(['s']);
  // Who was let in for another place has its end, too.
  expect(over).toEqual('code' in said ? [1] : [1, 2]);
});

test('one who was sent where it is may come back there, for as long as it is told then', async () => {
  const { made, revoked, state, left } = admissions();
  state.says = () => ({ newUrl: 'http://a.test:80/app/other' });
  await left();
  state.says = () => ({ newUrl: 'http://a.test:80/app/other', expiresAt: new ManualClock().now() });
  made.seen(VIEWER, undefined, true);
  await settled();
  await expect.poll(() => revoked).toEqual(['s']);
});

test('nobody else is asked about: other sessions, and those that are seen by one more thread', async () => {
  const { made, asked } = admissions();
  const verdict = await made.ask(1, 'v', REQUEST);
  made.seen(VIEWER, undefined, true);
  made.seen(VIEWER, verdict.admitted ? verdict.ticket : undefined, true);
  made.seen(VIEWER, undefined, true);
  made.seen({ ...VIEWER, session: 'stranger' }, undefined, true);
  await settled();
  expect(asked).toHaveLength(1);
});

test('one who leaves while it is asked about has its end, and may come back', async () => {
  const { made, asked, over, gone, left } = admissions();
  await left();
  made.seen(VIEWER, undefined, true);
  gone.add('s');
  await settled();
  expect([asked.length, over]).toEqual([2, [1, 2]]);
  gone.clear();
  made.seen(VIEWER, undefined, true);
  await settled();
  expect(asked).toHaveLength(3);
});

test('who is not remembered begins anew: after very many others, or with very long questions', async () => {
  const { made, asked, revoked, left } = admissions();
  for (let n = 0; n <= 10_000; n += 1) await left({ ...VIEWER, session: `s${n}` });
  expect(revoked).toEqual(Array.from({ length: 1000 }, (_, n) => `s${n}`));
  const before = asked.length;
  made.seen({ ...VIEWER, session: 's0' }, undefined, true);
  made.seen({ ...VIEWER, session: 's1000' }, undefined, true);
  await settled();
  expect(asked.length - before).toBe(1);
  await left({ ...VIEWER, session: 'long' }, { ...REQUEST, url: `${REQUEST.url}&x=${'y'.repeat(5000)}` });
  expect(revoked.at(-1)).toBe('long');
});

test('at the end all are over, also those about whom somebody is asked just then', async () => {
  const { made, over, left } = admissions();
  await left();
  made.seen(VIEWER, undefined, true);
  made.close();
  await settled();
  expect(over).toEqual([1, 2]);
});
