import { describe, expect, it } from 'vitest';
import { ManualClock } from '../../test/fakes/manual-clock.ts';
import { hashKey } from '../util/key-hash.ts';
import type { AccessPlace, AccessRequest, Admitted, Direction, Verdict } from './access-check.ts';
import { AccessControls } from './access-controls.ts';
import type { ApplicationKeys, HostKeys } from './access-keys.ts';

const KEY = 'the-key-of-studio-1';
const OTHER = 'the-key-of-studio-2';
const HASHES: Readonly<Record<string, string>> = { [KEY]: hashKey(KEY), [OTHER]: hashKey(OTHER) };
const CLIENT = { address: '192.0.2.7', port: 40_000, realIp: '192.0.2.7' };
const PLACE: AccessPlace = { host: 'a.test', app: 'app', stream: 'live' };

const named = (name: string, key: string, more: object = {}): { name: string; hash: string } => ({
  name,
  hash: HASHES[key] ?? '',
  ...more,
});

function keys(app: ApplicationKeys, more: Partial<HostKeys> = {}): HostKeys {
  return {
    applications: new Map([
      ['app', app],
      ['open', {}],
    ]),
    template: {},
    ...more,
  };
}

function ring(held: HostKeys | undefined) {
  const clock = new ManualClock();
  const told: unknown[] = [];
  const faults: unknown[] = [];
  const access = new AccessControls({
    clock,
    onFault: (error) => faults.push(error),
    tell: (denied, vhost) => told.push([vhost, denied.code, denied.reason, denied.challenge]),
  });
  const follow = (now: HostKeys | undefined): void =>
    access.follow([
      { name: 'v', hostNames: ['a.test'], keys: now },
      { name: 'w', hostNames: ['*'] },
    ]);
  follow(held);
  const admit = (direction: Direction, query: string, place = PLACE, authorization?: string): Verdict => {
    const url = `rtmp://a.test:1935/app/live${query}`;
    const request: AccessRequest = { direction, protocol: 'rtmp', url, client: { ...CLIENT, authorization } };
    return access.admit(place, request) as Verdict;
  };
  const code = (...given: Parameters<typeof admit>): string => {
    const verdict = admit(...given);
    return verdict.admitted ? 'in' : verdict.code;
  };
  return { access, admit, clock, code, faults, follow, told };
}

const leaseOf = (verdict: Verdict): Admitted => {
  if (!verdict.admitted) throw new Error(verdict.reason);
  return verdict;
};

