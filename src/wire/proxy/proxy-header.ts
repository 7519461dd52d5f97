/** The PROXY protocol, versions 1 and 2: a header with the client's address, sent by a proxy (haproxy, proxy-protocol.txt). */
import { isIP, isIPv6 } from 'node:net';
import { plainAddress } from '../../util/client-address.ts';
import { ProtocolError } from '../../util/protocol-error.ts';

/** Longest header of version 1, the line end included. */
const MAX_LINE = 107;
const SIGNATURE = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1');
const FIXED_LENGTH = 16;
/** Limit of bytes behind the fixed part: addresses take 36, the rest is for extensions, which are skipped. */
const MAX_EXTENSIONS = 4096;
const LINE = /^PROXY (TCP4|TCP6) (\S+) (\S+) (\d{1,5}) (\d{1,5})$/;

/** The address of a client. */
export interface ClientEnd {
  readonly address: string;
  readonly port: number;
}

/** A PROXY header that was read, version 1 or 2. */
export interface ProxyHeader {
  /** Length of the header in bytes; the client's bytes follow. */
  readonly length: number;
  /** Null: the proxy connects on its own behalf, or does not know the client's address. */
  readonly client: ClientEnd | null;
}

/** Reads the header at the beginning of `bytes`; null while it is incomplete. Throws ProtocolError if there is no header. */
export function readProxyHeader(bytes: Uint8Array): ProxyHeader | null {
  const begin = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  return begin[0] === SIGNATURE[0] ? readBinary(begin) : readLine(begin);
}

/** Version 1: `PROXY TCP4 192.0.2.1 198.51.100.1 56324 443` and CR LF. */
function readLine(bytes: Buffer): ProxyHeader | null {
  const text = bytes.toString('latin1', 0, MAX_LINE);
  const end = text.indexOf('\r\n');
  if (!'PROXY '.startsWith(text.slice(0, 6))) throw new ProtocolError('PROXY_HEADER', 'the connection does not begin with a PROXY header');
  if (end < 0) {
    if (text.length < MAX_LINE) return null;
    throw new ProtocolError('PROXY_HEADER', `the PROXY header is longer than ${MAX_LINE} bytes`);
  }
  const line = text.slice(0, end);
  const length = end + 2;
  if (line === 'PROXY UNKNOWN' || line.startsWith('PROXY UNKNOWN ')) return { length, client: null };
  const [, family, address = '', , port = ''] = LINE.exec(line) ?? [];
  if (isIP(address) !== (family === 'TCP6' ? 6 : 4) || Number(port) > 65_535)
    throw new ProtocolError('PROXY_HEADER', 'the PROXY header names no client');
  return { length, client: { address: plainAddress(address), port: Number(port) } };
}

/**
 *  0        12    13       14      16
 *  +--------+-----+--------+-------+-----------------------------------------+
 *  | \r\n\r\n\0\r\nQUIT\n | version, command | family, protocol | length | … |
 *  +--------+-----+--------+-------+-----------------------------------------+
 *  behind it: source and destination address, source and destination port, extensions
 */
function readBinary(bytes: Buffer): ProxyHeader | null {
  const known = Math.min(bytes.length, SIGNATURE.length);
  if (bytes.compare(SIGNATURE, 0, known, 0, known) !== 0)
    throw new ProtocolError('PROXY_HEADER', 'the connection does not begin with a PROXY header');
  if (bytes.length < FIXED_LENGTH) return null;
  const version = bytes.readUInt8(12) >> 4;
  const command = bytes.readUInt8(12) & 0x0f;
  const family = bytes.readUInt8(13) >> 4;
  const rest = bytes.readUInt16BE(14);
  if (version !== 2 || command > 1)
    throw new ProtocolError('PROXY_HEADER', `PROXY version ${version}, command ${command} is not known`, 12);
  if (rest > MAX_EXTENSIONS) throw new ProtocolError('PROXY_HEADER', `the PROXY header is longer than ${MAX_EXTENSIONS} bytes`, 14);
  const length = FIXED_LENGTH + rest;
  if (bytes.length < length) return null;
  const size = family === 1 ? 4 : 16;
  // LOCAL: a health check of the proxy. Other families have no IP address.
  if (command === 0 || (family !== 1 && family !== 2)) return { length, client: null };
  if (rest < 2 * size + 4) throw new ProtocolError('PROXY_HEADER', 'the PROXY header names no client', FIXED_LENGTH);
  const address = addressOf(bytes.subarray(FIXED_LENGTH, FIXED_LENGTH + size));
  return { length, client: { address, port: bytes.readUInt16BE(FIXED_LENGTH + 2 * size) } };
}

function addressOf(bytes: Buffer): string {
  if (bytes.length === 4) return bytes.join('.');
  const groups = Array.from({ length: 8 }, (_, n) => bytes.readUInt16BE(2 * n).toString(16));
  // The usual form of an IPv6 address, with zeros left out.
  const written = new URL(`http://[${groups.join(':')}]`).hostname.slice(1, -1);
  const mapped = /^::ffff:([\da-f]+):([\da-f]+)$/.exec(written);
  if (mapped === null) return isIPv6(written) ? written : groups.join(':');
  return bytes.subarray(12).join('.');
}
