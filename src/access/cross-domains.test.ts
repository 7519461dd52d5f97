import { describe, expect, test } from 'vitest';
import { ALL_METHODS, CrossDomainPolicy, type CrossDomainRules } from './cross-domains.ts';

const NOTHING: CrossDomainRules = { urls: [], headers: [] };
const EVERYBODY: CrossDomainRules = { urls: ['*'], headers: [] };
const DELIVERY = 'OPTIONS, GET, HEAD';

function ask(
  rules: { defaults?: CrossDomainRules; own?: CrossDomainRules | null; methods?: string },
  origin?: string,
  requestHeaders?: string,
): Record<string, string> {
  const policy = new CrossDomainPolicy({ defaults: NOTHING, own: null, methods: DELIVERY, ...rules });
  return Object.fromEntries(policy.headers(origin, requestHeaders).pairs);
}

function allowed(urls: string[], origin?: string): string | undefined {
  return ask({ own: { urls, headers: [] } }, origin)['Access-Control-Allow-Origin'];
}

describe('cross-domain rules', () => {
  test.each([
    [['*'], undefined, '*'],
    [['http://a.example', '*'], 'http://b.example', '*'],
    [['null'], 'http://a.example', 'null'],
    [['null'], undefined, 'null'],
    [['null', 'http://a.example'], 'null', undefined],
    [['null', 'http://a.example'], 'http://a.example', 'http://a.example'],
    [[], 'http://a.example', undefined],
    [['a.example'], 'http://a.example', 'http://a.example'],
    [['a.example'], 'https://a.example', 'https://a.example'],
    [['a.example'], 'capacitor://a.example', 'capacitor://a.example'],
    [['a.example'], 'a.example', undefined],
    [['a.example'], '://a.example', undefined],
    [['a.example'], 'https://evil.example://a.example', undefined],
    [['a.example'], 'https://a.example:8443', undefined],
    [['a.example:*'], 'https://a.example:8443', 'https://a.example:8443'],
    [['*.a.example'], 'https://b.a.example', 'https://b.a.example'],
    [['*.a.example'], 'https://a.example', undefined],
    [['*.a.example'], 'null', undefined],
    [['http?://a.*'], 'http://a.example', 'http://a.example'],
    [['http?://a.*'], 'https://a.test', 'https://a.test'],
    [['http?://a.*'], 'ftp://a.test', undefined],
    [['http?://a.*'], 'https://b.a.test', undefined],
    [['https://a.example', 'http://b.example'], 'http://b.example', 'http://b.example'],
    [['https://a.example', 'http://b.example'], 'http://a.example', undefined],
    [['http://a.example'], 'https://a.example', undefined],
    [['https://*.example'], 'https://deep.a.example', 'https://deep.a.example'],
    [['https://*.example'], 'https://a.example.evil', undefined],
    [['a?.example'], 'http://a7.example', 'http://a7.example'],
    [['a.example'], 'http://aXexample', undefined],
    [['https://Panel.Example'], 'https://panel.example', 'https://panel.example'],
    [['*.Panel.Example'], 'HTTPS://a.PANEL.example', 'HTTPS://a.PANEL.example'],
    [['HTTP?://panel.*'], 'https://panel.example', 'https://panel.example'],
    [['https://Panel.Example'], 'https://panel.example.evil', undefined],
    [['a.example'], undefined, undefined],
  ] as [string[], string | undefined, string | undefined][])('list %j, origin %j: %j', (urls, origin, expected) => {
    expect(allowed(urls, origin)).toBe(expected);
  });

  test('a match adds credentials and methods, and echoes the requested headers only when asked', () => {
    expect(ask({ own: EVERYBODY }, 'http://a.example')).toEqual({
      'Access-Control-Allow-Origin': '*',
      'Access-Control-Allow-Credentials': 'true',
      'Access-Control-Allow-Methods': DELIVERY,
    });
    expect(ask({ own: EVERYBODY }, 'http://a.example', 'x-one, range')['Access-Control-Allow-Headers']).toBe('x-one, range');
  });

  test('the default rules apply to a handler without rules, with the methods of the handler', () => {
    expect(ask({ defaults: EVERYBODY })).toEqual({
      'Access-Control-Allow-Origin': '*',
      'Access-Control-Allow-Credentials': 'true',
      'Access-Control-Allow-Methods': DELIVERY,
    });
    expect(ask({ defaults: NOTHING, methods: ALL_METHODS })).toEqual({ 'Access-Control-Allow-Methods': ALL_METHODS });
  });

  test('own rules replace the default: without a match its headers are absent', () => {
    expect(ask({ defaults: EVERYBODY, own: { urls: ['a.example'], headers: [] } }, 'http://b.example')).toEqual({});
    expect(ask({ defaults: EVERYBODY, own: NOTHING }, 'http://b.example')).toEqual({});
  });

  test('custom headers are sent with every answer; the four CORS headers are overridden on a match only', () => {
    const rules: CrossDomainRules = {
      urls: ['a.example'],
      headers: [
        { key: 'X-Edge', value: 'one: two' },
        { key: 'access-control-allow-credentials', value: 'false' },
        { key: 'Access-Control-Allow-Headers', value: 'range' },
        { key: 'Access-Control-Allow-Origin', value: 'http://other.example' },
      ],
    };
    expect(ask({ own: rules }, 'http://b.example')).toEqual({ 'X-Edge': 'one: two' });
    expect(ask({ own: rules }, 'http://a.example')).toEqual({
      'Access-Control-Allow-Origin': 'http://a.example',
      'Access-Control-Allow-Credentials': 'false',
      'Access-Control-Allow-Methods': DELIVERY,
      'Access-Control-Allow-Headers': 'range',
      'X-Edge': 'one: two',
    });
  });

  test('the block holds the same headers as lines, and a repeated origin gets the same object', () => {
    const policy = new CrossDomainPolicy({ defaults: NOTHING, own: EVERYBODY, methods: 'GET' });
    const first = policy.headers('http://a.example', undefined);
    expect(first.block).toBe(
      'Access-Control-Allow-Origin: *\r\nAccess-Control-Allow-Credentials: true\r\nAccess-Control-Allow-Methods: GET\r\n',
    );
    expect(policy.headers('http://a.example', undefined)).toBe(first);
    for (let n = 0; n < 300; n += 1) policy.headers(`http://${n}.example`, undefined);
    expect(policy.headers('http://a.example', undefined)).not.toBe(first);
  });

  test('an origin longer than any valid origin is answered but not cached', () => {
    const policy = new CrossDomainPolicy({ defaults: NOTHING, own: { urls: ['https://*'], headers: [] }, methods: 'GET' });
    const host = `${'a'.repeat(63)}.`.repeat(4).slice(0, 253);
    const real = `https://${host}:65535`;
    expect(policy.headers(real, undefined)).toBe(policy.headers(real, undefined));
    const long = `https://${'a.'.repeat(300)}example`;
    expect(policy.headers(long, undefined)).toEqual(policy.headers(long, undefined));
    expect(policy.headers(long, undefined).block).toContain(`Access-Control-Allow-Origin: ${long}\r\n`);
    expect(policy.headers(long, undefined)).not.toBe(policy.headers(long, undefined));
    // Long origins displace nothing from the cache.
    const first = policy.headers('https://a.example', undefined);
    for (let n = 0; n < 300; n += 1) policy.headers(`https://${n}.${'x'.repeat(400)}`, undefined);
    expect(policy.headers('https://a.example', undefined)).toBe(first);
  });
});
