import { execFileSync } from 'node:child_process';
import { describe, expect, it, vi } from 'vitest';
import { ManualClock } from '../../test/fakes/manual-clock.ts';
import type { SignedPolicyConfig } from '../config/index.ts';
import { KeyedHash } from '../util/keyed-hash.ts';
import type { AccessRequest } from './access-check.ts';
import { SignedPolicyCheck } from './signed-policy.ts';
import { isGenuine, type Policy, queryParameter, readSignedUrl, type SigningKeys, signUrl, urlSignature } from './signed-url.ts';

const KEYS = { policyQueryKeyName: 'policy', signatureQueryKeyName: 'signature', secretKey: 'aKq#1kj' };
const CONFIG: SignedPolicyConfig = { ...KEYS, enables: { providers: ['rtmp'], publishers: ['llhls'] } };
const clock = new ManualClock();
const now = clock.now();
const check = new SignedPolicyCheck(CONFIG, clock);
const URL_ = 'rtmp://example.test:1935/app/stream';
const CLIENT = { address: '192.0.2.7', port: 40_000, realIp: '198.51.100.9' };

function judge(url: string, request: Partial<AccessRequest> = {}): ReturnType<SignedPolicyCheck['judge']> {
  return check.judge({ direction: 'incoming', protocol: 'rtmp', url, client: CLIENT, ...request });
}

/** A signed URL with members that the type does not allow. */
function signed(policy: unknown, url = URL_, keys = KEYS): string {
  return signUrl(url, policy as Policy, keys);
}

const signedText = (url: string): string => readSignedUrl(url, KEYS).text;
const isSignedBy = (url: string, signature: string, { secretKey }: SigningKeys): boolean =>
  isGenuine({ text: signedText(url), signature }, urlSignature(secretKey));

const GOOD: Policy = { url_expire: now + 1000 };

/**
 * Made with Python's hmac; the first is the example of the reference server's documentation. The others have
 * `{"url_expire":4000000000000}`.
 */
const POLICY = 'eyJ1cmxfZXhwaXJlIjo0MDAwMDAwMDAwMDAwfQ';
const VECTORS: readonly (readonly [secret: string, message: string, signature: string])[] = [
  ['1kU^b6', 'ws://192.168.0.100:3333/app/stream?policy=eyJ1cmxfZXhwaXJlIjoxMzk5NzIxNTgxfQ', 'dvVdBpoxAeCPl94Kt5RoiqLI0YE'],
  ['aKq#1kj', `ws://example.test:3333/app/stream?policy=${POLICY}`, 'NyONtBPvThnAQplmt1hlG9NRZCU'],
  ['aKq#1kj', `wss://example.test:3334/app/stream/master?transport=tcp&policy=${POLICY}`, 'GeP3Hpz24ZUsVo10KGEpX6eIMHA'],
  ['aKq#1kj', `http://example.test:3333/app/stream?direction=whip&policy=${POLICY}`, '8oIS-j9ICN-NMO6vrEWlL6zcPPc'],
  ['aKq#1kj', `http://example.test:3333/app/stream/llhls.m3u8?a=%2f+b&policy=${POLICY}&z=1&&flag`, '3FyizhUeJTDOszRLj869N6qaevQ'],
  ['aKq#1kj', `rtmp://example.test:1935/app/stream?policy=${POLICY}`, 'HTUHt9x44E4vm1WNshjhiRfkj_g'],
  ['aKq#1kj', `srt://default/app/stream?policy=${POLICY}`, 'XezSjZadHNI4SBRfvn18OndHKmw'],
  ['geheïm €', `https://[2001:db8::1]:3334/app/über/thumb.jpg?policy=${POLICY}`, '9tyIHnEDwpa3zug7R9YAzqkS9Kg'],
];

