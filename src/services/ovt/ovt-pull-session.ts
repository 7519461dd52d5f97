/** One stream from one origin: describe, play, media, stop. */
import net from 'node:net';
import tls from 'node:tls';
import { type PullSession, type PullTarget, withoutCredentials } from '../../core/pull.ts';
import type { Clock } from '../../util/clock.ts';
import { endAndCut } from '../../util/end-and-cut.ts';
import { faultDetail } from '../../util/message-of.ts';
import { parseContents } from '../../wire/ovt/description.ts';
import { parseMark } from '../../wire/ovt/mark.ts';
import { parseMediaPacket } from '../../wire/ovt/media-packet.ts';
import { isMembers, OvtCommand, type OvtResponse, OvtStatus, parseResponse, serializeRequest } from '../../wire/ovt/message.ts';
import type { OvtUrl } from '../../wire/ovt/ovt-url.ts';
import { OvtPayloadType } from '../../wire/ovt/packet.ts';
import { OvtReader } from '../../wire/ovt/reader.ts';
import { UNCOMMON_CODEC_IDS } from '../../wire/ovt/wire-numbers.ts';
import { MediaFeed } from './media-feed.ts';
import { proofOf } from './ovt-key.ts';
import { LOOP_REFUSAL, type RelayPaths } from './relay-paths.ts';
import { relayedSource } from './source-tracks.ts';

const CONNECT_TIMEOUT_MS = 1500;
/** Including the TLS handshake. */
const SECURE_TIMEOUT_MS = 3000;
const TAKEN = 'OVT can bring H.264, H.265, VP8, VP9, AV1, AAC, MP3 and Opus in stereo';
/** Enough for a description of hundreds of tracks, and for a frame of a very large stream. */
const READER_LIMITS = { message: 1024 * 1024, media: 32 * 1024 * 1024 };
/** Detects an origin whose machine has failed, even for streams without a silence limit. */
const KEEP_ALIVE_MS = 5000;
const MAX_CHALLENGE = 256;
/** Time to send the last request before the connection is closed. */
const LINGER_MS = 500;

/** Dependencies shared by all sessions of this server. */
export interface PullContext {
  readonly clock: Clock;
  readonly paths: RelayPaths;
  /** The key for origins that ask for one; null: none. */
  readonly key: string | null;
  /** Certificates in PEM to verify origins with TLS; null: those of Node.js. */
  readonly ca: string | null;
}

interface Awaited {
  readonly id: number;
  readonly command: string;
  readonly resolve: (response: OvtResponse) => void;
  readonly reject: (error: Error) => void;
}

/** Owns its connection; the core closes it. If an origin leaves or falls silent, the session ends through the sink. */
export class OvtPullSession implements PullSession {
  readonly #socket: net.Socket;
  readonly #target: PullTarget;
  readonly #context: PullContext;
  readonly #reader = new OvtReader(READER_LIMITS);
  #feed: MediaFeed | null = null;
  #awaited: Awaited | null = null;
  #lastRequest = 0;
  #playing = false;
  /** The origin's challenge; null: none so far. */
  #challenge: string | null = null;
  #forgetPath: (() => void) | null = null;
  #closed = false;

