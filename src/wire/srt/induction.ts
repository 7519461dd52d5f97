/** The first round of a handshake alone, draft-sharabayko-srt-01 §4.3.1.1: a listener answers it and stores nothing. */
import {
  HANDSHAKE_V4,
  HANDSHAKE_V5,
  HandshakeType,
  isHandshake,
  parseHandshake,
  SRT_MAGIC,
  serializeHandshake,
  UDT_DATAGRAM,
} from './handshake.ts';
import { handshakeWith } from './terms.ts';

/** A caller's first packet: `socketId` is the caller's, `peer` the listener's address. */
export function inductionRequest(socketId: number, peer: string): Uint8Array {
  const fields = { version: HANDSHAKE_V4, extensionField: UDT_DATAGRAM, type: HandshakeType.INDUCTION };
  const request = handshakeWith({ ...fields, socketId, cookie: 0, initialSequence: 0 });
  return serializeHandshake(request, { destination: 0, timestamp: 0, peer });
}

/** Whether a datagram is the answer of an SRT listener to an induction. Throws `ProtocolError` for a truncated handshake. */
export function answersInduction(datagram: Uint8Array): boolean {
  if (!isHandshake(datagram)) return false;
  const { type, version, extensionField } = parseHandshake(datagram);
  return type === HandshakeType.INDUCTION && version === HANDSHAKE_V5 && extensionField === SRT_MAGIC;
}