describe('signatures', () => {
  it.each(VECTORS)('of %j over %s match those of other programs', (secretKey, message, signature) => {
    expect(isSignedBy(message, signature, { ...KEYS, secretKey })).toBe(true);
    expect(isSignedBy(`${message}&signature=${signature}`, signature, { ...KEYS, secretKey })).toBe(true);
    const [base = '', query = ''] = message.split('?');
    expect(isSignedBy(`${base}?SIGNATURE=${signature}&${query}`, signature, { ...KEYS, secretKey })).toBe(true);
    expect(isSignedBy(message, signature, { ...KEYS, secretKey: `${secretKey}x` })).toBe(false);
    expect(isSignedBy(`${message}x`, signature, { ...KEYS, secretKey })).toBe(false);
    expect(isSignedBy(message, signature.slice(1), { ...KEYS, secretKey })).toBe(false);
  });

  it('match those of openssl', () => {
    const url = signUrl('http://example.test:3333/app/stream/llhls.m3u8?a=1', GOOD, KEYS);
    const signature = queryParameter(url, 'signature') ?? '';
    const bytes = execFileSync('openssl', ['dgst', '-sha1', '-hmac', KEYS.secretKey, '-binary'], { input: signedText(url) });
    expect(signature).toBe(bytes.toString('base64url'));
    expect(url).toContain('?a=1&policy=');
  });

  it.each([
    ['a://h/p?b=1&signature=x&c=2', 'a://h/p?b=1&c=2'],
    ['a://h/p?Signature=x&b=1&SIGNATURE', 'a://h/p?b=1'],
    ['a://h/p?signature=x', 'a://h/p'],
    ['a://h/p?b=%20+&signature=x?y=z', 'a://h/p?b=%20+'],
    ['a://h/p?b=1?signature=x', 'a://h/p?b=1'],
    ['a://h/p?signatures=x&&b', 'a://h/p?signatures=x&&b'],
    ['a://h/p', 'a://h/p'],
    ['a://h/p?', 'a://h/p'],
    ['a://h/p?&', 'a://h/p?&'],
    ['a://h/p?signature=x&', 'a://h/p'],
    ['a://h/p?&signature=x&c=&', 'a://h/p?&c=&'],
    ['a://h/p?b&signature&c?&d', 'a://h/p?b&c'],
    ['a://h/p?b=signature=x&=signature', 'a://h/p?b=signature=x&=signature'],
    ['a://h/p=1&signature=x?b', 'a://h/p=1&signature=x?b'],
  ])('of %s are over %s', (url, text) => {
    expect(signedText(url)).toBe(text);
  });

  it.each([
    ['a://h?k=1&k=2', '1'],
    ['a://h?K=1', null],
    ['a://h?k', ''],
    ['a://h?k=a%252Bb+c', 'a+b+c'],
    ['a://h?x=1?k=2', null],
    ['a://h', null],
    ['a://h?k=%zz', '%zz'],
  ])('are read from the query: of %s k is %j', (url, value) => {
    expect(queryParameter(url, 'k')).toBe(value);
    expect(readSignedUrl(url, { ...KEYS, policyQueryKeyName: 'k' }).policy).toBe(value ?? '');
    expect(readSignedUrl(url, { ...KEYS, signatureQueryKeyName: 'k' }).signature).toBe(value ?? '');
  });
});

