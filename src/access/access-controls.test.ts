import { describe, expect, it, vi } from 'vitest';
import { ManualClock } from '../../test/fakes/manual-clock.ts';
import { type AccessKeyConfig, readVirtualHost } from '../config/index.ts';
import { hashKey } from '../util/key-hash.ts';
import { type AccessCheck, type AccessRequest, OPEN, type Passed, type Verdict, whenJudged } from './access-check.ts';
import { AccessControls, type AccessSettings, accessSettingsOf } from './access-controls.ts';
import { signUrl } from './signed-url.ts';

const KEYS = { policyQueryKeyName: 'policy', signatureQueryKeyName: 'signature', secretKey: 'k' };
const CLIENT = { address: '192.0.2.7', port: 40_000, realIp: '192.0.2.7' };
const REQUEST: AccessRequest = { direction: 'incoming', protocol: 'rtmp', url: 'rtmp://signed.test:1935/app/live', client: CLIENT };

function settings(enables: object): AccessSettings | undefined {
  return accessSettingsOf(readVirtualHost({ name: 'v', signedPolicy: { ...KEYS, enables } }).typed);
}

function controls(checks?: readonly AccessCheck[]) {
  const clock = new ManualClock();
  const faults: string[] = [];
  const told: unknown[] = [];
  const access = new AccessControls({
    clock,
    onFault: (error, what) => faults.push(`${what}: ${String(error)}`),
    tell: (denied, vhost) => told.push([vhost, denied.code]),
    ...(checks !== undefined && { checksOf: () => checks }),
  });
  const own = settings({ providers: 'rtmp' });
  access.follow([
    { name: 'open', hostNames: ['open.test'] },
    { name: 'signed', hostNames: ['signed.test', '*.signed.test'], access: own },
  ]);
  return { access, clock, faults, told };
}

/** A check whose answer comes from the test. */
function asked(): {
  check: AccessCheck;
  answer: (said: Passed | { admitted: false; code: string; reason: string }) => void;
  fail: (error: Error) => void;
} {
  const { promise, resolve, reject } = Promise.withResolvers<Passed | { admitted: false; code: string; reason: string }>();
  return { check: { covers: () => true, judge: () => promise }, answer: resolve, fail: reject };
}

const passes = (more: Partial<Passed> = {}): AccessCheck => ({
  covers: () => true,
  judge: () => ({ admitted: true, expiresAt: Number.POSITIVE_INFINITY, ...more }),
});
const NO = { admitted: false, code: 'no', reason: 'no' } as const;

