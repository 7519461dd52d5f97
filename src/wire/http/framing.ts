/** The length of a request and the persistence of its connection: RFC 9112 sections 3.2, 6 and 9.3. */
import { HttpFault } from './http-fault.ts';
import type { RequestHead } from './request-head.ts';
import { checkHostName } from './request-target.ts';

/** The connection's part of the headers. */
export interface Framing {
  /** The connection may carry another request after this one. */
  readonly persistent: boolean;
  /** A body follows the head. */
  readonly body: boolean;
}

/** Shared objects for the common cases, to allocate nothing per request. */
const KEEP: Framing = { persistent: true, body: false };
const CLOSE: Framing = { persistent: false, body: false };
const BODY: Framing = { persistent: false, body: true };

/** Checks `Host`, `Content-Length`, `Transfer-Encoding`, `Connection` and `Expect`. Throws `HttpFault`. */
export function readFraming(head: RequestHead): Framing {
  checkHost(head);
  const body = hasBody(head);
  const expect = head.header('expect');
  if (expect !== undefined && expect.toLowerCase() !== '100-continue') {
    throw new HttpFault(417, 'HTTP_EXPECT', 'the only expectation understood is 100-continue');
  }
  // Bodies are never read here, so a request with one is the last of its connection.
  if (body) return BODY;
  if (head.header('connection') === undefined) return head.minorVersion === 1 ? KEEP : CLOSE;
  if (head.lists('connection', 'close')) return CLOSE;
  return head.minorVersion === 1 || head.lists('connection', 'keep-alive') ? KEEP : CLOSE;
}

function checkHost(head: RequestHead): void {
  const host = head.header('host');
  if (host === undefined) {
    if (head.minorVersion === 0) return;
    throw new HttpFault(400, 'HTTP_HOST', 'the Host header is missing');
  }
  // Two lines are joined with a comma and a blank, which no host name contains.
  checkHostName(host);
}

function hasBody(head: RequestHead): boolean {
  const length = head.header('content-length');
  const encoding = head.header('transfer-encoding');
  if (encoding !== undefined) {
    if (length !== undefined) throw new HttpFault(400, 'HTTP_FRAMING', 'Content-Length and Transfer-Encoding in one request');
    if (head.minorVersion === 0) throw new HttpFault(400, 'HTTP_FRAMING', 'Transfer-Encoding in an HTTP/1.0 request');
    if (encoding.toLowerCase() !== 'chunked') throw new HttpFault(501, 'HTTP_TRANSFER_ENCODING', 'the only transfer encoding is chunked');
    return true;
  }
  if (length === undefined) return false;
  if (!/^\d{1,15}$/.test(length)) throw new HttpFault(400, 'HTTP_CONTENT_LENGTH', 'Content-Length is not one decimal number');
  return !/^0+$/.test(length);
}
