/** The reference server's WebSocket protocol for players (streaming facts 3.2): one connection, one viewer. */
import { randomInt } from 'node:crypto';
import type { WebSocket } from 'ws';
import type { Logger } from '../../util/logger.ts';
import { ProtocolError } from '../../util/protocol-error.ts';
import type { PlaySession } from './play-session.ts';
import { trackNotice } from './track-notice.ts';
import type { PlayTarget, WebrtcPublisher } from './webrtc-publisher.ts';

const PING_INTERVAL_MS = 20_000;
/** Pings without an answer after which the player is gone. */
const MISSED_PINGS = 2;
const CANDIDATE = /^(?:a=)?candidate:\S+ \d+ \S+ \d+ \S+ \d+ typ \S+/i;

export interface PlaySignallingOptions {
  readonly socket: WebSocket;
  readonly publisher: WebrtcPublisher;
  /** Null: the request names nothing that can be played. */
  readonly target: PlayTarget | null;
  readonly client: string;
  /** Told with the offer; players then use nothing but the relays among them. Empty: connect directly. */
  readonly iceServers: readonly IceServer[];
  readonly logger: Logger;
}

/** A STUN or TURN server that players are told about. */
export interface IceServer {
  readonly urls: readonly string[];
  readonly username?: string | undefined;
  readonly credential?: string | undefined;
}

/** What a player may send. */
interface PlayerMessage {
  readonly command: string;
  readonly id: unknown;
  readonly sdp: unknown;
  readonly candidates: unknown;
  readonly rendition_name: unknown;
  readonly auto: unknown;
}

/** Answered with `{code, error}`, then the connection is closed. */
class SignallingFault extends Error {
  readonly code: number;
  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

export class PlaySignalling {
  readonly #options: PlaySignallingOptions;
  readonly #socket: WebSocket;
  readonly #id = randomInt(1, 2 ** 31 - 1);
  readonly #pinger: NodeJS.Timeout;
  #session: PlaySession | null = null;
  #missed = 0;
  #fetching = false;

