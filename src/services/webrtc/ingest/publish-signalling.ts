/** The reference server's WebSocket protocol for publishers (streaming facts 3.7): one connection, one stream. */
import type { WebSocket } from 'ws';
import { IngestRefused } from '../../../core/ingest.ts';
import type { Logger } from '../../../util/logger.ts';
import type { Patience } from '../../../util/patience.ts';
import { ProtocolError } from '../../../util/protocol-error.ts';
import type { IceServer } from '../signalling/ice-server.ts';
import { type OfferTerms, offerSession, type Refusal, takeAnswer } from '../signalling/offered-session.ts';
import { noSuchStream, placeFields, type StreamTarget } from '../signalling/request-place.ts';
import { type SignallingDialogue, SignallingSocket } from '../signalling/signalling-socket.ts';
import type { IngestSession } from './ingest-session.ts';
import type { WebrtcProvider } from './webrtc-provider.ts';

/** The socket is the dialogue's from here on. */
export interface PublishSignallingOptions {
  readonly socket: WebSocket;
  readonly provider: WebrtcProvider;
  /** Null: the request names no stream of ours. */
  readonly target: StreamTarget | null;
  readonly client: string;
  /** Told with the offer; publishers then use nothing but the relays among them. Null: connect directly. */
  readonly iceServers: readonly IceServer[] | null;
  readonly logger: Logger;
  readonly patience?: Patience | undefined;
}

/** Lives as long as its connection: when either ends, so does the session. */
export class PublishSignalling implements SignallingDialogue {
  readonly #options: PublishSignallingOptions;
  readonly #socket: SignallingSocket;
  readonly #terms: OfferTerms;
  #session: IngestSession | null = null;

  constructor(options: PublishSignallingOptions) {
    const { socket, client, logger, iceServers, patience } = options;
    this.#options = options;
    this.#terms = { client, iceServers, isRefusal, peer: 'publisher', logger, place: placeFields(options.target) };
    this.#socket = new SignallingSocket({ socket, client, logger, dialogue: this, patience });
  }

  get engaged(): boolean {
    return this.#session !== null;
  }

  offer(): void {
    this.stop('the publisher asked for another offer');
    const open = (): IngestSession => {
      this.#session = this.#open();
      return this.#session;
    };
    offerSession(this.#socket, this.#terms, open);
  }

  answer(sdp: string): void {
    takeAnswer(this.#session, sdp, this.#terms);
  }

  candidates(lines: string): void {
    this.#session?.announced(lines);
  }

  other(): boolean {
    return false;
  }

  stop(reason: string): void {
    this.#session?.close(reason);
    this.#session = null;
  }

  #open(): IngestSession {
    const { provider, target, client } = this.#options;
    if (target === null) throw noSuchStream();
    return provider.openSession(target, {
      client,
      onEnded: (reason) => {
        if (this.#session?.ended === true) this.#session = null;
        this.#socket.close(reason);
      },
    });
  }
}

/** The name may also be taken since it was asked for. */
function isRefusal(error: unknown): error is Refusal {
  return error instanceof ProtocolError || error instanceof IngestRefused;
}
