/** The reference server's WebSocket protocol for players (streaming facts 3.2): one connection, one viewer. */
import type { WebSocket } from 'ws';
import type { Logger } from '../../../util/logger.ts';
import type { Patience } from '../../../util/patience.ts';
import type { IceServer } from '../signalling/ice-server.ts';
import { isProtocolError, type OfferTerms, offerSession, takeAnswer } from '../signalling/offered-session.ts';
import { noSuchStream, placeFields, type StreamTarget } from '../signalling/request-place.ts';
import { type SignallingDialogue, type SignallingMessage, SignallingSocket } from '../signalling/signalling-socket.ts';
import type { PlaySession } from './play-session.ts';
import type { WebrtcPublisher } from './webrtc-publisher.ts';

/** The socket is the dialogue's from here on. */
export interface PlaySignallingOptions {
  readonly socket: WebSocket;
  readonly publisher: WebrtcPublisher;
  /** Null: the request names nothing that can be played. */
  readonly target: StreamTarget | null;
  readonly client: string;
  /** Told with the offer; players then use nothing but the relays among them. Null: connect directly. */
  readonly iceServers: readonly IceServer[] | null;
  readonly logger: Logger;
  readonly patience?: Patience | undefined;
}

/** Lives as long as its connection: when either ends, so does the session. */
export class PlaySignalling implements SignallingDialogue {
  readonly #options: PlaySignallingOptions;
  readonly #socket: SignallingSocket;
  readonly #terms: OfferTerms;
  #session: PlaySession | null = null;
  #fetching = false;

  constructor(options: PlaySignallingOptions) {
    const { socket, client, logger, iceServers, patience } = options;
    this.#options = options;
    this.#terms = { client, iceServers, isRefusal: isProtocolError, peer: 'viewer', logger, place: placeFields(options.target) };
    this.#socket = new SignallingSocket({ socket, client, logger, dialogue: this, patience });
  }

  get engaged(): boolean {
    return this.#session !== null || this.#fetching;
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
    const settled = fetched.finally(() => {
      this.#fetching = false;
    });
    this.#socket.after(settled, () => this.#offerNow());
  }

  #offerNow(): void {
    offerSession(this.#socket, this.#terms, () => {
      this.#session = this.#open();
      return this.#session;
    });
  }

  #open(): PlaySession {
    const { publisher, target, client } = this.#options;
    if (target === null) throw noSuchStream();
    return publisher.openSession(target, {
      client,
      onEnded: (reason) => {
        if (this.#session?.ended === true) this.#session = null;
        this.#socket.close(reason);
      },
      onRendition: (name, auto) => {
        this.#socket.send({ command: 'notification', type: 'rendition_changed', message: { rendition_name: name, auto } });
      },
    });
  }

  answer(sdp: string): void {
    const session = takeAnswer(this.#session, sdp, this.#terms);
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
        ...(video !== null && { video_track: session.notice(video) }),
        ...(audio !== null && { audio_track: session.notice(audio) }),
      })),
    };
  }
}