describe('AccessControls', () => {
  it('has no settings for an unprotected virtual host', () => {
    expect(settings({})).toBeUndefined();
    expect(settings({ publishers: 'dash' })).toBeUndefined();
    expect(accessSettingsOf(readVirtualHost({ name: 'v' }).typed)).toBeUndefined();
    expect(settings({ publishers: 'LLHLS, hlsv3' })?.signedPolicy?.enables.publishers).toEqual(['llhls', 'hls']);
  });

  it('answers at once for an unprotected host and for a signed URL', () => {
    const { access } = controls();
    expect(access.admit({ host: 'open.test' }, REQUEST)).toBe(OPEN);
    expect(access.admit({ host: 'nobody.test' }, REQUEST)).toBe(OPEN);
    expect(access.admit({ host: 'signed.test' }, { ...REQUEST, protocol: 'srt' })).toBe(OPEN);
    expect(access.admit({ host: 'signed.test' }, { ...REQUEST, direction: 'outgoing' })).toBe(OPEN);
    const url = signUrl(REQUEST.url, { url_expire: Date.UTC(2030, 0) }, KEYS);
    expect(access.admit({ host: 'signed.test' }, { ...REQUEST, url })).toMatchObject({ admitted: true });
  });

  it('finds the virtual host by its name before it does by host name, and by patterns', () => {
    const { access, told } = controls();
    expect(access.admit({ host: 'open.test', vhost: 'signed' }, REQUEST)).toMatchObject({ admitted: false });
    expect(access.admit({ host: 'signed.test', vhost: 'open' }, REQUEST)).toBe(OPEN);
    expect(access.admit({ host: 'a.signed.test' }, REQUEST)).toMatchObject({ admitted: false });
    expect(access.admit({ host: 'signed.test', vhost: 'nobody' }, REQUEST)).toMatchObject({ admitted: false });
    expect([access.refusals.total, told]).toEqual([3, Array.from({ length: 3 }, () => ['signed', 'url-unsigned'])]);
  });

  it('verifies known URLs again after the key changed, even when the first key returns', () => {
    const { access } = controls();
    const url = signUrl(REQUEST.url, { url_expire: Date.UTC(2030, 0) }, KEYS);
    const ask = () => access.admit({ host: 'signed.test' }, { ...REQUEST, url });
    const keyed = (secretKey: string) =>
      accessSettingsOf(readVirtualHost({ name: 'signed', signedPolicy: { ...KEYS, secretKey, enables: { providers: 'rtmp' } } }).typed);
    for (let n = 0; n < 4; n += 1) expect(ask()).toMatchObject({ admitted: true });
    access.follow([{ name: 'signed', hostNames: ['signed.test'], access: keyed('another') }]);
    for (let n = 0; n < 4; n += 1) expect(ask()).toMatchObject({ admitted: false, code: 'signature-wrong' });
    access.follow([{ name: 'signed', hostNames: ['signed.test'], access: keyed('k') }]);
    expect(ask()).toMatchObject({ admitted: true });
  });

  it('uses the current settings', () => {
    const { access } = controls();
    expect(access.covers('signed', 'incoming', 'rtmp')).toBe(true);
    access.follow([{ name: 'signed', hostNames: ['signed.test'] }]);
    expect(access.covers('signed', 'incoming', 'rtmp')).toBe(false);
    expect(access.admit({ host: 'signed.test' }, REQUEST)).toBe(OPEN);
  });

  it('verifies known signed URLs again after a change of settings', () => {
    const { access, clock } = controls();
    const url = signUrl(REQUEST.url, { url_expire: clock.now() + 1000 }, KEYS);
    const judge = () => access.admit({ host: 'signed.test' }, { ...REQUEST, url });
    for (let n = 0; n < 5; n += 1) expect(judge()).toMatchObject({ admitted: true });
    const changed = { ...KEYS, secretKey: 'another', enables: { providers: 'rtmp' } };
    const other = accessSettingsOf(readVirtualHost({ name: 'v', signedPolicy: changed }).typed);
    access.follow([{ name: 'signed', hostNames: ['signed.test'], access: other }]);
    expect(judge()).toMatchObject({ admitted: false, code: 'signature-wrong' });
  });

  it('protects all virtual hosts while it ends sessions of a removed key', () => {
    const { access } = controls();
    const open = { name: 'open', hostNames: ['open.test'] };
    const signed = { name: 'signed', hostNames: ['signed.test'], access: settings({ providers: 'rtmp' }) };
    const keys = (...publishKeys: AccessKeyConfig[]) => ({ applications: new Map([['app', { publishKeys }]]), template: {} });
    access.follow([{ ...open, keys: keys({ name: 'k', hash: hashKey('the-key-of-a-studio') }) }, signed]);
    const url = 'rtmp://open.test:1935/app/live?key=the-key-of-a-studio';
    const lease = access.admit({ host: 'open.test', app: 'app', stream: 'live' }, { ...REQUEST, url }) as Verdict & { admitted: true };
    const seen: unknown[] = [];
    lease.begin((reason) => seen.push(reason, access.admit({ host: 'signed.test' }, REQUEST)));
    access.follow([{ ...open, keys: keys() }, signed]);
    expect(seen).toEqual(['the key that it came with was removed', expect.objectContaining({ admitted: false })]);
  });

  it('asks all checks in order; the smaller limit counts, with its reason', () => {
    vi.useFakeTimers();
    const { access, clock } = controls([
      passes({ expiresAt: Date.UTC(2026, 0, 1, 0, 1), expiry: 'first' }),
      passes({ expiresAt: Date.UTC(2026, 0, 1, 0, 0, 30), expiry: 'second' }),
      passes(),
    ]);
    const verdict = access.admit({ host: 'signed.test' }, REQUEST) as Verdict & { admitted: true };
    expect(verdict.expiresAt).toBe(clock.now() + 30_000);
    const expired = vi.fn();
    verdict.begin(expired);
    clock.advance(29_999);
    vi.advanceTimersByTime(29_999);
    expect(expired).not.toHaveBeenCalled();
    clock.advance(1);
    vi.advanceTimersByTime(1);
    expect(expired.mock.calls).toEqual([['second']]);
    vi.useRealTimers();
  });

  it('waits again when the wall clock was set back, and not after the session has ended', () => {
    vi.useFakeTimers();
    const { access, clock } = controls([passes({ expiresAt: Date.UTC(2026, 0, 1, 0, 0, 10) })]);
    const expired = vi.fn();
    const [first, second] = [0, 1].map(() => access.admit({ host: 'signed.test' }, REQUEST) as Verdict & { admitted: true });
    first?.begin(expired);
    second?.begin(expired);
    second?.close();
    vi.advanceTimersByTime(10_000); // the wall clock stands still
    expect(expired).not.toHaveBeenCalled();
    clock.advance(10_000);
    vi.advanceTimersByTime(10_000);
    expect(expired).toHaveBeenCalledTimes(1);
    expect(vi.getTimerCount()).toBe(0);
    vi.useRealTimers();
  });

  it('tells each check that admitted a client about the end once, even when a later check refuses', async () => {
    const closed = vi.fn();
    const no: AccessCheck = { covers: () => true, judge: () => NO };
    expect(controls([passes({ closed }), no]).access.admit({ host: 'signed.test' }, REQUEST)).toEqual(NO);
    expect(closed).toHaveBeenCalledTimes(1);
    const later = asked();
    const { access, told } = controls([passes({ closed }), later.check, no]);
    const judged = access.admit({ host: 'signed.test' }, REQUEST);
    later.answer({ admitted: true, expiresAt: 5, closed });
    expect(await judged).toEqual(NO);
    expect([closed.mock.calls.length, told]).toEqual([3, [['signed', 'no']]]);
    const good = controls([passes({ closed })]).access.admit({ host: 'signed.test' }, REQUEST) as Verdict & { admitted: true };
    good.close();
    good.close();
    expect(closed).toHaveBeenCalledTimes(4);
  });

  it('refuses when a check fails, at once or later', async () => {
    const broken: AccessCheck = {
      covers: () => true,
      judge: () => {
        throw new Error('broken');
      },
    };
    const { access, faults } = controls([broken]);
    expect(access.admit({ host: 'signed.test' }, REQUEST)).toMatchObject({ admitted: false, code: 'check-failed' });
    expect(faults).toEqual(['access control of a request, which is refused,: Error: broken']);
    const later = asked();
    const judged = controls([later.check]).access.admit({ host: 'signed.test' }, REQUEST);
    later.fail(new Error('broken'));
    expect(await judged).toMatchObject({ admitted: false, code: 'check-failed' });
  });

  it('waits for a limited time: a client that is admitted too late ends at once', async () => {
    vi.useFakeTimers();
    const closed = vi.fn();
    const later = asked();
    const judged = controls([later.check]).access.admit({ host: 'signed.test' }, REQUEST);
    vi.advanceTimersByTime(11_000);
    expect(await judged).toMatchObject({ admitted: false, code: 'no-verdict' });
    later.answer({ admitted: true, expiresAt: Number.POSITIVE_INFINITY, closed });
    vi.useRealTimers();
    await vi.waitFor(() => expect(closed).toHaveBeenCalledTimes(1));
  });
});

describe('whenJudged', () => {
  it('uses an immediate verdict synchronously', () => {
    const use = vi.fn();
    expect(whenJudged(OPEN, use, () => undefined)).toBeNull();
    expect(use).toHaveBeenCalledWith(OPEN);
  });

  it('ignores the verdict for a client that left, and closes its lease', async () => {
    const use = vi.fn();
    const close = vi.fn();
    const { promise, resolve } = Promise.withResolvers<Verdict>();
    whenJudged(promise, use, () => undefined)?.();
    resolve({ ...OPEN, close });
    await vi.waitFor(() => expect(close).toHaveBeenCalledTimes(1));
    expect(use).not.toHaveBeenCalled();
  });

  it('passes on an error of its callback', async () => {
    const failed = vi.fn();
    whenJudged(
      Promise.resolve(OPEN),
      () => {
        throw new Error('no');
      },
      failed,
    );
    await vi.waitFor(() => expect(failed).toHaveBeenCalledTimes(1));
  });
});