describe('SignedPolicyCheck', () => {
  it('covers the enabled protocols of each direction', () => {
    expect([check.covers('incoming', 'rtmp'), check.covers('outgoing', 'llhls')]).toEqual([true, true]);
    expect([check.covers('outgoing', 'rtmp'), check.covers('incoming', 'llhls'), check.covers('incoming', 'srt')]).toEqual(
      Array.from({ length: 3 }, () => false),
    );
  });

  it('admits a client with a valid URL, without end or until stream_expire', () => {
    expect(judge(signed(GOOD))).toMatchObject({ admitted: true, expiresAt: Number.POSITIVE_INFINITY });
    expect(judge(signed({ ...GOOD, stream_expire: now + 5000 }))).toMatchObject({ admitted: true, expiresAt: now + 5000 });
    expect(judge(signed({ ...GOOD, url_activate: now, unknown: 1 }))).toMatchObject({ admitted: true });
  });

  it.each<readonly [code: string, url: string]>([
    ['url-unsigned', URL_],
    ['url-unsigned', `${URL_}?policy=abc`],
    ['url-unsigned', signed(GOOD).replace('policy=', 'Policy=')],
    ['signature-wrong', `${URL_}?policy=e30&signature=`.concat('A'.repeat(27))],
    ['signature-wrong', `${URL_}?policy=e30&signature=@@`],
    ['signature-wrong', `${URL_}?policy=e30&signature=A`],
    ['signature-wrong', signed(GOOD).slice(0, -11)],
    ['signature-wrong', `${signed(GOOD)}${'A'.repeat(4)}`],
    ['signature-wrong', signed(GOOD, URL_, { ...KEYS, secretKey: 'another' })],
    ['signature-wrong', signed(GOOD).replace('/stream', '/other')],
    ['signature-wrong', signed(GOOD).replace(':1935', ':1936')],
    ['signature-wrong', signed(GOOD).replace('?', '?more=1&')],
    ['signature-wrong', signed(GOOD).replace('rtmp:', 'rtmps:')],
    ['policy-unreadable', signed(['list'])],
    ['policy-unreadable', signed('text')],
    ['policy-unreadable', signed(null)],
    ['policy-invalid', signed({})],
    ['policy-invalid', signed({ url_expire: `${now + 1000}` })],
    ['policy-invalid', signed({ url_expire: now + 0.5 })],
    ['policy-invalid', signed({ url_expire: -1 })],
    ['policy-invalid', signed({ ...GOOD, url_activate: 'soon' })],
    ['policy-invalid', signed({ ...GOOD, stream_expire: null })],
    ['policy-invalid', signed({ ...GOOD, allow_ip: '192.0.2.0/33' })],
    ['policy-invalid', signed({ ...GOOD, real_ip: 'somewhere' })],
    ['policy-invalid', signed({ ...GOOD, direction: 'sideways' })],
    ['url-expired', signed({ url_expire: now })],
    ['url-expired-seconds', signed({ url_expire: Math.floor(now / 1000) + 3600 })],
    ['url-not-yet', signed({ ...GOOD, url_activate: now + 1 })],
    ['stream-expired', signed({ ...GOOD, stream_expire: now })],
    ['direction-wrong', signed({ ...GOOD, direction: 'outgoing' })],
    ['address-wrong', signed({ ...GOOD, allow_ip: '198.51.100.9' })],
    ['real-address-wrong', signed({ ...GOOD, real_ip: '192.0.2.0/24' })],
  ])('refuses with %s: %s', (code, url) => {
    expect(judge(url)).toMatchObject({ admitted: false, code });
  });

  it.each([
    [{ allow_ip: '192.0.2.0/24' }],
    [{ allow_ip: '192.0.2.7' }],
    [{ allow_ip: '0.0.0.0/0' }],
    [{ real_ip: '198.51.100.0/28' }],
    [{ direction: 'incoming' }],
  ])('admits a client that satisfies %j', (more) => {
    expect(judge(signed({ ...GOOD, ...more }))).toMatchObject({ admitted: true });
  });

  it('knows clients over IPv6, and IPv4 written as IPv6', () => {
    const six = { client: { ...CLIENT, address: '2001:db8::5' } };
    expect(judge(signed({ ...GOOD, allow_ip: '2001:db8::/32' }), six)).toMatchObject({ admitted: true });
    expect(judge(signed({ ...GOOD, allow_ip: '192.0.2.0/24' }), six)).toMatchObject({ code: 'address-wrong' });
    const mapped = { client: { ...CLIENT, address: '::ffff:192.0.2.7' } };
    expect(judge(signed({ ...GOOD, allow_ip: '192.0.2.0/24' }), mapped)).toMatchObject({ admitted: true });
  });

  /** In one piece: protocols without the parts of a URL. In parts: HTTP. */
  describe.each(['in one piece', 'in parts'])('of a repeated URL, %s', (form) => {
    const time = new ManualClock();
    const start = time.now();
    const policy = {
      url_expire: start + 1000,
      url_activate: start + 10,
      allow_ip: '192.0.2.0/24',
      real_ip: '198.51.100.9',
      direction: 'incoming',
    };
    const url = signed(policy);

    /** A URL that came in time, from the right address, and often enough to be kept. */
    function known(config = CONFIG): (url: string, request?: Partial<AccessRequest>) => unknown {
      const made = new SignedPolicyCheck(config, time);
      const ask = (asked: string, request: Partial<AccessRequest> = {}) => {
        const cut = asked.indexOf('/', 'rtmp://'.length);
        const parts = form === 'in parts' ? { base: asked.slice(0, cut), tail: asked.slice(cut) } : undefined;
        const said = made.judge({ direction: 'incoming', protocol: 'rtmp', url: asked, parts, client: CLIENT, ...request });
        return said.admitted ? 'in' : said.code;
      };
      time.advance(start + 20 - time.now());
      for (let n = 0; n < 5; n += 1) expect(ask(url)).toBe(config === CONFIG ? 'in' : 'signature-wrong');
      return ask;
    }

    it('judges time, address and direction each time', () => {
      const ask = known();
      expect(ask(url, { client: { ...CLIENT, address: '203.0.113.1' } })).toBe('address-wrong');
      expect(ask(url, { client: { ...CLIENT, realIp: '203.0.113.1' } })).toBe('real-address-wrong');
      expect(ask(url, { direction: 'outgoing' })).toBe('direction-wrong');
      expect(ask(url)).toBe('in');
      time.advance(start + 9 - time.now());
      expect(ask(url)).toBe('url-not-yet');
      time.advance(start + 999 - time.now());
      expect(ask(url)).toBe('in');
      time.advance(1);
      expect(ask(url)).toBe('url-expired');
    });

    it('compares its signature each time', () => {
      const ask = known();
      const [text, signature = ''] = url.split('&signature=');
      for (let at = 0; at < signature.length; at += 1) {
        const other = signature[at] === 'A' ? 'Q' : 'A';
        expect(ask(`${text}&signature=${signature.slice(0, at)}${other}${signature.slice(at + 1)}`)).toBe('signature-wrong');
      }
      expect(ask(`${text}&signature=${signature.slice(1)}`)).toBe('signature-wrong');
      expect(ask(text ?? '')).toBe('url-unsigned');
      expect(ask(`${url}&more=1`)).toBe('signature-wrong');
      expect(ask(url.replace('/app/', '/App/'))).toBe('signature-wrong');
      expect(ask(url)).toBe('in');
    });

    it('knows it at its own host, port and scheme only', () => {
      const ask = known();
      for (const [from, to] of [
        ['rtmp:', 'rtmps:'],
        [':1935', ':1936'],
        ['example', 'Example'],
      ] as const) {
        for (let n = 0; n < 3; n += 1) expect(ask(url.replace(from, to))).toBe('signature-wrong');
      }
      expect(ask(url)).toBe('in');
    });

    it('detects a change of any character of its policy', () => {
      const ask = known();
      const start = url.indexOf('policy=') + 'policy='.length;
      for (let at = start; at < url.indexOf('&signature='); at += 1) {
        const other = url[at] === 'A' ? 'Q' : 'A';
        expect(ask(`${url.slice(0, at)}${other}${url.slice(at + 1)}`)).toBe('signature-wrong');
      }
      expect(ask(url)).toBe('in');
    });

    it('judges every spelling of it', () => {
      const ask = known();
      const [text = '', signature = ''] = url.split('&signature=');
      const ways = [
        text.replace('?', `?signature=${signature}&`),
        `${text}&signature=${signature}&SIGNATURE=x`,
        `${text}&signature=${signature.replace(/^./, (first) => `%${first.charCodeAt(0).toString(16)}`)}`,
        `${text}&signature=${signature}=`,
      ];
      for (const way of ways) for (let n = 0; n < 3; n += 1) expect(ask(way)).toBe('in');
      time.advance(start + 1000 - time.now());
      for (const way of [url, ...ways]) expect(ask(way)).toBe('url-expired');
    });

    it('finds no URL verified with another key', () => {
      known();
      known({ ...CONFIG, secretKey: 'another' });
    });

    it('computes the signature twice at most', () => {
      const signs = vi.spyOn(KeyedHash.prototype, 'digest');
      known();
      expect(signs).toHaveBeenCalledTimes(2);
      signs.mockRestore();
    });
  });

  it('leaves the URL out of its refusals', () => {
    const denied = judge(`${URL_}?policy=SECRET1&signature=SECRET2`);
    expect(JSON.stringify(denied)).not.toContain('SECRET');
  });
});