describe('KeyRing', () => {
  it('requires a key only when the application has a list for the direction', () => {
    const { code, told } = ring(keys({ publishKeys: [named('a', KEY)] }));
    expect(code('incoming', '')).toBe('key-missing');
    expect(code('incoming', `?key=${KEY}`)).toBe('in');
    expect(code('incoming', `?x=1&key=${KEY}`)).toBe('in');
    expect(code('incoming', '', PLACE, `Bearer ${KEY}`)).toBe('in');
    expect(code('incoming', '', PLACE, `bearer  ${KEY} `)).toBe('in');
    expect(code('outgoing', '')).toBe('in');
    expect(code('incoming', '', { ...PLACE, app: 'open' })).toBe('in');
    expect(code('incoming', '', { ...PLACE, app: 'nowhere' })).toBe('in');
    expect(code('incoming', '', { ...PLACE, host: 'b.test' })).toBe('in');
    // Omitting the application must not bypass its keys.
    expect(code('incoming', `?key=${KEY}`, { host: 'a.test' })).toBe('key-wrong');
    expect(told[0]).toEqual(['v', 'key-missing', 'there is no publish key in the request', 'Bearer']);
  });

  it('takes play tokens by `token`, and accepts no key of the other list', () => {
    const { code } = ring(keys({ publishKeys: [named('a', KEY)], playTokens: [named('b', OTHER)] }));
    expect(code('outgoing', `?token=${OTHER}`)).toBe('in');
    expect(code('outgoing', `?key=${OTHER}`)).toBe('key-missing');
    expect(code('outgoing', `?token=${KEY}`)).toBe('key-wrong');
    expect(code('incoming', `?key=${OTHER}`)).toBe('key-wrong');
    expect(code('incoming', `?token=${KEY}`)).toBe('key-missing');
  });

  it.each(['x', `${KEY}x`, KEY.slice(1), KEY.toUpperCase(), 'k'.repeat(10_000), '%00%ff'])('refuses the key %.40s', (wrong) => {
    const { code, told } = ring(keys({ publishKeys: [named('a', KEY)] }));
    expect(code('incoming', `?key=${wrong}`)).toBe('key-wrong');
    expect(JSON.stringify(told)).not.toContain(wrong);
    // A valid key suffices beside an invalid one, because proxies add credentials of their own.
    expect(code('incoming', `?key=${KEY}`, PLACE, `Bearer ${wrong}`)).toBe('in');
  });

  it.each(['fifteen-letters', 'k'.repeat(257)])('refuses a key of invalid length even when its hash is configured: %.20s', (given) => {
    const { code } = ring(keys({ publishKeys: [{ name: 'given', hash: hashKey(given) }, named('studio', KEY)] }));
    expect([code('incoming', `?key=${given}`), code('incoming', `?key=${KEY}`)]).toEqual(['key-wrong', 'in']);
  });

  it('refuses every key while the list is empty', () => {
    const { code } = ring(keys({ publishKeys: [] }));
    expect(code('incoming', `?key=${KEY}`)).toBe('key-wrong');
  });

  it('knows expiry and streams, and every key that fits', () => {
    const { code, clock } = ring(
      keys({
        publishKeys: [
          named('old', KEY, { expires: new Date(0).toISOString() }),
          named('shows', KEY, { streams: 'show-?*', expires: '2100-01-01' }),
          named('unreadable', OTHER, { expires: 'whenever' }),
        ],
      }),
    );
    expect(clock.now()).toBeLessThan(Date.UTC(2100, 0));
    expect(code('incoming', `?key=${KEY}`, { ...PLACE, stream: 'show-1' })).toBe('in');
    expect(code('incoming', `?key=${KEY}`)).toBe('key-other-stream');
    expect(code('incoming', `?key=${OTHER}`)).toBe('key-expired');
    clock.advance(Date.UTC(2100, 0) - clock.now());
    expect(code('incoming', `?key=${KEY}`, { ...PLACE, stream: 'show-1' })).toBe('key-expired');
  });

  it('uses the keys of the template for applications made from it', () => {
    const { code } = ring(keys({}, { template: { publishKeys: [named('a', KEY)] } }));
    expect(code('incoming', '')).toBe('in');
    expect(code('incoming', '', { ...PLACE, app: 'made' })).toBe('key-missing');
    expect(code('incoming', `?key=${KEY}`, { ...PLACE, app: 'made' })).toBe('in');
  });

  it('disconnects the clients of a removed key, once, and no others', async () => {
    const both = [named('a', KEY), named('b', OTHER)];
    const { admit, follow, faults } = ring(keys({ publishKeys: both }));
    const ended: string[] = [];
    const begin = (who: string, query: string): Admitted => {
      const lease = leaseOf(admit('incoming', query));
      lease.begin((reason) => ended.push(`${who}: ${reason}`));
      return lease;
    };
    begin('one', `?key=${KEY}`);
    begin('other', `?key=${OTHER}`);
    begin('left', `?key=${KEY}`).close();
    const early = leaseOf(admit('incoming', `?key=${KEY}`));
    follow(keys({ publishKeys: [...both].reverse() }));
    expect(ended).toEqual([]);
    follow(keys({ publishKeys: [named('b', OTHER)] }));
    expect(ended).toEqual(['one: the key that it came with was removed']);
    // The key was removed between the verdict and the beginning of the session.
    early.begin((reason) => ended.push(`early: ${reason}`));
    await Promise.resolve();
    expect(ended).toEqual(['one: the key that it came with was removed', 'early: the key that it came with was removed']);
    follow(undefined);
    expect(ended).toHaveLength(3);
    follow(keys({ publishKeys: both }));
    follow(undefined);
    expect([ended.length, faults]).toEqual([3, []]);
  });

  it('ends a lease with its key, and names the key of a lease', () => {
    const { access, admit, follow } = ring(keys({ playTokens: [named('a', KEY, { expires: '2100-01-01' }), named('b', OTHER)] }));
    const [first, second] = [KEY, OTHER].map((key) => leaseOf(admit('outgoing', `?token=${key}`)));
    expect([first?.expiresAt, second?.expiresAt]).toEqual([Date.UTC(2100, 0), Number.POSITIVE_INFINITY]);
    expect(first?.grant).toMatch(/^[0-9a-f]{12}$/);
    expect(first?.grant).not.toBe(second?.grant);
    expect(access.keys.holds(first?.grant ?? '')).toBe(true);
    follow(keys({ playTokens: [named('b', OTHER)] }));
    expect([access.keys.holds(first?.grant ?? ''), access.keys.holds(second?.grant ?? '')]).toEqual([false, true]);
    // The same key in another place has another grant.
    follow(keys({ publishKeys: [named('b', OTHER)] }));
    expect(access.keys.holds(second?.grant ?? '')).toBe(false);
  });

  it('remembers the last use of a key on this and other nodes, while the key exists', () => {
    const { access, admit, clock, follow } = ring(keys({ playTokens: [named('a', KEY)] }));
    const { grant = '' } = leaseOf(admit('outgoing', `?token=${KEY}`));
    expect(access.keys.usedAt(grant)).toBe(clock.now());
    expect([access.keys.takeUses(), access.keys.takeUses()]).toEqual([[grant], []]);
    clock.advance(5000);
    access.keys.noteUses([grant, 'unknown']);
    expect([access.keys.usedAt(grant), access.keys.usedAt('unknown')]).toEqual([clock.now(), undefined]);
    admit('outgoing', `?token=${KEY}`);
    follow(undefined);
    expect([access.keys.usedAt(grant), access.keys.takeUses()]).toEqual([undefined, []]);
  });

  it('exports the last uses of keys to the next run, even when the salts of a file have changed', () => {
    const first = ring(keys({ playTokens: [named('a', KEY), named('b', OTHER)] }));
    first.admit('outgoing', `?token=${KEY}`);
    const uses = first.access.keys.uses;
    expect([...uses.values()]).toEqual([first.clock.now()]);
    const anew = { ...named('a', KEY), hash: hashKey(KEY) };
    const second = ring(keys({ playTokens: [anew, named('b', OTHER)], publishKeys: [named('a', OTHER)] }));
    second.clock.advance(60_000);
    second.access.keys.restoreUses(new Map([...uses, ['unknown', 1]]));
    expect(second.access.keys.uses).toEqual(uses);
    second.admit('outgoing', `?token=${KEY}`);
    // The restored use is older than the later one, which stays.
    second.access.keys.restoreUses(uses);
    expect([...second.access.keys.uses.values()]).toEqual([second.clock.now()]);
    // A key that was recreated under another key's name has its own history.
    second.follow(keys({ playTokens: [named('a', KEY, { created: '2031-01-31' })] }));
    second.access.keys.restoreUses(uses);
    expect(second.access.keys.uses).toEqual(new Map());
  });
});