  constructor(options: PlaySignallingOptions) {
    this.#options = options;
    this.#socket = options.socket;
    this.#socket.on('message', (data, isBinary) => this.#receive(isBinary ? null : data.toString()));
    this.#socket.on('pong', () => {
      this.#missed = 0;
    });
    this.#socket.on('error', () => this.#socket.terminate());
    this.#socket.on('close', () => this.#gone());
    this.#pinger = setInterval(() => this.#ping(), PING_INTERVAL_MS);
  }

  #receive(text: string | null): void {
    this.#guard(() => this.#obey(readMessage(text)));
  }

  #guard(action: () => void): void {
    try {
      action();
    } catch (error) {
      if (error instanceof SignallingFault) this.#refuse(error.code, error.message);
      else {
        this.#options.logger.error({ err: error, peer: this.#options.client }, 'signalling failed');
        this.#refuse(500, 'Internal Server Error');
      }
    }
  }

  #obey(message: PlayerMessage): void {
    if (message.command === 'request_offer') {
      this.#prepareOffer();
      return;
    }
    if (message.command === 'ping') {
      this.#send({ command: 'pong' });
      return;
    }
    if (message.command === 'pong') return;
    if (message.id !== this.#id) throw new SignallingFault(400, 'Invalid ID');
    switch (message.command) {
      case 'answer':
        this.#answer(message.sdp);
        break;
      case 'candidate':
        checkCandidates(message.candidates);
        break;
      case 'change_rendition':
        this.#changeRendition(message);
        break;
      case 'stop':
        this.#stop('the player stopped');
        break;
      default:
        throw new SignallingFault(400, `Unknown command: ${message.command}`);
    }
  }

  /** The offer waits while an origin is asked for the stream; a player that asks again meanwhile gets one offer. */
  #prepareOffer(): void {
    const { publisher, target } = this.#options;
    this.#stop('the player asked for another offer');
    if (this.#fetching) return;
    const fetched = target === null ? null : publisher.fetch(target);
    if (fetched === null) {
      this.#offer();
      return;
    }
    this.#fetching = true;
    void fetched.then(() => {
      this.#fetching = false;
      if (this.#socket.readyState === this.#socket.OPEN) this.#guard(() => this.#offer());
    });
  }

  #offer(): void {
    const { publisher, target, client, logger } = this.#options;
    try {
      if (target === null) throw new ProtocolError('WEBRTC_STREAM', 'no virtual host serves this host name, or the path names no stream');
      const session = publisher.openSession(target, {
        client,
        onEnded: (reason) => {
          if (this.#session?.ended === true) this.#session = null;
          this.#socket.close(1000, reason.slice(0, 120));
        },
        onRendition: (name, auto) => {
          this.#send({ command: 'notification', type: 'rendition_changed', message: { rendition_name: name, auto } });
        },
      });
      this.#session = session;
      this.#send({
        command: 'offer',
        id: this.#id,
        peer_id: 0,
        code: 200,
        sdp: { type: 'offer', sdp: session.offer() },
        candidates: session.candidates().map((candidate) => ({ candidate, sdpMLineIndex: 0 })),
        ...relays(this.#options.iceServers),
      });
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      logger.info({ peer: client, reason: error.message }, 'a viewer over WebRTC was refused');
      // Players branch on this text; the cause is in the log.
      throw new SignallingFault(404, 'Cannot create offer');
    }
  }

  #answer(sdp: unknown): void {
    const text = typeof sdp === 'object' && sdp !== null && 'sdp' in sdp ? sdp.sdp : undefined;
    if (typeof text !== 'string') throw new SignallingFault(400, 'There is no SDP');
    const session = this.#session;
    if (session === null) throw new SignallingFault(400, 'There is no offer to answer');
    try {
      session.answered(text);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.#options.logger.info({ peer: this.#options.client, reason: error.message }, "a player's answer was refused");
      throw new SignallingFault(403, 'Forbidden');
    }
    this.#send({ command: 'notification', type: 'playlist', message: this.#playlist(session) });
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

  #changeRendition(message: PlayerMessage): void {
    if (typeof message.rendition_name === 'string') this.#session?.changeRendition(message.rendition_name);
    if (typeof message.auto === 'boolean') this.#session?.setAuto(message.auto);
  }

  #stop(reason: string): void {
    this.#session?.close(reason);
    this.#session = null;
  }

  #refuse(code: number, error: string): void {
    this.#send({ code, error });
    this.#stop(error);
    this.#socket.close();
  }

  #send(message: object): void {
    if (this.#socket.readyState === this.#socket.OPEN) this.#socket.send(JSON.stringify(message));
  }

  #ping(): void {
    this.#missed += 1;
    if (this.#missed > MISSED_PINGS) this.#socket.terminate();
    else if (this.#socket.readyState === this.#socket.OPEN) this.#socket.ping();
  }

  #gone(): void {
    clearInterval(this.#pinger);
    this.#stop('the signalling connection closed');
  }
}

/** The same list in two spellings, for old and new players. */
function relays(servers: readonly IceServer[]): object {
  if (servers.length === 0) return {};
  return {
    ice_servers: servers.map(({ urls, username, credential }) => ({ credential, urls, user_name: username })),
    iceServers: servers.map(({ urls, username, credential }) => ({ credential, urls, username })),
  };
}

function readMessage(text: string | null): PlayerMessage {
  let message: unknown = null;
  try {
    message = text === null ? null : JSON.parse(text);
  } catch {
    throw new SignallingFault(400, 'The message is not JSON');
  }
  if (typeof message !== 'object' || message === null || !('command' in message) || typeof message.command !== 'string') {
    throw new SignallingFault(400, 'The message has no command');
  }
  return {
    id: undefined,
    sdp: undefined,
    candidates: undefined,
    rendition_name: undefined,
    auto: undefined,
    ...message,
    command: message.command,
  };
}

/** Peers reach us, so where they can be reached does not matter; nonsense is still refused as the reference server does. */
function checkCandidates(candidates: unknown): void {
  if (!Array.isArray(candidates)) throw new SignallingFault(400, 'There are no candidates');
  for (const entry of candidates as unknown[]) {
    const text = typeof entry === 'object' && entry !== null && 'candidate' in entry ? entry.candidate : undefined;
    if (typeof text !== 'string') throw new SignallingFault(400, 'A candidate has no text');
    if (text !== '' && !CANDIDATE.test(text)) throw new SignallingFault(400, 'Invalid candidate');
  }
}
