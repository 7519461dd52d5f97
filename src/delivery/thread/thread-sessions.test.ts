import { beforeEach, describe, expect, test } from 'vitest';
import { memoryInUse } from '../../../test/support/memory.ts';
import { SessionLedger } from '../pool/session-ledger.ts';
import { SessionTokens } from '../session-token.ts';
import type { SessionSighting } from '../thread-protocol.ts';
import { ThreadSessions } from './thread-sessions.ts';

const SECRET = Buffer.alloc(32, 7);
const HERE = { feed: 1, address: 'v\napp\nstream' };
const THERE = { feed: 2, address: 'v\napp\nother' };

describe('session tokens', () => {
  const tokens = new SessionTokens(SECRET, 5);

  test('a token is valid for its stream in every thread with the secret', () => {
    const { id, token } = tokens.mint(HERE.address, 1_800_000_000_500);
    expect(token).toMatch(/^[0-9a-z]{12,}_[\w-]{16}$/);
    expect(new SessionTokens(SECRET, 9).verify(token, HERE.address)).toEqual({ id, expiresAt: 1_800_000_001_000 });
  });

  test('all tokens differ', () => {
    const made = new Set([1, 2, 3].flatMap((n) => [tokens, new SessionTokens(SECRET, n)].map((from) => from.mint(HERE.address, 0).token)));
    expect(made.size).toBe(6);
  });

  test('forged, cut, changed and foreign tokens are refused', () => {
    const { token } = tokens.mint(HERE.address, 1_800_000_000_000);
    const [id = '', key = ''] = [token.slice(0, token.indexOf('_')), token.slice(token.indexOf('_') + 1)];
    expect(tokens.verify(token, THERE.address)).toBeNull();
    expect(new SessionTokens(Buffer.alloc(32, 8), 5).verify(token, HERE.address)).toBeNull();
    expect(tokens.verify(`z${id.slice(1)}_${key}`, HERE.address)).toBeNull();
    for (let at = 0; at < token.length; at += 1) expect(tokens.verify(token.slice(0, at), HERE.address)).toBeNull();
    for (const bad of ['', '_', `${id}_`, `_${key}`, `${id}_${key}x`, `${token}\n`, `${id}_${'A'.repeat(16)}`, 'x'.repeat(5000)]) {
      expect(tokens.verify(bad, HERE.address)).toBeNull();
    }
  });

  test('a token names its play token, and cannot be altered to name another', () => {
    const { id, token } = tokens.mint(HERE.address, 1_800_000_000_000, '0123456789ab');
    expect(id).toMatch(/^[0-9a-z]{12,}G0123456789ab$/);
    expect(new SessionTokens(SECRET, 9).verify(token, HERE.address)).toEqual({ id, expiresAt: 1_800_000_000_000, grant: '0123456789ab' });
    for (const changed of [
      token.replace('G0123456789ab', ''),
      token.replace('G01', 'G02'),
      token.replace('G', 'H'),
      token.replace('ab_', '_'),
    ])
      expect(tokens.verify(changed, HERE.address)).toBeNull();
  });
});

