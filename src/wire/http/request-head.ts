/** Request line and header lines of an HTTP/1.x request, RFC 9112 sections 2 to 5, without any leniency that allows smuggling. */
import { HttpFault } from './http-fault.ts';

const CR = 0x0d;
const LF = 0x0a;
const SP = 0x20;
const TAB = 0x09;
const COLON = 0x3a;

const TOKEN = 1;
const VALUE = 2;
const TARGET = 4;

/** Character classes of each byte. */
const CLASSES = new Uint8Array(256);
/** Bytes with ASCII letters in lower case. */
const LOWER = new Uint8Array(256);
for (let byte = 0; byte < 256; byte += 1) {
  const char = String.fromCharCode(byte);
  LOWER[byte] = byte < 0x80 ? char.toLowerCase().charCodeAt(0) : byte;
  const visible = byte > SP && byte !== 0x7f;
  CLASSES[byte] =
    (/[A-Za-z0-9!#$%&'*+.^_`|~-]/.test(char) ? TOKEN : 0) | (visible || byte === SP || byte === TAB ? VALUE : 0) | (visible ? TARGET : 0);
}

/** Offsets per header line: name start, name end, value start, value end. */
const FIELDS = 4;
const MAX_METHOD = 32;

/** Limits of a request head. */
export interface HeadLimits {
  /** Bytes of `GET … HTTP/1.1` without the line end; more is 414. */
  readonly requestLine: number;
  /** Bytes of all header lines together; more is 431. */
  readonly headerBytes: number;
  /** Header lines; more is 431. */
  readonly headerLines: number;
}

/**
 * A parsed request head. It keeps the bytes and searches headers on request: most are never read.
 * A connection reuses one object for all requests.
 */
export class RequestHead {
  method = '';
  /** As sent: origin-form, absolute-form, `*` or, with CONNECT, an authority. */
  target = '';
  /** 0 or 1: the version is HTTP/1.<minor>. */
  minorVersion = 1;
  readonly #limits: HeadLimits;
  readonly #offsets: Int32Array;
  #bytes: Buffer = Buffer.alloc(0);
  #lines = 0;

  constructor(limits: HeadLimits) {
    this.#limits = limits;
    this.#offsets = new Int32Array(limits.headerLines * FIELDS);
  }

  /**
   * Parses the head in `bytes` from `start` up to and including the empty line that ends at `end`.
   * The bytes must not change while the head is in use. Throws `HttpFault`.
   */
  parse(bytes: Buffer, start: number, end: number): void {
    this.#bytes = bytes;
    this.#lines = 0;
    let at = this.#parseRequestLine(bytes, start, end);
    const headersStart = at;
    const last = end - 2;
    while (at < last) {
      if (this.#lines === this.#limits.headerLines) {
        throw new HttpFault(431, 'HTTP_HEADER_LINES', `more than ${this.#limits.headerLines} header lines`, at - start);
      }
      at = this.#parseHeaderLine(bytes, at, start);
    }
    if (last - headersStart > this.#limits.headerBytes) {
      throw new HttpFault(431, 'HTTP_HEADER_BYTES', `more than ${this.#limits.headerBytes} bytes of headers`);
    }
  }

  /** Value of the header with this lower-case name; several lines are joined with `, `. */
  header(name: string): string | undefined {
    let value: string | undefined;
    for (let line = 0; line < this.#lines; line += 1) {
      if (!this.#named(line, name)) continue;
      const text = this.#bytes.toString('latin1', this.#offsets[line * FIELDS + 2], this.#offsets[line * FIELDS + 3]);
      value = value === undefined ? text : `${value}, ${text}`;
    }
    return value;
  }

  /** Number of header lines with this lower-case name. */
  count(name: string): number {
    let count = 0;
    for (let line = 0; line < this.#lines; line += 1) if (this.#named(line, name)) count += 1;
    return count;
  }

  /** Whether the comma-separated header `name` lists `token` (lower case). */
  lists(name: string, token: string): boolean {
    const value = this.header(name);
    if (value === undefined) return false;
    return value.split(',').some((item) => item.trim().toLowerCase() === token);
  }

  #named(line: number, name: string): boolean {
    const from = this.#offsets[line * FIELDS] ?? 0;
    if ((this.#offsets[line * FIELDS + 1] ?? 0) - from !== name.length) return false;
    for (let at = 0; at < name.length; at += 1) {
      if (LOWER[this.#bytes[from + at] ?? 0] !== name.charCodeAt(at)) return false;
    }
    return true;
  }

  #parseRequestLine(bytes: Buffer, start: number, end: number): number {
    let at = start;
    if (isUpperCase(bytes[at])) while (at < end && ((CLASSES[bytes[at] ?? 0] ?? 0) & TOKEN) !== 0) at += 1;
    if (at === start || bytes[at] !== SP) {
      throw new HttpFault(400, 'HTTP_METHOD', 'the request does not begin with a method', at - start);
    }
    if (at - start > MAX_METHOD) throw new HttpFault(501, 'HTTP_METHOD', 'unknown method');
    this.method = bytes.toString('latin1', start, at);
    const targetStart = at + 1;
    at = targetStart;
    let ascii = 0;
    while (at < end && ((CLASSES[bytes[at] ?? 0] ?? 0) & TARGET) !== 0) {
      ascii |= bytes[at] ?? 0;
      at += 1;
    }
    if (at - start > this.#limits.requestLine) {
      throw new HttpFault(414, 'HTTP_REQUEST_LINE', `the request line is longer than ${this.#limits.requestLine} bytes`);
    }
    if (at === targetStart || bytes[at] !== SP) {
      throw new HttpFault(400, 'HTTP_TARGET', 'the request target is empty or holds a character that must be percent-encoded', at - start);
    }
    // A target in raw UTF-8 violates RFC 3986, but command line clients send it.
    this.target = ascii < 0x80 ? bytes.toString('latin1', targetStart, at) : bytes.toString('utf8', targetStart, at);
    return this.#parseVersion(bytes, at + 1, start);
  }

  #parseVersion(bytes: Buffer, from: number, start: number): number {
    const text = bytes.toString('latin1', from, from + 10);
    if (text === 'HTTP/1.1\r\n') this.minorVersion = 1;
    else if (text === 'HTTP/1.0\r\n') this.minorVersion = 0;
    else if (/^HTTP\/1\.\d\r\n$/.test(text)) this.minorVersion = 1;
    else if (/^HTTP\/\d(\.\d)?\r\n/.test(text)) throw new HttpFault(505, 'HTTP_VERSION', 'only HTTP/1.0 and HTTP/1.1 are spoken here');
    else if (/^HTTP\/\d(\.\d)?\n/.test(text))
      throw new HttpFault(400, 'HTTP_BARE_LF', 'the request line ends with a bare LF', from - start);
    else throw new HttpFault(400, 'HTTP_VERSION', 'the request line does not end with a version and CRLF', from - start);
    return from + 10;
  }

  #parseHeaderLine(bytes: Buffer, from: number, start: number): number {
    let at = from;
    while (((CLASSES[bytes[at] ?? 0] ?? 0) & TOKEN) !== 0) at += 1;
    if (at === from || bytes[at] !== COLON) throw headerNameFault(bytes[at] ?? 0, at === from, at - start);
    const nameEnd = at;
    at += 1;
    while (bytes[at] === SP || bytes[at] === TAB) at += 1;
    const valueStart = at;
    while (((CLASSES[bytes[at] ?? 0] ?? 0) & VALUE) !== 0) at += 1;
    if (bytes[at] !== CR || bytes[at + 1] !== LF) {
      const what = bytes[at] === LF ? 'a header line ends with a bare LF' : 'a header value holds a control character';
      throw new HttpFault(400, 'HTTP_HEADER_VALUE', what, at - start);
    }
    let valueEnd = at;
    while (valueEnd > valueStart && (bytes[valueEnd - 1] === SP || bytes[valueEnd - 1] === TAB)) valueEnd -= 1;
    const slot = this.#lines * FIELDS;
    this.#offsets[slot] = from;
    this.#offsets[slot + 1] = nameEnd;
    this.#offsets[slot + 2] = valueStart;
    this.#offsets[slot + 3] = valueEnd;
    this.#lines += 1;
    return at + 2;
  }
}

/** All registered methods begin with a capital; other bytes are most likely not HTTP. */
export function isUpperCase(byte: number | undefined): boolean {
  return byte !== undefined && byte >= 0x41 && byte <= 0x5a;
}

function headerNameFault(byte: number, atLineStart: boolean, offset: number): HttpFault {
  if (atLineStart && (byte === SP || byte === TAB)) {
    return new HttpFault(400, 'HTTP_HEADER_FOLDED', 'a header line begins with white space (line folding)', offset);
  }
  if (byte === SP || byte === TAB) return new HttpFault(400, 'HTTP_HEADER_NAME', 'white space before the colon of a header', offset);
  if (byte === LF || byte === CR)
    return new HttpFault(400, 'HTTP_HEADER_NAME', 'a header line without a colon, or a bare CR or LF', offset);
  return new HttpFault(400, 'HTTP_HEADER_NAME', 'a header name is empty or holds a character that is not allowed', offset);
}
