/** One connection of an edge: its requests, and the streams it plays. */

import type { Socket } from 'node:net';
import { NO_ROOM } from '../../core/publishing.ts';
import type { Clock } from '../../util/clock.ts';
import { endAndCut } from '../../util/end-and-cut.ts';
import type { Logger } from '../../util/logger.ts';
import { faultDetail } from '../../util/message-of.ts';
import { ProtocolError } from '../../util/protocol-error.ts';
import { StallGuard } from '../../util/stall-guard.ts';
import { scaleTimeouts, type TimeoutScale } from '../../util/timeout-scale.ts';
import { answerToBrowser, beginsHttp, beginsTls, spokeOther, spokeTls } from '../../util/wrong-protocol.ts';
import { describeContents } from '../../wire/ovt/description.ts';
import { markContents, type PlacedMark } from '../../wire/ovt/mark.ts';
import { OvtCommand, type OvtRequest, OvtStatus, parseRequest, serializeResponse } from '../../wire/ovt/message.ts';
import { type OvtUrl, parseOvtUrl } from '../../wire/ovt/ovt-url.ts';
import { OvtPayloadType } from '../../wire/ovt/packet.ts';
import { OvtReader } from '../../wire/ovt/reader.ts';
import { isTold } from './describe-stream.ts';
import { isProven, newChallenge } from './ovt-key.ts';
import { MAX_WAITING_BYTES, type OvtLink, OvtSession } from './ovt-session.ts';
import type { OvtStream } from './ovt-stream.ts';

/** A request has a few hundred bytes. Edges send no media. Messages of unknown types are skipped, as the reference server does. */
const READER_LIMITS = { message: 65_536, media: 0, anyType: true };
const PAGE = answerToBrowser('This port speaks OVT: other servers pull streams from it, and there is no page.');
/** Unanswered requests. */
const MAX_REQUESTS = 16;
const MAX_SESSIONS = 64;
/** All in milliseconds. */
const TIMES = {
  /** A connection without a played stream ends after this silence. */
  idle: 10_000,
  /** Time for an edge to receive any waiting bytes. */
  stall: 10_000,
  /** Time to send the last bytes before the connection is closed. */
  linger: 500,
};
/** Detects an edge whose machine has failed, even without traffic. */
const KEEP_ALIVE_MS = 5000;

/** Dependencies of each connection, which owns the socket from here on. */
export interface OvtConnectionOptions {
  readonly socket: Socket;
  readonly logger: Logger;
  readonly clock: Clock;
  /** The stream of a URL; null if there is none. */
  readonly find: (url: OvtUrl) => OvtStream | null;
  /** Searches a missing stream: null if a search is pointless, else resolves when the result is known. Never rejects. */
  readonly fetch: (url: OvtUrl, via: readonly string[]) => Promise<unknown> | null;
  /** Why the servers `askers` may not have a stream; null: they may. */
  readonly loopOf: (url: OvtUrl, askers: readonly string[]) => string | null;
  /** The answer to a command for a missing stream. */
  readonly absence: (url: OvtUrl, command: string) => string;
  /** Maximum time for a stream to start before the edge is asked to retry, ms. */
  readonly startWait: number;
  /** The key that edges must prove; null: none. */
  readonly key: string | null;
  /** The peer speaks another protocol; `why` is a fixed sentence. The connection closes by itself. */
  readonly onForeign: (why: string) => void;
  readonly onClosed: (connection: OvtConnection) => void;
  readonly timeoutScale?: TimeoutScale | undefined;
}

/** Owns its socket. Ends when the edge leaves or violates the protocol, and by `close`; `onClosed` is called once in each case. */
export class OvtConnection implements OvtLink {
  readonly #options: OvtConnectionOptions;
  readonly #socket: Socket;
  readonly #logger: Logger;
  readonly #clock: Clock;
  readonly #times: typeof TIMES;
  readonly #stall: StallGuard;
  readonly #reader = new OvtReader(READER_LIMITS);
  /** Sessions by stream. */
  readonly #sessions = new Map<OvtStream, OvtSession>();
  readonly #requests: OvtRequest[] = [];
  readonly #challenge = newChallenge();
  #answering = false;
  /** Ends the wait for a stream that has not started. */
  #giveUp: (() => void) | null = null;
  #corked = false;
  /** Something has come. */
  #heard = false;
  /** Monotonic, ms: time of the last request or of the end of the last session. */
  #lastUsed: number;
  #closed = false;

