/** What every TCP connection of a peer has in common, directly or by way of the relay. */
import type { Socket } from 'node:net';
import type { PeerAddress } from '../fanout/fanout.ts';
import { plainAddress } from './peer-address.ts';

/** A connection on which nothing moves is gone, ms: peers check theirs every few seconds. */
const SILENCE_MS = 60_000;
/** Waiting bytes beyond which a peer does not read what it asks for. Media stops at half of it, see `PeerSession.sendTcp`. */
const UNREAD_LIMIT = 2 * 1024 * 1024;

/** Where an accepted connection comes from; null, and the connection is closed, when it was reset before it could be looked at. */
export function admitStream(stream: Socket): PeerAddress | null {
  const { remoteAddress, remotePort } = stream;
  if (remoteAddress === undefined || remotePort === undefined) {
    stream.destroy();
    return null;
  }
  stream.setTimeout(SILENCE_MS, () => stream.destroy());
  return { host: plainAddress(remoteAddress), port: remotePort };
}

/** Sends to a peer. One that asks and never reads loses its connection. */
export function sendToStream(stream: Socket, bytes: Uint8Array): void {
  if (stream.writableLength + bytes.length > UNREAD_LIMIT) stream.destroy();
  else stream.write(bytes);
}
