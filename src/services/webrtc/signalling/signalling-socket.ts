/** One connection of the reference server's WebSocket protocol, for players and for publishers. */
import { randomInt } from 'node:crypto';
import type { WebSocket } from 'ws';
import type { Logger } from '../../../util/logger.ts';
import { scaleTimeouts, type TimeoutScale } from '../../../util/timeout-scale.ts';

/** All in milliseconds. */
const TIMES = {
  /** Interval of looks at the connection. */
  look: 5000,
  /** Time for a peer to close its side after ours. */
  linger: 5000,
};
/** Looks at a connection without session after which it is closed. */
const MAX_USELESS_LOOKS = 3;
/** Looks from one ping to the next. */
const PING_LOOKS = 4;
/** Pings without an answer after which the peer is gone. */
const MAX_MISSED_PINGS = 2;
/** Maximum of bytes that wait for a peer: with more, it sends requests and does not read. An offer has some thousand bytes. */
const MAX_UNREAD = 1024 * 1024;
const CLOSE_USELESS = 1008;
/** Longest reason that fits into the frame that closes a WebSocket, bytes. */
const MAX_REASON = 120;
const CANDIDATE = /^(?:a=)?candidate:\S+ \d+ \S+ \d+ \S+ \d+ typ \S+/i;

/** Messages of a peer. */
export interface SignallingMessage {
  readonly command: string;
  readonly id: unknown;
  readonly sdp: unknown;
  readonly candidates: unknown;
  readonly rendition_name: unknown;
  readonly auto: unknown;
}

/** Answered with `{code, error}`, then the connection is closed. */
export class SignallingFault extends Error {
  readonly code: number;
  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

/** The recipient of the messages. Throws SignallingFault. */
export interface SignallingDialogue {
  /** A session exists or is being made; it has deadlines of its own. */
  readonly engaged: boolean;
  /** The peer wants an offer. */
  offer(): void;
  /** The peer's session description. */
  answer(sdp: string): void;
  /** Candidates of the peer, one a line. */
  candidates(lines: string): void;
  /** Handles commands of some peers only; false for an unknown command. */
  other(message: SignallingMessage): boolean;
  /** The session is over, by the peer or by a fault; may be called more than once. */
  stop(reason: string): void;
}

/** The dialogue owns the WebSocket. */
export interface SignallingSocketOptions {
  readonly socket: WebSocket;
  /** Address of the peer, for the log. */
  readonly client: string;
  readonly logger: Logger;
  readonly dialogue: SignallingDialogue;
  readonly timeoutScale?: TimeoutScale | undefined;
}

/**
 * Owns the WebSocket: pings it, and ends it if the peer answers no ping, or sends requests and never reads. Every end is reported to the
 * dialogue.
 */
export class SignallingSocket {
  /** Identifies the peer in its messages, the first ones excepted. */
  readonly id = randomInt(1, 2 ** 31 - 1);
  readonly #options: SignallingSocketOptions;
  readonly #socket: WebSocket;
  readonly #watch: NodeJS.Timeout;
  readonly #linger: number;
  #missed = 0;
  #looks = 0;
  #uselessLooks = 0;
  #cut: NodeJS.Timeout | undefined;

