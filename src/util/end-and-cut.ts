/** Ends a connection properly, without waiting for its peer. */
import type { Duplex } from 'node:stream';

/**
 * Ends our side after the waiting bytes and the optional text `last`; the peer has `linger` ms to read and to end its side, then the
 * connection is destroyed. Does nothing for a closed connection.
 */
export function endAndCut(socket: Duplex, last: string | null, linger: number): void {
  if (socket.destroyed) return;
  if (last === null) socket.end();
  else socket.end(last);
  const cut = setTimeout(() => socket.destroy(), linger);
  socket.once('close', () => clearTimeout(cut));
}
