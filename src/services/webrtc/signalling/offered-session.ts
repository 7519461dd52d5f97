/** How sessions are offered over the WebSocket protocol and answered, to players and to publishers alike (streaming facts 3.2). */
import type { Logger } from '../../../util/logger.ts';
import { ProtocolError } from '../../../util/protocol-error.ts';
import { tellRefused } from '../../../util/refused.ts';
import { type IceServer, relayMembers } from './ice-server.ts';
import { SignallingFault, type SignallingSocket } from './signalling-socket.ts';

/** What a play session and an ingest session have in common here. */
export interface OfferedSession {
  /** Our offer. Throws ProtocolError. */
  offer(): string;
  candidates(): readonly string[];
  /** Takes the answer. Throws ProtocolError when nothing can come of it. */
  answered(sdp: string): void;
}

/** What is told with offers and answers, and how refusals are known. */
export interface OfferTerms {
  readonly client: string;
  /** Told with the offer; peers then use nothing but the relays among them. Null: connect directly. */
  readonly iceServers: readonly IceServer[] | null;
  /** Whether an error of the session is a refusal; others are faults of ours. */
  readonly isRefusal: (error: unknown) => error is Refusal;
  /** Who asks for offers, for the log. */
  readonly peer: 'publisher' | 'viewer';
  readonly logger: Logger;
  /** What is asked for, for the log. */
  readonly place: object;
}

/** An error that says why somebody is refused. */
export type Refusal = Error & { readonly code: string };

/**
 * Sends the offer of the session that `open` makes; `open` also keeps it, because a fault ends what is kept. Throws
 * SignallingFault with a text that peers branch on when it is refused: the cause is in the log.
 */
export function offerSession(
  socket: SignallingSocket,
  { client, iceServers, isRefusal, peer, logger, place }: OfferTerms,
  open: () => OfferedSession,
): void {
  try {
    const session = open();
    socket.send({
      command: 'offer',
      id: socket.id,
      peer_id: 0,
      code: 200,
      sdp: { type: 'offer', sdp: session.offer() },
      candidates: session.candidates().map((candidate) => ({ candidate, sdpMLineIndex: 0 })),
      ...relayMembers(iceServers),
    });
  } catch (error) {
    if (!isRefusal(error)) throw error;
    tellRefused(logger, peer, { code: error.code, reason: error.message, peer: client, over: 'WebSocket', ...place });
    throw new SignallingFault(404, 'Cannot create offer');
  }
}

/** Gives the peer's answer to its session and returns that; null: nothing was offered. Throws SignallingFault when it is refused. */
export function takeAnswer<S extends OfferedSession>(
  session: S | null,
  sdp: string,
  { client, isRefusal, peer, logger, place }: OfferTerms,
): S {
  if (session === null) throw new SignallingFault(400, 'There is no offer to answer');
  try {
    session.answered(sdp);
    return session;
  } catch (error) {
    if (!isRefusal(error)) throw error;
    tellRefused(logger, peer, { code: error.code, reason: `its answer: ${error.message}`, peer: client, over: 'WebSocket', ...place });
    throw new SignallingFault(403, 'Forbidden');
  }
}

/** For `OfferTerms` of players, where a `ProtocolError` is every refusal there is. */
export function isProtocolError(error: unknown): error is Refusal {
  return error instanceof ProtocolError;
}
