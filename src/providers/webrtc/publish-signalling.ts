/** The reference server's WebSocket protocol for publishers (streaming facts 3.7): one connection, one stream. */
import type { WebSocket } from 'ws';
import { IngestRefused } from '../../core/ingest.ts';
import { type IceServer, relayMembers } from '../../protocols/signalling/ice-server.ts';
import type { StreamTarget } from '../../protocols/signalling/request-place.ts';
import { type SignallingDialogue, SignallingFault, SignallingSocket } from '../../protocols/signalling/signalling-socket.ts';
import type { Logger } from '../../util/logger.ts';
import { ProtocolError } from '../../util/protocol-error.ts';
import type { IngestSession } from './ingest-session.ts';
import type { WebrtcProvider } from './webrtc-provider.ts';

export interface PublishSignallingOptions {
  readonly socket: WebSocket;
  readonly provider: WebrtcProvider;
  /** Null: the request names no stream of ours. */
  readonly target: StreamTarget | null;
  readonly client: string;
  /** Told with the offer; publishers then use nothing but the relays among them. Null: connect directly. */
  readonly iceServers: readonly IceServer[] | null;
  readonly logger: Logger;
}

export class PublishSignalling implements SignallingDialogue {
  readonly #options: PublishSignallingOptions;
  readonly #socket: SignallingSocket;
  #session: IngestSession | null = null;

  constructor(options: PublishSignallingOptions) {
    const { socket, client, logger } = options;
    this.#options = options;
    this.#socket = new SignallingSocket({ socket, client, logger, dialogue: this });
  }

  offer(): void {
    const { provider, target, client, logger } = this.#options;
    this.stop('the publisher asked for another offer');
    try {
      if (target === null) throw new ProtocolError('WEBRTC_STREAM', 'no virtual host serves this host name, or the path names no stream');
      const session = provider.openSession(target, {
        client,
        onEnded: (reason) => {
          if (this.#session?.ended === true) this.#session = null;
          this.#socket.close(reason);
        },
      });
      this.#session = session;
      this.#socket.send({
        command: 'offer',
        id: this.#socket.id,
        peer_id: 0,
        code: 200,
        sdp: { type: 'offer', sdp: session.offer() },
        candidates: session.candidates().map((candidate) => ({ candidate, sdpMLineIndex: 0 })),
        ...relayMembers(this.#options.iceServers),
      });
    } catch (error) {
      if (!(error instanceof ProtocolError) && !(error instanceof IngestRefused)) throw error;
      logger.info({ peer: client, code: error.code, reason: error.message }, 'a publisher over WebRTC was refused');
      // Peers branch on this text; the cause is in the log.
      throw new SignallingFault(404, 'Cannot create offer');
    }
  }

  answer(sdp: string): void {
    const session = this.#session;
    if (session === null) throw new SignallingFault(400, 'There is no offer to answer');
    try {
      session.answered(sdp);
    } catch (error) {
      // The name may be taken since it was asked for.
      if (!(error instanceof ProtocolError) && !(error instanceof IngestRefused)) throw error;
      this.#options.logger.info({ peer: this.#options.client, reason: error.message }, "a publisher's answer was refused");
      throw new SignallingFault(403, 'Forbidden');
    }
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
}
