/** The reference server's WebSocket protocol for players (streaming facts 3.2): one connection, one viewer. */
import type { WebSocket } from 'ws';
import { type IceServer, relayMembers } from '../../protocols/signalling/ice-server.ts';
import type { StreamTarget } from '../../protocols/signalling/request-place.ts';
import {
  type SignallingDialogue,
  SignallingFault,
  type SignallingMessage,
  SignallingSocket,
} from '../../protocols/signalling/signalling-socket.ts';
import type { Logger } from '../../util/logger.ts';
import { ProtocolError } from '../../util/protocol-error.ts';
import type { PlaySession } from './play-session.ts';
import { trackNotice } from './track-notice.ts';
import type { WebrtcPublisher } from './webrtc-publisher.ts';

export interface PlaySignallingOptions {
  readonly socket: WebSocket;
  readonly publisher: WebrtcPublisher;
  /** Null: the request names nothing that can be played. */
  readonly target: StreamTarget | null;
  readonly client: string;
  /** Told with the offer; players then use nothing but the relays among them. Null: connect directly. */
  readonly iceServers: readonly IceServer[] | null;
  readonly logger: Logger;
}

export class PlaySignalling implements SignallingDialogue {
  readonly #options: PlaySignallingOptions;
  readonly #socket: SignallingSocket;
  #session: PlaySession | null = null;
  #fetching = false;

  constructor(options: PlaySignallingOptions) {
    const { socket, client, logger } = options;
    this.#options = options;
    this.#socket = new SignallingSocket({ socket, client, logger, dialogue: this });
  }

  /** The offer waits while an origin is asked for the stream; a player that asks again meanwhile gets one offer. */
  offer(): void {
    const { publisher, target } = this.#options;
    this.stop('the player asked for another offer');
    if (this.#fetching) return;
    const fetched = target === null ? null : publisher.fetch(target);
    if (fetched === null) {
      this.#offerNow();
      return;
    }
    this.#fetching = true;
    this.#socket.after(fetched, () => {
      this.#fetching = false;
      this.#offerNow();
    });
  }

  #offerNow(): void {
    const { publisher, target, client, logger } = this.#options;
    try {
      if (target === null) throw new ProtocolError('WEBRTC_STREAM', 'no virtual host serves this host name, or the path names no stream');
      const session = publisher.openSession(target, {
        client,
        onEnded: (reason) => {
          if (this.#session?.ended === true) this.#session = null;
          this.#socket.close(reason);
        },
        onRendition: (name, auto) => {
          this.#socket.send({ command: 'notification', type: 'rendition_changed', message: { rendition_name: name, auto } });
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
      if (!(error instanceof ProtocolError)) throw error;
      logger.info({ peer: client, reason: error.message }, 'a viewer over WebRTC was refused');
      // Players branch on this text; the cause is in the log.
      throw new SignallingFault(404, 'Cannot create offer');
    }
  }

  answer(sdp: string): void {
    const session = this.#session;
    if (session === null) throw new SignallingFault(400, 'There is no offer to answer');
    try {
      session.answered(sdp);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.#options.logger.info({ peer: this.#options.client, reason: error.message }, "a player's answer was refused");
      throw new SignallingFault(403, 'Forbidden');
    }
    this.#socket.send({ command: 'notification', type: 'playlist', message: this.#playlist(session) });
  }

  candidates(lines: string): void {
    this.#session?.announced(lines);
  }

  other(message: SignallingMessage): boolean {
    if (message.command !== 'change_rendition') return false;
    if (typeof message.rendition_name === 'string') this.#session?.changeRendition(message.rendition_name);
    if (typeof message.auto === 'boolean') this.#session?.setAuto(message.auto);
    return true;
  }

  stop(reason: string): void {
    this.#session?.close(reason);
    this.#session = null;
  }

  /** `name` is the file name and `file_name` the display name: the reference server has them swapped, players expect it. */
  #playlist(session: PlaySession): object {
    const renditions = [...session.renditions].sort((a, b) => (a.name < b.name ? -1 : 1));
    return {
      name: session.playlist.fileName,
      file_name: session.playlist.name,
      auto: session.auto,
      renditions: renditions.map(({ name, video, audio }) => ({
        name,
        ...(video !== null && { video_track: trackNotice(video.track) }),
        ...(audio !== null && { audio_track: trackNotice(audio.track) }),
      })),
    };
  }
}