  constructor(options: SignallingSocketOptions) {
    this.#options = options;
    this.#socket = options.socket;
    this.#socket.on('message', (data, isBinary) => this.#receive(isBinary ? null : data.toString()));
    this.#socket.on('pong', () => {
      this.#missed = 0;
    });
    // The library answers the ping.
    this.#socket.on('ping', () => this.#isRead());
    this.#socket.on('error', () => this.#socket.terminate());
    this.#socket.on('close', () => this.#gone());
    const { look, linger } = scaleTimeouts(TIMES, options.timeoutScale ?? 1);
    this.#linger = linger;
    this.#watch = setInterval(() => this.#look(), look);
  }

  /** Does nothing when the connection is closed. */
  send(message: object): void {
    if (this.#socket.readyState === this.#socket.OPEN && this.#isRead()) this.#socket.send(JSON.stringify(message));
  }

  /** Ends the connection because the session has ended. Idempotent. */
  close(reason: string): void {
    this.#end(
      1000,
      Buffer.from(reason)
        .subarray(0, MAX_REASON)
        .toString('latin1')
        .replaceAll(/[^ -~]/g, '?'),
    );
  }

  /** Does `action` when `wait` is over, if the connection is still there; a fault it throws, or `wait` rejects with, is answered. */
  after(wait: Promise<unknown>, action: () => void): void {
    const go = (act: () => void): void => {
      if (this.#socket.readyState === this.#socket.OPEN) this.guard(act);
    };
    wait.then(
      () => go(action),
      (error: unknown) =>
        go(() => {
          throw error;
        }),
    );
  }

  /** False for a peer that asks and never reads: it loses its connection. */
  #isRead(): boolean {
    if (this.#socket.bufferedAmount <= MAX_UNREAD) return true;
    this.#socket.terminate();
    return false;
  }

  #receive(text: string | null): void {
    this.guard(() => this.#obey(readMessage(text)));
  }

  /** Does `action`; a fault it throws is answered. */
  guard(action: () => void): void {
    try {
      action();
    } catch (error) {
      if (error instanceof SignallingFault) this.#refuse(error.code, error.message);
      else {
        this.#options.logger.limited.error({ err: error, peer: this.#options.client }, 'signalling failed');
        this.#refuse(500, 'Internal Server Error');
      }
    }
  }

  #obey(message: SignallingMessage): void {
    const { dialogue } = this.#options;
    if (message.command === 'request_offer') {
      dialogue.offer();
      return;
    }
    if (message.command === 'ping') {
      this.send({ command: 'pong' });
      return;
    }
    if (message.command === 'pong') return;
    if (message.id !== this.id) throw new SignallingFault(400, 'Invalid ID');
    switch (message.command) {
      case 'answer':
        dialogue.answer(sdpOf(message.sdp));
        break;
      case 'candidate':
        dialogue.candidates(candidateLines(message.candidates));
        break;
      case 'stop':
        dialogue.stop('the peer stopped');
        break;
      default:
        if (!dialogue.other(message)) throw new SignallingFault(400, `Unknown command: ${message.command}`);
    }
  }

  #refuse(code: number, error: string): void {
    this.send({ code, error });
    this.#stop(error);
    this.#end();
  }

  /** A peer that does not close its side is cut off. */
  #end(code?: number, reason?: string): void {
    this.#socket.close(code, reason);
    this.#cut ??= setTimeout(() => this.#socket.terminate(), this.#linger);
  }

  /** Closes a connection without a session after some looks, and sends pings. */
  #look(): void {
    this.#uselessLooks = this.#options.dialogue.engaged ? 0 : this.#uselessLooks + 1;
    if (this.#uselessLooks === MAX_USELESS_LOOKS) this.#end(CLOSE_USELESS, 'nothing was asked for');
    this.#looks += 1;
    if (this.#looks % PING_LOOKS === 0) this.#ping();
  }

  #ping(): void {
    this.#missed += 1;
    if (this.#missed > MAX_MISSED_PINGS) this.#socket.terminate();
    else if (this.#socket.readyState === this.#socket.OPEN) this.#socket.ping();
  }

  #gone(): void {
    clearInterval(this.#watch);
    clearTimeout(this.#cut);
    this.#stop('the signalling connection closed');
  }

  #stop(reason: string): void {
    const { dialogue, logger, client } = this.#options;
    try {
      dialogue.stop(reason);
    } catch (error) {
      logger.limited.error({ err: error, peer: client }, 'a signalling session could not be ended');
    }
  }
}

function readMessage(text: string | null): SignallingMessage {
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

function sdpOf(member: unknown): string {
  const text = typeof member === 'object' && member !== null && 'sdp' in member ? member.sdp : undefined;
  if (typeof text !== 'string') throw new SignallingFault(400, 'There is no SDP');
  return text;
}

/** Invalid candidates are refused, as the reference server does. */
function candidateLines(candidates: unknown): string {
  if (!Array.isArray(candidates)) throw new SignallingFault(400, 'There are no candidates');
  const lines = (candidates as unknown[]).map((entry) => {
    const text = typeof entry === 'object' && entry !== null && 'candidate' in entry ? entry.candidate : undefined;
    if (typeof text !== 'string') throw new SignallingFault(400, 'A candidate has no text');
    if (text !== '' && !CANDIDATE.test(text)) throw new SignallingFault(400, 'Invalid candidate');
    return text;
  });
  return lines.join('\n');
}
