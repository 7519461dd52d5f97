/**
 * The reference server's WebSocket protocol, for players and for publishers alike: one connection, on which we
 * offer a session and the peer answers.
 */
import type { WebSocket } from 'ws';
import { type Admitted, type Judgement, OPEN, type Verdict, whenJudged } from '../../../access/access-check.ts';
import type { CloseReason } from '../../../core/ingest.ts';
import type { Logger } from '../../../util/logger.ts';
import { type Newcomer, NO_TURNS, type Turns } from '../../../util/newcomer-turns.ts';
import { logRefused } from '../../../util/refused.ts';
import type { TimeoutScale } from '../../../util/timeout-scale.ts';
import { type IceServer, relayMembers } from './ice-server.ts';
import { noSuchStream, placeFields, type StreamTarget } from './request-place.ts';
import { type SignallingDialogue, SignallingFault, type SignallingMessage, SignallingSocket } from './signalling-socket.ts';

/** The text on which peers branch, whatever the cause; the log has the cause. */
const NO_OFFER = 'Cannot create offer';

/** The common part of a play session and an ingest session. */
export interface OfferedSession {
  readonly ended: boolean;
  /** Our offer. Throws ProtocolError. */
  offer(): string;
  candidates(): readonly string[];
  /** Takes the answer. Throws what `isRefusal` knows for an unusable answer. */
  answered(sdp: string): void;
  /** Candidates of the peer, one a line. */
  announced(candidates: string): void;
  close(reason: string, code?: CloseReason['code']): void;
}

/** An error with the reason of a refusal. */
export type OfferRefusal = Error & { readonly code: string };

/** Options of a session. */
export interface OfferRequest {
  readonly target: StreamTarget;
  /** Address of the peer. */
  readonly client: string;
  /** The session has ended by itself; once. */
  readonly onEnded: (reason: string) => void;
}

/** A new connection; the socket belongs to the dialogue from here on. */
export interface DialogueConnection {
  readonly socket: WebSocket;
  /** Null: the request names no stream of this server. */
  readonly target: StreamTarget | null;
  readonly client: string;
  /** Access control, asked for each offer. The gatekeeper logs refusals. */
  readonly admit: () => Judgement;
  /** The place of an admitted client; absent: `target`. */
  readonly targetOf?: (admitted: Admitted) => StreamTarget | null;
  /** Sent with the offer; peers then use only the relays among them. Null: peers connect directly. */
  readonly iceServers: readonly IceServer[] | null;
  /** Offers are made and answers taken when it is their turn; absent: at once. */
  readonly turns?: Turns | undefined;
  readonly logger: Logger;
  readonly timeoutScale?: TimeoutScale | undefined;
}

/** The particulars of players or publishers. */
export interface DialogueOptions<S extends OfferedSession> extends DialogueConnection {
  /** Name of the clients, for the log. */
  readonly peer: 'publisher' | 'viewer';
  /** Must be over before `open`; null if there is no preparation. */
  readonly prepare?: (target: StreamTarget) => Promise<unknown> | null;
  /** Throws what `isRefusal` knows. */
  readonly open: (request: OfferRequest) => S;
  /** Whether an error of the session is a refusal; other errors are internal. */
  readonly isRefusal: (error: unknown) => error is OfferRefusal;
  /** The session has its answer. */
  readonly onAnswered?: (session: S) => void;
  /** Handles commands of some peers only; false for an unknown command. */
  readonly onOther?: (message: SignallingMessage, session: S | null) => boolean;
}

/** Lives as long as its connection: when either ends, so does the session. */
export class OfferDialogue<S extends OfferedSession> implements SignallingDialogue {
  readonly #options: DialogueOptions<S>;
  readonly #socket: SignallingSocket;
  readonly #turns: Turns;
  #session: S | null = null;
  /** The place of the present offer. */
  #target: StreamTarget | null;
  #preparing = false;
  /** The peer has cancelled the preparation, and made another request since. */
  #asksAgain = false;
  #stops = 0;
  /** The admission, until the session is over. */
  #stay: Admitted = OPEN;
  /** Ends the waiting for a verdict. */
  #cancel: (() => void) | null = null;
  /** An offer or an answer that waits for its turn. */
  #waiting: Newcomer | null = null;

  constructor(options: DialogueOptions<S>) {
    const { socket, client, logger, timeoutScale, turns = NO_TURNS } = options;
    this.#options = options;
    this.#target = options.target;
    this.#turns = turns;
    this.#socket = new SignallingSocket({ socket, client, logger, dialogue: this, timeoutScale });
  }

  get engaged(): boolean {
    return this.#session !== null || this.#preparing || this.#waiting !== null;
  }

  /** Does nothing when the connection is closed. */
  send(message: object): void {
    this.#socket.send(message);
  }

