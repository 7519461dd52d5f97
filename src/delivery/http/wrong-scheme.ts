/** Detects clients that use `https` or `rtmps` on a plain port, or the reverse, and explains it in the log. */

/** The first byte of a TLS connection (RFC 8446 section 5.1); no text begins with it. */
const TLS_HANDSHAKE = 0x16;

/** Whether the bytes are the start of TLS instead of a request. */
export function beginsTls(bytes: Uint8Array | undefined): boolean {
  return bytes?.[0] === TLS_HANDSHAKE;
}

/** Whether a TLS handshake failed because the client sent a plain request; the reason is OpenSSL's. */
export function isPlainRequest(fault: NodeJS.ErrnoException | string): boolean {
  return typeof fault === 'string' ? fault.endsWith(':http request') : fault.code === 'ERR_SSL_HTTP_REQUEST';
}

/** The close reason for TLS on a plain port, and what to do. */
export function spokeTls(port: number | undefined, protocol: 'HTTP' | 'RTMP' = 'HTTP'): string {
  const scheme = protocol.toLowerCase();
  return `TLS was spoken to port ${port}, which speaks plain ${protocol}: use ${scheme}://, or the port of TLSPort, which needs a certificate`;
}

/** The close reason for a plain request to a TLS port, and what to do. */
export function spokePlain(port: number | undefined, protocol: 'HTTP' | 'RTMP' = 'HTTP'): string {
  return `plain ${protocol} was spoken to port ${port}, which speaks TLS: use ${protocol.toLowerCase()}s://`;
}