describe('sessions of a thread', () => {
  let now: number;
  let sessions: ThreadSessions;
  const held = new Set<string>();

  const make = (incarnation: number, limit = 100): ThreadSessions =>
    new ThreadSessions({
      tokens: new SessionTokens(SECRET, incarnation),
      clock: { now: () => 1_700_000_000_000 + now, monotonic: () => now },
      limit,
      idle: 30_000,
      lifetime: 100_000,
      holds: (grant) => held.has(grant),
    });
  const events = (): (string | null)[] => sessions.takeEvents().map(({ ended }) => ended);

  beforeEach(() => {
    now = 0;
    sessions = make(1);
  });

  test('a session lives while requests arrive, and ends when they stop', () => {
    const { token } = sessions.create(HERE, '10.0.0.1')!;
    for (now = 0; now < 80_000; now += 20_000) {
      expect(sessions.check(HERE, token, '10.0.0.1')?.token).toBe(token);
      sessions.sweep();
    }
    expect(events()).toEqual([null]);
    now += 30_000;
    sessions.sweep();
    expect(events()).toEqual(['idle']);
    expect(sessions.size).toBe(0);
  });

  test('a token of another thread, or of an idle session, opens its session again', () => {
    const { token } = make(2).create(HERE, '10.0.0.1')!;
    expect(sessions.check(HERE, token, '10.0.0.2')?.token).toBe(token);
    now = 40_000;
    sessions.sweep();
    expect(sessions.check(HERE, token, '10.0.0.2')?.token).toBe(token);
    expect(events()).toEqual([null, 'idle', null]);
  });

  test('an expired token is refused, cached or not', () => {
    const { token } = sessions.create(HERE, '10.0.0.1')!;
    now = 100_000;
    expect(sessions.check(HERE, token, '10.0.0.1')).toBeNull();
    expect(make(3).check(HERE, token, '10.0.0.1')).toBeNull();
    expect(events()).toEqual([null, 'expired']);
  });

  test('an expiring session ends in all threads at its time, and reports "expired"', () => {
    const { token } = sessions.create(HERE, '10.0.0.1', { until: 1_700_000_020_900 })!;
    const other = make(3);
    for (now = 0; now <= 19_000; now += 1000) {
      expect([sessions, other].map((thread) => thread.check(HERE, token, '10.0.0.1')?.token)).toEqual([token, token]);
      sessions.sweep();
    }
    now = 20_000;
    sessions.sweep();
    expect(events()).toEqual([null, 'expired']);
    expect([sessions, other, make(4)].map((thread) => thread.check(HERE, token, '10.0.0.1'))).toEqual([null, null, null]);
  });

  test('a token for another stream is refused, cached or not', () => {
    const { token } = sessions.create(HERE, '10.0.0.1')!;
    expect(sessions.check(THERE, token, '10.0.0.1')).toBeNull();
    expect(make(3).check(THERE, token, '10.0.0.1')).toBeNull();
  });

  test('a revoked token is refused at once and later', () => {
    const { token } = sessions.create(HERE, '10.0.0.1')!;
    sessions.revoke([token]);
    expect(events()).toEqual([null, 'revoked']);
    expect(sessions.check(HERE, token, '10.0.0.1')).toBeNull();
    const other = make(3);
    other.revoke([token.slice(0, token.indexOf('_'))]);
    expect(other.check(HERE, token, '10.0.0.1')).toBeNull();
  });

  test('the number of sessions is bounded, the oldest ends first', () => {
    sessions = make(1, 2);
    for (let n = 0; n < 4; n += 1) sessions.create(HERE, `10.0.0.${n}`);
    expect(sessions.size).toBe(2);
    expect(events()).toEqual([null, null, null, 'too many sessions', null, 'too many sessions']);
  });

  test('the oldest sessions end first, even after others have left', () => {
    sessions = make(1, 4);
    const made: string[] = [];
    const create = (count: number): void => {
      for (let n = 0; n < count; n += 1) made.push(sessions.create(HERE, '10.0.0.1')!.id);
    };
    /** Which of them had to go since it was last asked. */
    const gone = (): number[] =>
      sessions.takeEvents().flatMap(({ sighting, ended }) => (ended === 'too many sessions' ? [made.indexOf(sighting.session)] : []));
    create(6);
    expect(gone()).toEqual([0, 1]);
    sessions.revoke([made[2]!, made[4]!]);
    create(3);
    expect(gone()).toEqual([3]);
    sessions.sweep();
    create(2);
    expect(gone()).toEqual([5, 6]);
    // All who were there.
    sessions.revoke(made);
    create(5);
    expect([gone(), sessions.size]).toEqual([[11], 4]);
  });

  test('ended sessions are freed, even after look-ups', async () => {
    sessions = make(1, 1000);
    /** Some 500 are there at any time. */
    const churn = (): WeakRef<object>[] => {
      const there: string[] = [];
      return Array.from({ length: 10_000 }, () => {
        const session = sessions.create(HERE, '10.0.0.1')!;
        there.push(session.token);
        if (there.length > 500) sessions.revoke([there.shift()!]);
        sessions.takeEvents();
        return new WeakRef(session);
      });
    };
    const all = churn();
    sessions.sweep();
    await memoryInUse();
    expect(sessions.size).toBe(500);
    expect(all.filter((one) => one.deref() !== undefined).length).toBeLessThan(600);
  });

  test('an address has a share of sessions; existing sessions and other addresses continue', () => {
    const full: string[] = [];
    const options = { tokens: new SessionTokens(SECRET, 1), clock: { now: () => now, monotonic: () => now }, limit: 100 };
    sessions = new ThreadSessions({ ...options, share: 2, onFull: (address) => full.push(address), idle: 30_000, lifetime: 100_000 });
    const { token } = sessions.create(HERE, '10.0.0.1')!;
    expect(sessions.count(HERE, 'a player', 1000, '10.0.0.1')).not.toBe('full');
    expect([sessions.create(HERE, '10.0.0.1'), sessions.count(HERE, 'another', 1000, '::ffff:10.0.0.1')]).toEqual([null, 'full']);
    expect([sessions.refused, full, sessions.size]).toEqual([2, ['10.0.0.1', '::ffff:10.0.0.1'], 2]);
    expect(sessions.create(HERE, '10.0.0.2')).not.toBeNull();
    const elsewhere = new ThreadSessions({ ...options, tokens: new SessionTokens(SECRET, 2), idle: 30_000, lifetime: 100_000 });
    expect(sessions.check(HERE, elsewhere.create(HERE, '10.0.0.1')!.token, '10.0.0.1')).not.toBeNull();
    now = 29_999;
    expect(sessions.check(HERE, token, '10.0.0.1')).not.toBeNull();
    now = 31_000;
    sessions.sweep();
    expect(sessions.create(HERE, '10.0.0.1')).not.toBeNull();
  });

  test('bytes are reported once, a thousand viewers at a time, the longest waiting first', () => {
    sessions = make(1, 5000);
    const live = Array.from({ length: 1500 }, () => sessions.create(HERE, '10.0.0.1')!);
    for (const session of live) session.countBytes(10);
    live[0]?.countBytes(5);
    const first = sessions.takeBytes();
    expect([first.sightings.length, first.bytes[0], first.bytes[1]]).toEqual([1000, 15, 10]);
    expect(first.sightings[0]).toEqual({ feed: 1, session: live[0]?.id, remoteAddress: '10.0.0.1' });
    live[0]?.countBytes(7);
    sessions.revoke([live[1400]?.token ?? '']);
    const second = sessions.takeBytes();
    expect([second.sightings.length, second.bytes.at(-1)]).toEqual([500, 7]);
    expect(sessions.takeBytes()).toEqual({ sightings: [], bytes: [] });
  });

  test('closing a feed ends its sessions only', () => {
    sessions.create(HERE, '10.0.0.1');
    sessions.create(THERE, '10.0.0.1');
    sessions.closeFeed(HERE.feed);
    expect(sessions.size).toBe(1);
    expect(events()).toEqual([null, null, 'the stream ended']);
  });

  describe('without tokens', () => {
    const seen = (remoteAddress: string, player = 'vlc', place = HERE): ReturnType<typeof sessions.count> =>
      sessions.count(place, `${remoteAddress} ${player}`, 1000, remoteAddress);

    test('an address with one player is one viewer while it sends requests', () => {
      for (now = 0; now < 5000; now += 900) {
        seen('10.0.0.1');
        sessions.sweep();
      }
      expect(events()).toEqual([null]);
      now += 1000;
      sessions.sweep();
      expect(events()).toEqual(['idle']);
    });

    test('other addresses, players and feeds are other viewers', () => {
      seen('10.0.0.1');
      seen('10.0.0.1', 'hls.js');
      seen('10.0.0.2');
      seen('10.0.0.1', 'vlc', THERE);
      expect(sessions.size).toBe(4);
      sessions.closeFeed(HERE.feed);
      expect(sessions.size).toBe(1);
    });

    test('a viewer has the same id in every thread', () => {
      seen('10.0.0.1');
      const [first] = sessions.takeEvents();
      sessions = make(2);
      seen('10.0.0.1');
      expect(sessions.takeEvents()[0]?.sighting.session).toBe(first?.sighting.session);
    });

    test('a disconnected viewer is refused, others are not', () => {
      seen('10.0.0.1');
      seen('10.0.0.2');
      const [first] = sessions.takeEvents();
      sessions.revoke([first?.sighting.session ?? '']);
      expect(events()).toEqual(['revoked']);
      expect(seen('10.0.0.1')).toBeNull();
      expect(seen('10.0.0.2')).not.toBeNull();
      expect(events()).toEqual([]);
    });

    test('a player name of any length takes bounded memory', () => {
      seen('10.0.0.1', 'x'.repeat(100_000));
      seen('10.0.0.1', 'x'.repeat(200_000));
      expect(sessions.size).toBe(1);
    });
  });

  test('a session ends with its play token, also in a thread that did not know it', () => {
    held.add('0123456789ab');
    const bound = sessions.create(HERE, '10.0.0.1', { grant: '0123456789ab' })!;
    const free = sessions.create(HERE, '10.0.0.1')!;
    const idle = sessions.create(HERE, '10.0.0.1', { grant: '0123456789ab' })!;
    const elsewhere = make(2);
    for (const { token } of [bound, free]) {
      expect(sessions.check(HERE, token, '10.0.0.1')).not.toBeNull();
      expect(elsewhere.check(HERE, token, '10.0.0.1')).not.toBeNull();
    }
    events();
    held.clear();
    expect(sessions.check(HERE, bound.token, '10.0.0.1')).toBeNull();
    expect(make(3).check(HERE, bound.token, '10.0.0.1')).toBeNull();
    expect(elsewhere.check(HERE, bound.token, '10.0.0.1')).toBeNull();
    sessions.sweep();
    expect(sessions.takeEvents()).toMatchObject([
      { sighting: { session: bound.id }, ended: 'its play token was removed' },
      { sighting: { session: idle.id }, ended: 'its play token was removed' },
    ]);
    expect(sessions.check(HERE, free.token, '10.0.0.1')).not.toBeNull();
  });
});

