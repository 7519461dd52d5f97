/** RTSP/1.0 messages and interleaved data on one connection, RFC 2326 §4 to §7 and §10.12. Sans I/O. */
import { ProtocolError } from '../../util/protocol-error.ts';

/** An answer of the server; the body has as many bytes as Content-Length says. */
export interface RtspResponse {
  readonly kind: 'response';
  readonly status: number;
  readonly reason: string;
  /** Values of each header in order, by name in lower case. */
  readonly headers: ReadonlyMap<string, readonly string[]>;
  readonly body: Uint8Array;
}

/** A request: servers may send them, too. */
export interface RtspRequest {
  readonly kind: 'request';
  readonly method: string;
  readonly headers: ReadonlyMap<string, readonly string[]>;
}

/** A packet behind `$`, a channel and a length (RFC 2326 §10.12). */
export interface InterleavedData {
  readonly kind: 'data';
  readonly channel: number;
  /** Valid during the call only. */
  readonly data: Uint8Array;
}

/** Messages of a connection, in order. */
export type RtspItem = RtspResponse | RtspRequest | InterleavedData;

const DOLLAR = 0x24;
const INTERLEAVED_HEADER = 4;
const MAX_HEADER = 16_384;
const MAX_BODY = 262_144;
/** Length of the end of a header: a line end and an empty line, LF CR LF. */
const MAX_END = 3;
const FIRST_CAPACITY = 4096;
const LATIN1 = new TextDecoder('latin1');

/** Cuts the bytes of a connection into items. Holds at most one unfinished item, in a reused buffer. */
export class RtspReader {
  #carry: Uint8Array = new Uint8Array(FIRST_CAPACITY);
  #carried = 0;
  /** Minimum length of the unfinished item; with fewer bytes, parsing is pointless. */
  #wanted = 0;
  /**
   * Number of bytes of the unfinished message that were searched for the end of its header, so that a header that comes byte by byte is not
   * searched again for each.
   */
  #searched = 0;

  /**
   * Takes the next piece and passes on complete items. Throws `RTSP` for invalid input, and beyond 16 KiB of header or 256 KiB of body: the
   * connection is unusable then.
   */
  push(piece: Uint8Array, sink: (item: RtspItem) => void): void {
    let data = piece;
    if (this.#carried > 0) {
      this.#append(piece);
      if (this.#carried < this.#wanted) return;
      data = this.#carry.subarray(0, this.#carried);
    }
    let at = 0;
    while (at < data.length) {
      this.#wanted = 0;
      const next = data[at] === DOLLAR ? this.#readInterleaved(data, at, sink) : this.#readMessage(data, at, sink);
      if (next < 0) break;
      at = next;
    }
    this.#keep(data, at);
  }

  #append(piece: Uint8Array): void {
    const needed = this.#carried + piece.length;
    if (needed > this.#carry.length) {
      const larger = new Uint8Array(Math.max(needed, this.#carry.length * 2));
      larger.set(this.#carry.subarray(0, this.#carried));
      this.#carry = larger;
    }
    this.#carry.set(piece, this.#carried);
    this.#carried = needed;
  }

  #keep(data: Uint8Array, from: number): void {
    if (this.#carried > 0) {
      this.#carry.copyWithin(0, from, this.#carried);
      this.#carried -= from;
    } else if (from < data.length) {
      this.#append(data.subarray(from));
    }
  }

  /** Returns the start of the next item; -1 if this item is incomplete. */
  #readInterleaved(data: Uint8Array, at: number, sink: (item: RtspItem) => void): number {
    if (data.length - at < INTERLEAVED_HEADER) return -1;
    const start = at + INTERLEAVED_HEADER;
    const end = start + (((data[at + 2] ?? 0) << 8) | (data[at + 3] ?? 0));
    if (end > data.length) {
      this.#wanted = end - at;
      return -1;
    }
    sink({ kind: 'data', channel: data[at + 1] ?? 0, data: data.subarray(start, end) });
    return end;
  }

  /** Returns the start of the next item; -1 if this item is incomplete. */
  #readMessage(data: Uint8Array, at: number, sink: (item: RtspItem) => void): number {
    // Some servers put empty lines between messages.
    if (data[at] === 0x0d || data[at] === 0x0a) return at + 1;
    const bodyAt = endOfHeader(data, at, Math.max(0, this.#searched - MAX_END + 1));
    if (bodyAt < 0) {
      if (data.length - at > MAX_HEADER) throw new ProtocolError('RTSP', `header of more than ${MAX_HEADER} bytes`, at);
      this.#searched = data.length - at;
      return -1;
    }
    this.#searched = 0;
    const [startLine = '', ...lines] = LATIN1.decode(data.subarray(at, bodyAt)).trimEnd().split(/\r?\n/);
    const headers = parseHeaders(lines);
    const end = bodyAt + contentLength(headers);
    if (end > data.length) {
      this.#wanted = end - at;
      return -1;
    }
    sink(messageOf(startLine, headers, data.slice(bodyAt, end)));
    return end;
  }
}

function messageOf(startLine: string, headers: ReadonlyMap<string, readonly string[]>, body: Uint8Array): RtspItem {
  const response = /^RTSP\/1\.\d (\d{3})(?: (.*))?$/.exec(startLine);
  if (response !== null) return { kind: 'response', status: Number(response[1]), reason: response[2] ?? '', headers, body };
  const request = /^([A-Z_]{1,32}) \S+ RTSP\/1\.\d$/.exec(startLine);
  if (request !== null) return { kind: 'request', method: request[1] ?? '', headers };
  throw new ProtocolError('RTSP', `no RTSP message: ${JSON.stringify(startLine.slice(0, 60))}`);
}

/** Offset behind the empty line that ends the header at `from`, or -1. That line does not begin in the first `searched` bytes. */
function endOfHeader(data: Uint8Array, from: number, searched: number): number {
  const limit = Math.min(data.length, from + MAX_HEADER);
  for (let at = from + searched; at < limit; at += 1) {
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

/** Writes a request. Values from the server (URIs of tracks, session ids) cannot break out of their line. */
export function serializeRtspRequest(method: string, uri: string, headers: Readonly<Record<string, string>>): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${inLine(value)}\r\n`);
  return `${method} ${inLine(uri)} RTSP/1.0\r\n${lines.join('')}\r\n`;
}

function inLine(text: string): string {
  return text.replace(/[\r\n]/g, '');
}