  private constructor(socket: net.Socket, target: PullTarget, context: PullContext) {
    this.#socket = socket;
    this.#target = target;
    this.#context = context;
    socket.setNoDelay(true);
    socket.setKeepAlive(true, KEEP_ALIVE_MS);
    socket.on('data', (chunk) => this.#read(chunk));
    socket.on('error', (error) => this.#end('peer-error', error.message));
    socket.on('close', () => this.#end('peer-left', 'the origin closed the connection'));
  }

  /** Opens a session that plays. Rejects with the reason why the origin cannot be used. */
  static async open(url: OvtUrl, target: PullTarget, context: PullContext): Promise<OvtPullSession> {
    const session = new OvtPullSession(await connect(url, target.signal, context.ca), target, context);
    const abort = (): void => session.#end('timeout', 'the origin did not answer in time');
    target.signal.addEventListener('abort', abort, { once: true });
    try {
      await session.#play();
      return session;
    } catch (error) {
      session.close();
      throw error;
    } finally {
      target.signal.removeEventListener('abort', abort);
    }
  }

  /** Sends a stop to the origin, and ends. Idempotent. */
  close(): void {
    if (this.#closed) return;
    if (this.#playing) this.#send(OvtCommand.STOP);
    this.#hangUp('the session was closed');
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  async #play(): Promise<void> {
    const { contents } = await this.#request(OvtCommand.DESCRIBE);
    const { stream } = this.#target;
    const description = parseContents(contents);
    this.#refuseLoop(this.#context.paths.loopIn(description.path, stream));
    if (stream !== undefined) this.#forgetPath = this.#context.paths.pulledThrough(stream, description.path);
    const { tracks, playlists, left } = relayedSource(description);
    if (left.length > 0) this.#target.logger.warn({ unsupported: left }, `tracks left out: ${left.join(', ')}; ${TAKEN}`);
    if (tracks.every(({ type }) => type === 'data')) throw new Error('the stream has no track of a supported codec');
    this.#feed = new MediaFeed(this.#target.sink, tracks);
    // Before media can arrive.
    this.#target.sink.setTracks(tracks, playlists);
    await this.#request(OvtCommand.PLAY);
    this.#playing = true;
  }

  /** Throws if the stream would go in a loop. */
  #refuseLoop(why: string | null): void {
    if (why === null) return;
    const { stream } = this.#target;
    if (stream !== undefined) this.#context.paths.noteLoop(stream);
    throw new Error(why);
  }

  /** Resolves with the answer of status 200. Rejects for other statuses, and when the connection ends. */
  async #request(command: string): Promise<OvtResponse> {
    if (this.#closed) throw new Error('the connection has ended');
    let response = await this.#ask(command);
    const challenge = response.code === OvtStatus.UNPROVEN ? challengeOf(response.contents) : null;
    if (challenge !== null && this.#challenge === null) {
      if (this.#context.key === null) throw new Error('the origin asks for a key (Bind/Providers/OVT/SecretKey)');
      this.#challenge = challenge;
      response = await this.#ask(command);
    }
    if (response.message.startsWith(LOOP_REFUSAL)) this.#refuseLoop(response.message);
    if (response.code !== OvtStatus.OK) throw new Error(`${command} was answered with ${response.code} ${response.message}`);
    return response;
  }

  #ask(command: string): Promise<OvtResponse> {
    return new Promise((resolve, reject) => {
      this.#awaited = { id: this.#send(command), command, resolve, reject };
    });
  }

  /** Returns the number of the request. */
  #send(command: string): number {
    this.#lastRequest += 1;
    const asked = { id: this.#lastRequest, command, target: withoutCredentials(this.#target.url) };
    const { key } = this.#context;
    const { stream } = this.#target;
    const request = {
      ...asked,
      ...(key !== null && this.#challenge !== null && { proof: proofOf(key, this.#challenge, asked) }),
      codecs: UNCOMMON_CODEC_IDS,
      events: true,
      // A probe accepts any stream.
      ...(this.#target.relay === true && stream !== undefined && { marks: true }),
      path: [...(this.#target.via ?? []), ...(stream === undefined ? [] : [this.#context.paths.stationOf(stream)])],
    };
    this.#socket.write(serializeRequest(request, this.#context.clock.now()));
    return this.#lastRequest;
  }

  #read(chunk: Uint8Array): void {
    if (this.#closed) return;
    this.#target.sink.countBytes(chunk.length);
    try {
      this.#reader.push(chunk, (type, payload) => this.#take(type, payload));
    } catch (error) {
      this.#end('peer-error', faultDetail(error, this.#target.logger, 'OVT session'));
    }
  }

  #take(type: OvtPayloadType, payload: Uint8Array): void {
    if (this.#closed) return;
    if (type === OvtPayloadType.MEDIA) this.#feed?.push(parseMediaPacket(payload));
    else this.#takeMessage(parseResponse(payload));
  }

  #takeMessage(response: OvtResponse): void {
    const awaited = this.#awaited;
    if (awaited !== null && response.id === awaited.id && response.command === awaited.command) {
      this.#awaited = null;
      // Before media can arrive.
      if (response.command === OvtCommand.PLAY && isMarked(response.contents)) this.#feed?.expectMarks();
      awaited.resolve(response);
      return;
    }
    if (response.command === OvtCommand.SEGMENT) this.#feed?.mark(parseMark(response.contents));
    else if (response.command === OvtCommand.STOP) this.#end('peer-left', `the origin stopped: ${response.message}`);
    else this.#end('peer-error', `unexpected message '${response.command}' ${response.code} ${response.message}`);
  }

  #end(code: 'peer-left' | 'peer-error' | 'timeout', detail: string): void {
    if (this.#closed) return;
    this.#hangUp(detail);
    this.#target.sink.close({ code, detail });
  }

  #hangUp(detail: string): void {
    this.#closed = true;
    this.#forgetPath?.();
    this.#awaited?.reject(new Error(detail));
    this.#awaited = null;
    const unusable = this.#feed?.unusable ?? 0;
    if (unusable > 0) this.#target.logger.warn({ unusable }, `${unusable} packets of the origin could not be used`);
    endAndCut(this.#socket, null, LINGER_MS);
  }
}

/** Null if the server asks for no proof, or for an unknown one. */
function challengeOf(contents: unknown): string | null {
  const challenge = isMembers(contents) ? contents['challenge'] : null;
  return typeof challenge === 'string' && challenge.length > 0 && challenge.length <= MAX_CHALLENGE ? challenge : null;
}

/** Whether the origin sends marks of segments. */
function isMarked(contents: unknown): boolean {
  return isMembers(contents) && contents['marks'] === true;
}

/** Rejects if the origin cannot be reached in time or `signal` is aborted. */
function connect({ isSecure, host, port }: OvtUrl, signal: AbortSignal, ca: string | null): Promise<net.Socket> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const name = net.isIP(host) === 0 ? { servername: host } : {};
    const socket = isSecure
      ? tls.connect({ host, port, ...name, ...(ca !== null && { ca: ca === '' ? [] : ca }) })
      : net.connect({ host, port });
    const giveUp = (why: string): void => {
      clearTimeout(timer);
      socket.destroy();
      reject(new Error(why));
    };
    const abort = (): void => giveUp('the connection was given up');
    const failed = (error: Error): void => giveUp(error.message);
    const limit = isSecure ? SECURE_TIMEOUT_MS : CONNECT_TIMEOUT_MS;
    const timer = setTimeout(() => giveUp(`no connection in ${limit} ms`), limit);
    signal.addEventListener('abort', abort, { once: true });
    socket.once('error', failed);
    socket.once('close', () => signal.removeEventListener('abort', abort));
    socket.once(isSecure ? 'secureConnect' : 'connect', () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', abort);
      socket.removeListener('error', failed);
      resolve(socket);
    });
  });
}
