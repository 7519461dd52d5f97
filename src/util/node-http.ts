/** HTTP of Node.js, where its usual way is slow or wrong. */
import type { TLSSocketOptions } from 'node:tls';

/**
 * `node:http` without an ES import of it. Such an import reads all exports, and the getter of `WebSocket` loads a whole HTTP client: a
 * tenth of the start time of every thread.
 */
export const { Agent, createServer, request, STATUS_CODES } = process.getBuiltinModule('node:http');

const HTTP1 = 'http/1.1';

/**
 * The choice of the version for a TLS client that offers several (ALPN). `createSecureServer` of `node:http2` overwrites `ALPNProtocols` and
 * would always choose HTTP/2. Without HTTP/2 a client that offers nothing else is refused in the handshake.
 */
export function protocolChoice(http2: boolean): Pick<TLSSocketOptions, 'ALPNCallback'> {
  return http2 ? {} : { ALPNCallback: ({ protocols }) => (protocols.includes(HTTP1) ? HTTP1 : undefined) };
}
