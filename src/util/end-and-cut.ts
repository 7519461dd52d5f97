/** The end of a connection whose peer is told why. */
import type { Duplex } from 'node:stream';

/** Says `last` and ends our side; the peer has `linger` ms to read it and to end its own, then the connection is cut. */
export function endAndCut(socket: Duplex, last: string, linger: number): void {
  socket.end(last);
  const cut = setTimeout(() => socket.destroy(), linger);
  socket.once('close', () => clearTimeout(cut));
}