  constructor(options: OvtConnectionOptions) {
    this.#options = options;
    const { socket, logger, clock } = options;
    this.#socket = socket;
    this.#logger = logger;
    this.#clock = clock;
    this.#times = scaleTimeouts(TIMES, options.timeoutScale ?? 1);
    this.#stall = new StallGuard(socket, this.#times.stall);
    this.#lastUsed = clock.monotonic();
    socket.setNoDelay(true);
    socket.setKeepAlive(true, KEEP_ALIVE_MS);
    socket.on('data', (chunk) => this.#read(chunk));
    socket.on('error', (error) => this.#end(error.message));
    socket.on('close', () => this.#end('the edge closed the connection'));
    logger.debug({}, 'OVT edge connected');
  }

  get waiting(): number {
    return this.#socket.writableLength;
  }

  send(bytes: Buffer): void {
    if (this.#closed) return;
    if (!this.#corked) {
      this.#corked = true;
      this.#socket.cork();
      process.nextTick(this.#uncork);
    }
    this.#socket.write(bytes);
  }

  tellMark(mark: PlacedMark): void {
    this.#respond({ id: 0, command: OvtCommand.SEGMENT }, OvtStatus.OK, 'ok', markContents(mark));
  }

  streamEnded(session: OvtSession, detail: string): void {
    const [stream] = [...this.#sessions].find(([, candidate]) => candidate === session) ?? [];
    if (stream === undefined) return;
    this.#leave(stream, session, detail);
    this.#respond({ id: 0, command: OvtCommand.STOP }, OvtStatus.OK, detail);
    if (this.#sessions.size === 0) this.close(detail);
  }

  cut(detail: string): void {
    this.#end(detail);
    this.#socket.destroy();
  }

  /** Ends the connection if it has been unused for long, or its edge receives nothing. Call it once a second. */
  checkDeadline(): void {
    if (this.#closed) return;
    const now = this.#clock.monotonic();
    const { idle, stall } = this.#times;
    if (this.#stall.isStalled(now)) this.cut(`the edge took nothing for ${stall} ms`);
    else if (this.#sessions.size === 0 && !this.#answering && now - this.#lastUsed > idle) this.close(`nothing was asked for ${idle} ms`);
  }

  /** Informs the edge that its streams have ended, and ends. Idempotent. */
  close(detail: string): void {
    if (this.#closed) return;
    for (const session of [...this.#sessions.values()]) this.streamEnded(session, detail);
    this.#end(detail);
  }

  readonly #uncork = (): void => {
    this.#corked = false;
    this.#socket.uncork();
  };

  #read(chunk: Uint8Array): void {
    if (this.#closed) return;
    const isFirst = !this.#heard;
    this.#heard = true;
    if (isFirst && this.#refuseForeign(chunk)) return;
    try {
      this.#reader.push(chunk, (type, payload) => this.#take(type, payload));
    } catch (error) {
      this.#fail(error);
    }
  }

  /** A request of HTTP would pass for a packet that is still to come. */
  #refuseForeign(chunk: Uint8Array): boolean {
    const isHttp = beginsHttp(chunk);
    if (!isHttp && !beginsTls(chunk)) return false;
    const { localPort } = this.#socket;
    const why = isHttp ? spokeOther('HTTP', localPort, 'OVT') : spokeTls(localPort, 'OVT');
    this.#options.onForeign(why);
    if (isHttp) this.#socket.write(PAGE);
    this.#end(why);
    return true;
  }

  /** The edge violated the protocol, or its message caused an internal error: only its own connection ends. */
  #fail(error: unknown): void {
    this.#refuse(OvtStatus.INTERNAL, 'Server Internals Error');
    this.close(faultDetail(error, this.#logger, 'OVT connection'));
  }

  #take(type: OvtPayloadType, payload: Uint8Array): void {
    if (this.#closed) return;
    if (this.waiting > MAX_WAITING_BYTES) {
      this.cut('the edge asks and does not read');
      return;
    }
    if (type !== OvtPayloadType.REQUEST) throw new ProtocolError('OVT_TYPE', `payload type ${type} from an edge`);
    this.#lastUsed = this.#clock.monotonic();
    let request: OvtRequest;
    try {
      request = parseRequest(payload);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.#refuse(OvtStatus.NOT_FOUND, `An invalid request: ${error.message}`);
      return;
    }
    if (this.#requests.length >= MAX_REQUESTS) throw new ProtocolError('OVT_REQUESTS', `more than ${MAX_REQUESTS} requests at once`);
    this.#requests.push(request);
    this.#answerAll().catch((error: unknown) => this.#fail(error));
  }

  /** One at a time: an answer may wait for a stream. */
  async #answerAll(): Promise<void> {
    if (this.#answering) return;
    this.#answering = true;
    for (let request = this.#requests.shift(); request !== undefined && !this.#closed; request = this.#requests.shift()) {
      await this.#answer(request);
    }
    this.#answering = false;
  }

  async #answer(request: OvtRequest): Promise<void> {
    if (this.#refuseUnproven(request)) return;
    const { command, target, path = [] } = request;
    const url = parseOvtUrl(target);
    if (url !== null && command !== OvtCommand.STOP && this.#refuseLoop(request, this.#options.loopOf(url, path))) return;
    let stream = url === null ? null : this.#options.find(url);
    if (url !== null && stream === null && command === OvtCommand.DESCRIBE) {
      await this.#options.fetch(url, path);
      if (this.#closed) return;
      stream = this.#options.find(url);
    }
    if (command !== OvtCommand.DESCRIBE && command !== OvtCommand.PLAY && command !== OvtCommand.STOP) {
      this.#respond(request, OvtStatus.NOT_FOUND, 'Unknown application');
    } else if (stream === null) {
      const message = url === null ? `There is no such stream (${target})` : this.#options.absence(url, command);
      this.#respond(request, OvtStatus.NOT_FOUND, message);
    } else if (command === OvtCommand.STOP) this.#stop(request, stream);
    else await this.#serve(request, stream);
  }

  async #serve(request: OvtRequest, stream: OvtStream): Promise<void> {
    if (!stream.started) await this.#started(stream);
    if (this.#closed) return;
    if (!stream.started) this.#respond(request, OvtStatus.NOT_STARTED, `The stream has not started (${request.target})`);
    else if (this.#refuseLoop(request, stream.loopOf(request.path ?? []))) return;
    else if (request.command === OvtCommand.PLAY) this.#play(request, stream);
    else this.#respond(request, OvtStatus.OK, 'ok', describeContents(stream.description(request.codecs ?? [])));
  }

  /** Before any search. A connection with a wrong proof is closed. */
  #refuseUnproven(request: OvtRequest): boolean {
    const { key } = this.#options;
    if (key === null || isProven(key, this.#challenge, request)) return false;
    const isWrong = request.proof !== undefined;
    const why = isWrong
      ? 'The key is another one than that of this server'
      : 'This server asks for a key that servers share (SecretKey of OVT)';
    this.#logger.warn(
      { target: request.target },
      `an OVT edge was refused: ${isWrong ? 'its key is another one' : 'it has proven no key'}`,
    );
    this.#respond(request, OvtStatus.UNPROVEN, why, isWrong ? undefined : { challenge: this.#challenge });
    if (isWrong) this.close(why);
    return true;
  }

  #refuseLoop(request: OvtRequest, why: string | null): boolean {
    if (why === null) return false;
    this.#logger.warn({ target: request.target }, `an OVT edge was refused: ${why}`);
    this.#respond(request, OvtStatus.NOT_FOUND, why);
    return true;
  }

  #play(request: OvtRequest, stream: OvtStream): void {
    if (this.#sessions.has(stream) || this.#sessions.size >= MAX_SESSIONS) {
      this.#respond(request, OvtStatus.NOT_FOUND, 'The connection plays this stream, or too many others');
      return;
    }
    if (!stream.hasRoom) {
      this.#respond(request, OvtStatus.NOT_FOUND, NO_ROOM);
      return;
    }
    const marked = request.marks === true && stream.numbered;
    this.#respond(request, OvtStatus.OK, 'ok', marked ? { marks: true } : undefined);
    const { tracks } = stream;
    const uncommon = request.codecs ?? [];
    const session = new OvtSession({
      link: this,
      tracks: tracks.filter((track) => isTold(track, uncommon)),
      events: request.events === true,
      marked,
      now: () => this.#clock.monotonic(),
    });
    this.#sessions.set(stream, session);
    stream.join(session);
    this.#logger.info({ target: request.target, sessions: stream.sessions }, 'OVT edge plays');
  }

  /** Like the reference, confirms a stop without a session if the stream exists. */
  #stop(request: OvtRequest, stream: OvtStream): void {
    const session = this.#sessions.get(stream);
    if (session !== undefined) this.#leave(stream, session, 'the edge stopped');
    this.#respond(request, OvtStatus.OK, 'ok');
  }

  /** Resolves when the stream has started or ended, the wait has expired or the connection has ended. */
  #started(stream: OvtStream): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        callOff();
        this.#giveUp = null;
        resolve();
      };
      const callOff = stream.whenSettled(done);
      const timer = setTimeout(done, this.#options.startWait);
      this.#giveUp = done;
    });
  }

  #leave(stream: OvtStream, session: OvtSession, detail: string): void {
    this.#sessions.delete(stream);
    stream.leave(session, detail);
    this.#lastUsed = this.#clock.monotonic();
    this.#logger.info({ bytes: session.bytes, dropped: session.dropped, detail }, 'OVT edge plays no longer');
  }

  /** Answers an invalid request. */
  #refuse(code: number, message: string): void {
    this.#respond({ id: 0, command: 'unknown' }, code, message);
  }

  #respond({ id, command }: Pick<OvtRequest, 'id' | 'command'>, code: number, message: string, contents?: object): void {
    this.send(serializeResponse({ id, command, code, message, contents }, this.#clock.now()));
  }

  #end(detail: string): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#giveUp?.();
    this.#requests.length = 0;
    for (const [stream, session] of [...this.#sessions]) this.#leave(stream, session, detail);
    endAndCut(this.#socket, null, this.#times.linger);
    this.#logger.debug({ detail }, 'OVT edge gone');
    this.#options.onClosed(this);
  }
}
