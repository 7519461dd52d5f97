/** RTSP/1.0 messages and interleaved data on one connection, RFC 2326 §4 to §7 and §10.12. Sans I/O. */
import { ProtocolError } from '../../util/protocol-error.ts';

export interface RtspResponse {
  readonly kind: 'response';
  readonly status: number;
  readonly reason: string;
  /** By name in lower case; values of repeated headers, in order. */
  readonly headers: ReadonlyMap<string, readonly string[]>;
  readonly body: Uint8Array;
}

/** Servers may send requests too. */
export interface RtspRequest {
  readonly kind: 'request';
  readonly method: string;
  readonly headers: ReadonlyMap<string, readonly string[]>;
}

export interface InterleavedData {
  readonly kind: 'data';
  readonly channel: number;
  /** A view that nobody writes to. */
  readonly data: Uint8Array;
}

export type RtspItem = RtspResponse | RtspRequest | InterleavedData;

const DOLLAR = 0x24;
const INTERLEAVED_HEADER = 4;
const MAX_HEADER = 16_384;
const MAX_BODY = 262_144;
const NOTHING = new Uint8Array(0);
const LATIN1 = new TextDecoder('latin1');

/** Cuts what comes over a connection into items. Holds at most one unfinished item. */
export class RtspReader {
  #data: Uint8Array = NOTHING;

  /**
   * Takes the next piece, which must not be written to any more, and hands on what is complete. Throws `RTSP` for what is
   * no RTSP or exceeds 16 KiB of header or 256 KiB of body: the connection cannot be used any further.
   */
  push(piece: Uint8Array, sink: (item: RtspItem) => void): void {
    const data = this.#data.length === 0 ? piece : Buffer.concat([this.#data, piece]);
    let at = 0;
    while (at < data.length) {
      const next = data[at] === DOLLAR ? readInterleaved(data, at, sink) : readMessage(data, at, sink);
      if (next < 0) break;
      at = next;
    }
    this.#data = data.subarray(at);
  }
}

/** Returns where the next item begins; -1 when this one is not complete. */
function readInterleaved(data: Uint8Array, at: number, sink: (item: RtspItem) => void): number {
  if (data.length - at < INTERLEAVED_HEADER) return -1;
  const start = at + INTERLEAVED_HEADER;
  const end = start + (((data[at + 2] ?? 0) << 8) | (data[at + 3] ?? 0));
  if (end > data.length) return -1;
  sink({ kind: 'data', channel: data[at + 1] ?? 0, data: data.subarray(start, end) });
  return end;
}

function readMessage(data: Uint8Array, at: number, sink: (item: RtspItem) => void): number {
  // Some servers put empty lines between messages.
  if (data[at] === 0x0d || data[at] === 0x0a) return at + 1;
  const bodyAt = endOfHeader(data, at);
  if (bodyAt < 0) {
    if (data.length - at > MAX_HEADER) throw new ProtocolError('RTSP', `header of more than ${MAX_HEADER} bytes`, at);
    return -1;
  }
  const [startLine = '', ...lines] = LATIN1.decode(data.subarray(at, bodyAt)).trimEnd().split(/\r?\n/);
  const headers = parseHeaders(lines);
  const length = contentLength(headers);
  if (data.length - bodyAt < length) return -1;
  const body = data.subarray(bodyAt, bodyAt + length);
  const response = /^RTSP\/1\.\d (\d{3})(?: (.*))?$/.exec(startLine);
  const request = /^([A-Z_]{1,32}) \S+ RTSP\/1\.\d$/.exec(startLine);
  if (response !== null) {
    sink({ kind: 'response', status: Number(response[1]), reason: response[2] ?? '', headers, body });
  } else if (request !== null) {
    sink({ kind: 'request', method: request[1] ?? '', headers });
  } else {
    throw new ProtocolError('RTSP', `no RTSP message: ${JSON.stringify(startLine.slice(0, 60))}`, at);
  }
  return bodyAt + length;
}

/** Offset behind the empty line after the header, or -1. */
function endOfHeader(data: Uint8Array, from: number): number {
  const limit = Math.min(data.length, from + MAX_HEADER);
  for (let at = from; at < limit; at += 1) {
    if (data[at] !== 0x0a) continue;
    if (data[at + 1] === 0x0a && at + 1 < limit) return at + 2;
    if (data[at + 1] === 0x0d && data[at + 2] === 0x0a && at + 2 < limit) return at + 3;
  }
  return -1;
}

function parseHeaders(lines: readonly string[]): ReadonlyMap<string, readonly string[]> {
  const headers = new Map<string, string[]>();
  for (const line of lines) {
    const colon = line.indexOf(':');
    if (colon <= 0) throw new ProtocolError('RTSP', `header line without a colon: ${JSON.stringify(line.slice(0, 60))}`);
    const name = line.slice(0, colon).trim().toLowerCase();
    const value = line.slice(colon + 1).trim();
    const values = headers.get(name);
    if (values === undefined) headers.set(name, [value]);
    else values.push(value);
  }
  return headers;
}

function contentLength(headers: ReadonlyMap<string, readonly string[]>): number {
  const text = headers.get('content-length')?.[0] ?? '0';
  const length = Number(text);
  if (!/^\d+$/.test(text) || length > MAX_BODY) throw new ProtocolError('RTSP', `Content-Length ${text}, at most ${MAX_BODY} is read`);
  return length;
}

/** Writes a request; header values must not hold line breaks. */
export function serializeRtspRequest(method: string, uri: string, headers: Readonly<Record<string, string>>): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${method} ${uri} RTSP/1.0\r\n${lines.join('')}\r\n`;
}
