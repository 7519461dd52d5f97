/** Detects clients that speak another protocol than their port, TLS included, and explains it to them and in the log. */

/** The first byte of a TLS connection (RFC 8446 section 5.1); no text begins with it. */
const TLS_HANDSHAKE = 0x16;
/** The target must begin, too: `GET ` alone could be the head of a binary packet. */
const REQUEST = /^(?:GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS|CONNECT) [\x21-\x7e]/;
const MAX_REQUEST_START = 9;

/** Whether the bytes are the start of TLS. */
export function beginsTls(bytes: Uint8Array | undefined): boolean {
  return bytes?.[0] === TLS_HANDSHAKE;
}

/** Whether the bytes are the start of an HTTP request. */
export function beginsHttp(bytes: Uint8Array): boolean {
  return REQUEST.test(String.fromCharCode(...bytes.subarray(0, MAX_REQUEST_START)));
}

/** Whether a TLS handshake failed because the client sent a plain HTTP request; the reason is OpenSSL's. */
export function isPlainRequest(fault: NodeJS.ErrnoException | string): boolean {
  return typeof fault === 'string' ? fault.endsWith(':http request') : fault.code === 'ERR_SSL_HTTP_REQUEST';
}

/** Whether a TLS handshake failed because the first bytes were not TLS. */
export function isPlain(fault: NodeJS.ErrnoException): boolean {
  return isPlainRequest(fault) || fault.code === 'ERR_SSL_WRONG_VERSION_NUMBER';
}

/** The close reason for TLS on a plain port, and what to do. */
export function spokeTls(port: number | undefined, protocol: 'HTTP' | 'RTMP' | 'OVT' = 'HTTP'): string {
  const scheme = protocol.toLowerCase();
  return `TLS was spoken to port ${port}, which speaks plain ${protocol}: use ${scheme}://, or the port of TLSPort, which needs a certificate`;
}

/** The close reason for a plain connection to a TLS port, and what to do. */
export function spokePlain(port: number | undefined, protocol: 'HTTP' | 'RTMP' | 'OVT' = 'HTTP'): string {
  return `plain ${protocol} was spoken to port ${port}, which speaks TLS: use ${protocol.toLowerCase()}s://`;
}

/** The close reason for HTTP or TLS on a port of another protocol. */
export function spokeOther(spoken: 'HTTP' | 'TLS', port: number | undefined, protocol: string): string {
  return `${spoken} was spoken to port ${port}, which speaks ${protocol}: players, the API and the console have other ports`;
}

/** An HTTP answer of one line of text, for browsers that ask the port of another protocol. The connection ends behind it. */
export function answerToBrowser(sentence: string): string {
  const text = `${sentence}\n`;
  const head = [
    'HTTP/1.1 200 OK',
    'Content-Type: text/plain; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(text)}`,
    'Cache-Control: no-store',
    'Connection: close',
  ];
  return [...head, '', text].join('\r\n');
}
