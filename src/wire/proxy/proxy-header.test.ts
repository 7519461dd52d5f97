import { describe, expect, it } from 'vitest';
import { ProtocolError } from '../../util/protocol-error.ts';
import { readProxyHeader } from './proxy-header.ts';

const SIGNATURE = '0d0a0d0a000d0a515549540a';
const v2 = (hex: string): Buffer => Buffer.from(SIGNATURE + hex.replaceAll(' ', ''), 'hex');
const v1 = (text: string): Buffer => Buffer.from(text, 'latin1');

const HEADERS = [
  ['version 1, IPv4', v1('PROXY TCP4 192.0.2.1 198.51.100.1 56324 443\r\n'), { address: '192.0.2.1', port: 56_324 }],
  ['version 1, IPv6', v1('PROXY TCP6 2001:db8::1 2001:db8::2 56324 443\r\n'), { address: '2001:db8::1', port: 56_324 }],
  ['version 1, IPv4 inside IPv6', v1('PROXY TCP6 ::ffff:192.0.2.1 ::ffff:192.0.2.2 1 2\r\n'), { address: '192.0.2.1', port: 1 }],
  ['version 1, unknown', v1('PROXY UNKNOWN\r\n'), null],
  ['version 1, unknown with addresses', v1('PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n'), null],
  ['version 2, IPv4', v2('21 11 000c c0000201 c6336401 dc04 01bb'), { address: '192.0.2.1', port: 56_324 }],
  [
    'version 2, IPv6 with extensions',
    v2(`21 21 0029 20010db8000000000000000000000001 20010db8000000000000000000000002 dc04 01bb 0400020000`),
    { address: '2001:db8::1', port: 56_324 },
  ],
  [
    'version 2, IPv4 inside IPv6',
    v2('21 21 0024 00000000000000000000ffffc0000201 00000000000000000000ffffc0000202 dc04 01bb'),
    { address: '192.0.2.1', port: 56_324 },
  ],
  ['version 2, the proxy itself', v2('20 00 0000'), null],
  ['version 2, of a Unix socket', v2('21 31 0003 000000'), null],
] as const;

describe('readProxyHeader', () => {
  it.each(HEADERS)('reads %s before any other data, and waits until it is complete', (_name, header, client) => {
    expect(readProxyHeader(header)).toEqual({ length: header.length, client });
    expect(readProxyHeader(Buffer.concat([header, Buffer.from('GET / HTTP/1.1\r\n')]))).toEqual({ length: header.length, client });
    for (let cut = 0; cut < header.length; cut += 1) expect(readProxyHeader(header.subarray(0, cut))).toBeNull();
  });

  it.each([
    ['a request', v1('GET / HTTP/1.1\r\n')],
    ['the hello of RTMP', Buffer.from([3, 0, 0])],
    ['a line without end', v1(`PROXY TCP4 ${'1'.repeat(200)}`)],
    ['a name', v1('PROXY TCP4 client.example 192.0.2.1 1 2\r\n')],
    ['the other family', v1('PROXY TCP4 2001:db8::1 2001:db8::2 1 2\r\n')],
    ['a port that is none', v1('PROXY TCP4 192.0.2.1 192.0.2.2 65536 2\r\n')],
    ['nothing behind the word', v1('PROXY \r\n')],
    ['another signature', Buffer.from('0d0a0d0a000d0a515549540b2111000c', 'hex')],
    ['version 3', v2('31 11 000c c0000201 c6336401 dc04 01bb')],
    ['an unknown command', v2('22 11 000c c0000201 c6336401 dc04 01bb')],
    ['too few addresses', v2('21 11 000b c0000201 c6336401 dc04 01')],
    ['too much to wait for', v2('21 11 ffff')],
  ])('refuses %s', (_name, bytes) => {
    expect(() => readProxyHeader(bytes)).toThrow(ProtocolError);
  });
});