  /** The offer waits for a verdict and for preparation; a peer that repeats its request meanwhile gets one offer. */
  offer(): void {
    const { admit, peer } = this.#options;
    if (this.#preparing) {
      this.#asksAgain = true;
      return;
    }
    this.stop(`the ${peer} asked for another offer`);
    this.#preparing = true;
    const judged = (verdict: Verdict): void => this.#socket.guard(() => this.#judged(verdict));
    this.#cancel = whenJudged(admit(), judged, (error) => this.#fail(error));
  }

  #fail(error: unknown): void {
    this.#socket.guard(() => {
      throw error;
    });
  }

  #judged(verdict: Verdict): void {
    const { target: asked, targetOf, prepare } = this.#options;
    this.#cancel = null;
    this.#preparing = false;
    if (!verdict.admitted) throw new SignallingFault(404, NO_OFFER);
    this.#stay = verdict;
    this.#target = targetOf === undefined ? asked : targetOf(verdict);
    const target = this.#target;
    const prepared = target === null ? null : (prepare?.(target) ?? null);
    if (prepared === null) {
      this.#takeTurn(() => this.#offer());
      return;
    }
    this.#preparing = true;
    const settled = prepared.finally(() => {
      this.#preparing = false;
    });
    const stops = this.#stops;
    // A peer that has cancelled meanwhile is not admitted any more, but may have made another request.
    this.#socket.after(settled, () => {
      if (this.#stops === stops) this.#takeTurn(() => this.#offer());
      else if (this.#asksAgain) this.offer();
    });
  }

  answer(sdp: string): void {
    if (this.#session === null) throw new SignallingFault(400, 'There is no offer to answer');
    this.#takeTurn(() => this.#take(sdp));
  }

  candidates(lines: string): void {
    this.#session?.announced(lines);
  }

  other(message: SignallingMessage): boolean {
    return this.#options.onOther?.(message, this.#session) ?? false;
  }

  stop(reason: string): void {
    this.#stops += 1;
    this.#asksAgain = false;
    this.#leave();
    if (this.#cancel !== null) {
      this.#cancel();
      this.#cancel = null;
      this.#preparing = false;
    }
    this.#session?.close(reason);
    this.#session = null;
    this.#stay.close();
    this.#stay = OPEN;
  }

  #expire(reason: string): void {
    this.#session?.close(reason, 'expired');
    this.stop(reason);
    this.#socket.close(reason);
  }

  #offer(): void {
    this.#orRefuse(new SignallingFault(404, NO_OFFER), '', () => {
      const session = this.#open();
      // Stored before it offers: a fault ends stored sessions.
      this.#session = session;
      this.#stay.begin((reason) => this.#expire(reason));
      this.#socket.send({
        command: 'offer',
        id: this.#socket.id,
        peer_id: 0,
        code: 200,
        sdp: { type: 'offer', sdp: session.offer() },
        candidates: session.candidates().map((candidate) => ({ candidate, sdpMLineIndex: 0 })),
        ...relayMembers(this.#options.iceServers),
      });
    });
  }

  #open(): S {
    const { open, client } = this.#options;
    const target = this.#target;
    if (target === null) throw noSuchStream();
    return open({
      target,
      client,
      onEnded: (reason) => {
        if (this.#session?.ended === true) {
          this.#session = null;
          this.#stay.close();
        }
        this.#socket.close(reason);
      },
    });
  }

  #take(sdp: string): void {
    const session = this.#session;
    if (session === null) return;
    this.#orRefuse(new SignallingFault(403, 'Forbidden'), 'its answer: ', () => session.answered(sdp));
    this.#options.onAnswered?.(session);
  }

  /** Throws `fault` where `action` refuses, and tells the log why. */
  #orRefuse(fault: SignallingFault, what: string, action: () => void): void {
    const { client, isRefusal, peer, logger } = this.#options;
    try {
      action();
    } catch (error) {
      if (!isRefusal(error)) throw error;
      logRefused(logger, peer, {
        code: error.code,
        reason: `${what}${error.message}`,
        peer: client,
        over: 'WebSocket',
        ...placeFields(this.#target),
      });
      throw fault;
    }
  }

  /** Lets `action` wait for the peer's turn, in place of an earlier action that still waits. */
  #takeTurn(action: () => void): void {
    this.#leave();
    const newcomer: Newcomer = {
      client: this.#options.client,
      enter: () => {
        this.#waiting = null;
        this.#socket.guard(action);
      },
      failed: () => this.#socket.close('the server failed on a message'),
      refused: (reason) => {
        this.#waiting = null;
        this.#socket.guard(() => {
          throw new SignallingFault(503, reason);
        });
      },
    };
    this.#waiting = newcomer;
    this.#turns.take(newcomer);
  }

  #leave(): void {
    if (this.#waiting !== null) this.#turns.leave(this.#waiting);
    this.#waiting = null;
  }
}
