/** The answer to a browser that asks an RTMP port for a page: which port it is, and that it is reached. */

const REQUEST = /^(?:GET|HEAD|POST|OPTIONS) /;
const MAX_METHOD_LENGTH = 8;
const TEXT = 'This port speaks RTMP: encoders publish to it, and there is no page.\n';
const ANSWER = Buffer.from(
  [
    'HTTP/1.1 200 OK',
    'Content-Type: text/plain; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(TEXT)}`,
    'Cache-Control: no-store',
    'Connection: close',
    '',
    TEXT,
  ].join('\r\n'),
);

/** The answer to the first bytes of a connection; null if they are not a request. RTMP begins with the byte 3. */
export function httpAnswer(bytes: Buffer): Buffer | null {
  return REQUEST.test(bytes.toString('latin1', 0, MAX_METHOD_LENGTH)) ? ANSWER : null;
}
