/** Chooses the HTTP version of a TLS client that offers several (ALPN). */
import type { TLSSocketOptions } from 'node:tls';

const HTTP1 = 'http/1.1';

/**
 * For `createSecureServer` of `node:http2`, which overwrites `ALPNProtocols` and would always choose HTTP/2. Without HTTP/2 a client that
 * offers nothing else is refused in the handshake.
 */
export function protocolChoice(http2: boolean): Pick<TLSSocketOptions, 'ALPNCallback'> {
  return http2 ? {} : { ALPNCallback: ({ protocols }) => (protocols.includes(HTTP1) ? HTTP1 : undefined) };
}