describe('session ledger', () => {
  const viewer: SessionSighting = { feed: 1, session: 's1', remoteAddress: '10.0.0.1' };
  let told: string[];
  let ledger: SessionLedger;

  beforeEach(() => {
    told = [];
    ledger = new SessionLedger({
      sessionOpened: ({ session }) => {
        told.push(`+${session}`);
        return { countBytes: (bytes) => told.push(`${session} ${bytes}`), close: () => told.push(`${session} closed`) };
      },
      sessionClosed: ({ session }, reason) => told.push(`-${session} ${reason}`),
    });
  });

  test('a viewer seen by two threads counts once, until the last one misses it', () => {
    ledger.opened(1, viewer);
    ledger.opened(2, viewer);
    ledger.closed(1, viewer, 'idle');
    expect(told).toEqual(['+s1']);
    ledger.closed(2, viewer, 'idle');
    expect(told).toEqual(['+s1', 's1 closed', '-s1 idle']);
    ledger.closed(2, viewer, 'idle');
    expect(ledger.size).toBe(0);
  });

  test('bytes sent by any thread are counted for the viewer while it exists', () => {
    ledger.opened(1, viewer);
    ledger.countBytes({ sightings: [{ ...viewer, session: 'unknown' }, viewer], bytes: [1, 2] });
    ledger.closed(1, viewer, 'idle');
    ledger.countBytes({ sightings: [viewer], bytes: [3] });
    expect(told).toEqual(['+s1', 's1 2', 's1 closed', '-s1 idle']);
  });

  test('a dead thread ends only its own viewers', () => {
    ledger.opened(1, viewer);
    ledger.opened(2, viewer);
    ledger.opened(2, { ...viewer, session: 's2' });
    ledger.threadGone(2);
    expect(told).toEqual(['+s1', '+s2', 's2 closed', '-s2 the delivery thread ended']);
  });

  test('a removed feed ends its viewers, and later reports about it are ignored', () => {
    ledger.opened(1, viewer);
    ledger.opened(1, { ...viewer, feed: 2 });
    ledger.feedGone(1);
    ledger.closed(1, viewer, 'the stream ended');
    expect(told).toEqual(['+s1', '+s1', 's1 closed', '-s1 the stream ended']);
    expect(ledger.size).toBe(1);
  });
});
