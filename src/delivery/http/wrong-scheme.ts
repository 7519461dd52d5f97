/** Clients that speak `https` to a port of `http`, or the other way round: what they begin with, and what the log says of them. */

/** The first byte of a TLS connection (RFC 8446 section 5.1); no text begins with it. */
const TLS_HANDSHAKE = 0x16;

/** Whether the bytes are no request but the beginning of TLS. */
export function beginsTls(bytes: Uint8Array | undefined): boolean {
  return bytes?.[0] === TLS_HANDSHAKE;
}

/** A TLS handshake failed because the client has sent a request instead; a text is OpenSSL's own. */
export function isPlainRequest(fault: NodeJS.ErrnoException | string): boolean {
  return typeof fault === 'string' ? fault.endsWith(':http request') : fault.code === 'ERR_SSL_HTTP_REQUEST';
}

/** Why a connection to a plain port is closed; ports are few, so the sentences are. */
export function spokeTls(port: number | undefined): string {
  return `TLS was spoken to port ${port}, which speaks plain HTTP`;
}

/** The same for a port that speaks TLS. */
export function spokeHttp(port: number | undefined): string {
  return `plain HTTP was spoken to port ${port}, which speaks TLS`;
}
