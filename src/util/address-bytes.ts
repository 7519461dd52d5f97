/** IP addresses as bytes. */
import { isIPv4, isIPv6 } from 'node:net';

/** 4 or 16 bytes of an IP address in text. Throws TypeError for anything else. */
export function addressBytes(host: string): Buffer {
  if (isIPv4(host)) return Buffer.from(host.split('.').map(Number));
  if (!isIPv6(host)) throw new TypeError(`'${host}' is not an IP address`);
  const bytes = Buffer.alloc(16);
  const [left = '', right] = withHexTail(host.split('%', 1)[0] ?? '').split('::');
  const leading = left === '' ? [] : left.split(':');
  const trailing = right === undefined || right === '' ? [] : right.split(':');
  leading.forEach((group, n) => {
    bytes.writeUInt16BE(Number.parseInt(group, 16), 2 * n);
  });
  trailing.forEach((group, n) => {
    bytes.writeUInt16BE(Number.parseInt(group, 16), 16 - 2 * (trailing.length - n));
  });
  return bytes;
}

/** `::ffff:1.2.3.4` with its last four bytes as two groups. */
function withHexTail(host: string): string {
  const tail = /(\d+)\.(\d+)\.(\d+)\.(\d+)$/.exec(host);
  if (tail === null) return host;
  const [a = 0, b = 0, c = 0, d = 0] = tail.slice(1).map(Number);
  return `${host.slice(0, tail.index)}${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`;
}
