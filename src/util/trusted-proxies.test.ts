import { describe, expect, it } from 'vitest';
import { proxyHeaders, TrustedProxies } from './trusted-proxies.ts';

const PROXIES = new TrustedProxies(['192.0.2.10', '10.0.0.0/8', '2001:db8:1::/48']);

describe('TrustedProxies', () => {
  it.each([
    ['192.0.2.10', true],
    ['::ffff:192.0.2.10', true],
    ['192.0.2.11', false],
    ['10.255.0.1', true],
    ['2001:db8:1:2::3', true],
    ['2001:db8:2::1', false],
    ['', false],
    ['no address', false],
  ])('decides whether %j is trusted', (address, expected) => {
    expect(PROXIES.has(address)).toBe(expected);
    expect(PROXIES.has(address)).toBe(expected);
  });

  it.each([
    ['the header of an address that is not trusted is ignored', '192.0.2.99', '198.51.100.1', '192.0.2.99'],
    ['a proxy without the header stands for itself', '192.0.2.10', undefined, '192.0.2.10'],
    ['the only entry is the client', '192.0.2.10', '198.51.100.1', '198.51.100.1'],
    ['what the client wrote itself stands before its address', '192.0.2.10', '203.0.113.7, 198.51.100.1', '198.51.100.1'],
    ['trusted hops are passed over', '192.0.2.10', '203.0.113.7, 198.51.100.1, 10.1.2.3 ,10.3.2.1', '198.51.100.1'],
    ['the first hop counts when all are trusted', '192.0.2.10', '10.1.2.3, 10.3.2.1', '10.1.2.3'],
    ['an entry that is not an address ends the search', '192.0.2.10', '198.51.100.1, unknown, 10.1.2.3', '10.1.2.3'],
    ['an invalid header leaves the proxy', '192.0.2.10', 'unknown', '192.0.2.10'],
    ['an empty header leaves the proxy', '192.0.2.10', '', '192.0.2.10'],
    ['ports are cut off', '192.0.2.10', '198.51.100.1:5000', '198.51.100.1'],
    ['brackets are cut off', '192.0.2.10', '[2001:db8::5]:5000', '2001:db8::5'],
    ['IPv6 needs no brackets', '192.0.2.10', '2001:db8::5', '2001:db8::5'],
    ['IPv4 inside IPv6 is IPv4', '192.0.2.10', '::ffff:198.51.100.1', '198.51.100.1'],
  ])('%s', (_name, from, header, expected) => {
    expect(PROXIES.clientOf(from, header)).toBe(expected);
  });

  it('reads the end of a very long header', () => {
    expect(PROXIES.clientOf('10.0.0.1', `${'203.0.113.7, '.repeat(10_000)}198.51.100.1`)).toBe('198.51.100.1');
    expect(PROXIES.clientOf('10.0.0.1', '10.0.0.2,'.repeat(10_000))).toBe('10.0.0.1');
  });

  it.each(['', 'proxy.example', '192.0.2.1/33', '192.0.2.1/', '192.0.2/24', '::1/129', '192.0.2.1/24/8'])('refuses %j', (entry) => {
    expect(TrustedProxies.isAddress(entry)).toBe(false);
    expect(() => new TrustedProxies([entry])).toThrow(TypeError);
  });

  it.each([
    ['192.0.2.10', undefined, '198.51.100.7', '198.51.100.7'],
    ['192.0.2.10', undefined, ' [2001:db8::9]:4711', '2001:db8::9'],
    ['192.0.2.10', undefined, 'nobody', '192.0.2.10'],
    ['192.0.2.10', '198.51.100.8', '198.51.100.7', '198.51.100.8'],
    ['192.0.2.11', undefined, '198.51.100.7', '192.0.2.11'],
    ['192.0.2.11', '198.51.100.8', '198.51.100.7', '192.0.2.11'],
    ['192.0.2.10', undefined, undefined, '192.0.2.10'],
  ])('of a request from %j with X-Forwarded-For %j and X-Real-IP %j the address is %j', (address, forwardedFor, realIp, expected) => {
    expect(PROXIES.realIpOf(address, { forwardedFor, realIp })).toBe(expected);
  });

  it.each([
    ['192.0.2.10', 'https', undefined, 'https 443'],
    ['192.0.2.10', 'http', undefined, 'http 80'],
    ['192.0.2.10', 'WSS', undefined, 'https 443'],
    ['192.0.2.10', 'ws', '', 'http 80'],
    ['192.0.2.10', 'https', '8443', 'https 8443'],
    ['192.0.2.10', 'http, https', '80, 8443', 'https 8443'],
    ['192.0.2.10', 'https', '0', 'https 443'],
    ['192.0.2.10', 'https', '65536', 'https 443'],
    ['192.0.2.10', 'https', '443/path?x', 'https 443'],
    ['192.0.2.10', 'gopher', '70', 'http 3333'],
    ['192.0.2.10', 'constructor', undefined, 'http 3333'],
    ['192.0.2.10', '', '70', 'http 3333'],
    ['192.0.2.10', undefined, '443', 'http 3333'],
    ['192.0.2.11', 'https', '8443', 'http 3333'],
  ])(
    'of a request from %j with X-Forwarded-Proto %j and X-Forwarded-Port %j the address is %j',
    (address, forwardedProto, forwardedPort, expected) => {
      const { secure, port } = PROXIES.askedAt(address, { forwardedProto, forwardedPort }, { secure: false, port: 3333 });
      expect(`${secure ? 'https' : 'http'} ${port}`).toBe(expected);
    },
  );

  it('reads the headers of proxies', () => {
    expect(proxyHeaders((name) => name)).toEqual({
      ...{ forwardedFor: 'x-forwarded-for', realIp: 'x-real-ip' },
      ...{ forwardedProto: 'x-forwarded-proto', forwardedPort: 'x-forwarded-port' },
    });
  });
});
