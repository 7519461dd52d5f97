import { expect, test } from 'vitest';
import { answerToBrowser, beginsHttp, beginsTls } from './wrong-protocol.ts';

const bytes = (text: string): Uint8Array => Buffer.from(text, 'latin1');

test.each(['GET / HTTP/1.1\r\n', 'HEAD /app', 'POST http://host/', 'OPTIONS * HTTP/1.1', 'CONNECT host:443'])('%j begins HTTP', (text) => {
  expect(beginsHttp(bytes(text))).toBe(true);
});

test.each([
  ['', 'nothing'],
  ['GET ', 'a method alone'],
  ['GET \u00b7\u00ff\u00ff', 'a transport packet of stuffing'],
  ['G\u0040\u0000\u0010', 'a transport packet'],
  ['get / ', 'small letters'],
  ['\u0003GET / ', 'RTMP'],
])('%j does not: %s', (text) => {
  expect(beginsHttp(bytes(text))).toBe(false);
});

test('TLS begins with its handshake', () => {
  expect([beginsTls(Buffer.from('160301', 'hex')), beginsTls(bytes('GET /')), beginsTls(bytes('')), beginsTls(undefined)]).toEqual([
    true,
    false,
    false,
    false,
  ]);
});

test('a browser gets a whole answer', () => {
  const [head = '', text = ''] = answerToBrowser('This is no page: ü').split('\r\n\r\n');
  expect([head.split('\r\n')[0], text]).toEqual(['HTTP/1.1 200 OK', 'This is no page: ü\n']);
  expect(head).toContain(`Content-Length: ${Buffer.byteLength(text)}`);
});
