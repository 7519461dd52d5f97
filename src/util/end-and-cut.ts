/** The end of a connection that is ended properly, and not waited for. */
import type { Duplex } from 'node:stream';

/**
 * Ends our side behind what waits and, where there is such, behind the words `last`; the peer has `linger` ms to read it and to end its own,
 * then the connection is cut. Does nothing for one that is gone.
 */
export function endAndCut(socket: Duplex, last: string | null, linger: number): void {
  if (socket.destroyed) return;
  if (last === null) socket.end();
  else socket.end(last);
  const cut = setTimeout(() => socket.destroy(), linger);
  socket.once('close', () => clearTimeout(cut));
}
