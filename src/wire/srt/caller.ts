/** Opens a connection as the caller, draft-sharabayko-srt-01 §4.3.1: induction, then conclusion. Without a socket. */
import { randomInt } from 'node:crypto';
import { ProtocolError } from '../../util/protocol-error.ts';
import type { AgreedTerms } from './connection.ts';
import {
  ExtensionBit,
  ExtensionType,
  HANDSHAKE_V4,
  HANDSHAKE_V5,
  type Handshake,
  type HandshakeExtension,
  HandshakeType,
  isHandshake,
  parseCapabilities,
  parseHandshake,
  rejectionOf,
  SRT_MAGIC,
  SrtFlag,
  serializeCapabilities,
  serializeHandshake,
  serializeTextExtension,
  UDT_DATAGRAM,
} from './handshake.ts';
import { timestampOf } from './header.ts';
import { isKeyLength, type KeyLength } from './key-material.ts';
import type { DatagramSink } from './link.ts';
import { describeRejection, RejectionCode } from './rejection.ts';
import { SEQUENCE_MASK } from './sequence.ts';
import { type KeyRefresh, SessionKeys } from './session-keys.ts';
import { agreeOnLatency, capabilitiesFor, handshakeWith, type LatencyWish } from './terms.ts';

/** A handshake without an answer is repeated after this time, µs. */
const REPEAT_INTERVAL = 250_000;

/** The connection could not be opened; `code` is one of `RejectionCode`. */
export class SrtCallFailed extends Error {
  override readonly name = 'SrtCallFailed';
  readonly code: number;

  constructor(code: number, detail: string) {
    super(detail);
    this.code = code;
  }
}

/** Options of the call; proposals are for the listener to accept or refuse. */
export interface CallerOptions {
  /** Socket id of the new connection. */
  readonly socketId: number;
  readonly streamId: string;
  /** Null: without encryption. */
  readonly passphrase: string | null;
  /** Null takes the listener's proposal, else 16. */
  readonly keyLength: KeyLength | null;
  readonly keyRefresh?: KeyRefresh | undefined;
  readonly latency: LatencyWish;
  /** Time for the whole handshake, µs. */
  readonly timeout: number;
  /** The listener's address. */
  readonly peer: string;
}

/** Called once with the result of the call, within `receive`, `tick` or `cancel`. */
export interface CallOutcome {
  onConnected(terms: AgreedTerms): void;
  /** Called once, instead of `onConnected`. */
  onFailed(error: SrtCallFailed): void;
}

/** One call. The owner passes it datagrams and the time until `done`, and may cancel it. */
export class SrtCaller {
  readonly #options: CallerOptions;
  readonly #sink: DatagramSink;
  readonly #outcome: CallOutcome;
  readonly #startedAt: number;
  readonly #initialSequence = randomInt(SEQUENCE_MASK + 1);
  #handshake: Handshake;
  #keys: SessionKeys | null = null;
  #concluding = false;
  #sentAt = 0;
  #done = false;

  /** Sends the first handshake; `now` in µs. */
  constructor(options: CallerOptions, sink: DatagramSink, outcome: CallOutcome, now: number) {
    this.#options = options;
    this.#sink = sink;
    this.#outcome = outcome;
    this.#startedAt = now;
    this.#handshake = handshakeWith({
      version: HANDSHAKE_V4,
      extensionField: UDT_DATAGRAM,
      type: HandshakeType.INDUCTION,
      socketId: options.socketId,
      cookie: 0,
      initialSequence: this.#initialSequence,
    });
    this.#send(now);
  }

  get done(): boolean {
    return this.#done;
  }

  /** Takes a datagram for the socket id of the new connection; unexpected ones are ignored. */
  receive(datagram: Uint8Array, now: number): void {
    if (this.#done || !isHandshake(datagram)) return;
    try {
      const handshake = parseHandshake(datagram);
      const rejection = rejectionOf(handshake);
      if (rejection !== null) this.#fail(rejection, `refused by the listener: ${describeRejection(rejection)}`);
      else if (handshake.type === HandshakeType.INDUCTION && !this.#concluding) this.#conclude(handshake, now);
      else if (handshake.type === HandshakeType.CONCLUSION && this.#concluding) this.#connect(handshake, timestampOf(datagram), now);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.#fail(RejectionCode.ROGUE, error.message);
    }
  }

  /** Time of the next `tick`, µs. */
  get dueAt(): number {
    return Math.min(this.#startedAt + this.#options.timeout, this.#sentAt + REPEAT_INTERVAL);
  }

  /** Repeats handshakes, and gives up after the timeout; call it at `dueAt`. */
  tick(now: number): void {
    if (this.#done) return;
    if (now - this.#startedAt >= this.#options.timeout) {
      this.#fail(RejectionCode.TIMEOUT, `no answer within ${Math.round(this.#options.timeout / 1000)} ms`);
    } else if (now - this.#sentAt >= REPEAT_INTERVAL) {
      this.#send(now);
    }
  }

  /** Gives up. Idempotent. */
  cancel(detail: string): void {
    this.#fail(RejectionCode.CLOSE, detail);
  }

  #conclude(induction: Handshake, now: number): void {
    if (induction.version !== HANDSHAKE_V5 || induction.extensionField !== SRT_MAGIC) {
      this.#fail(RejectionCode.VERSION, 'the listener does not speak SRT 1.3 or newer');
      return;
    }
    const { passphrase, keyLength, keyRefresh, latency, streamId, socketId } = this.#options;
    const extensions: HandshakeExtension[] = [
      { type: ExtensionType.HANDSHAKE_REQUEST, content: serializeCapabilities(capabilitiesFor(latency)) },
    ];
    let field: number = ExtensionBit.HANDSHAKE;
    if (passphrase !== null) {
      const proposed = induction.encryption * 8;
      this.#keys = SessionKeys.generate(passphrase, keyLength ?? (isKeyLength(proposed) ? proposed : 16), keyRefresh);
      field |= ExtensionBit.KEY_MATERIAL;
      extensions.push({ type: ExtensionType.KEY_REQUEST, content: this.#keys.message() });
    }
    if (streamId !== '') {
      field |= ExtensionBit.CONFIG;
      extensions.push({ type: ExtensionType.STREAM_ID, content: serializeTextExtension(streamId) });
    }
    this.#handshake = handshakeWith({
      encryption: (this.#keys?.keyLength ?? 0) / 8,
      extensionField: field,
      type: HandshakeType.CONCLUSION,
      socketId,
      cookie: induction.cookie,
      initialSequence: this.#initialSequence,
      extensions,
    });
    this.#concluding = true;
    this.#send(now);
  }

  #connect(answer: Handshake, timestamp: number, now: number): void {
    const content = (type: number): Uint8Array | undefined => answer.extensions.find((extension) => extension.type === type)?.content;
    const response = content(ExtensionType.HANDSHAKE_RESPONSE);
    if (response === undefined) {
      this.#fail(RejectionCode.ROGUE, 'the listener answered without its abilities');
      return;
    }
    const keyAnswer = content(ExtensionType.KEY_RESPONSE);
    const keysTaken = keyAnswer !== undefined && Buffer.compare(keyAnswer, this.#keys?.message() ?? keyAnswer) === 0;
    if (this.#keys !== null && !keysTaken) {
      this.#fail(keyAnswer === undefined ? RejectionCode.UNSECURE : RejectionCode.BAD_SECRET, 'the listener did not take the key');
      return;
    }
    const capabilities = parseCapabilities(response);
    const latency = agreeOnLatency(this.#options.latency, capabilities);
    this.#done = true;
    this.#outcome.onConnected({
      socketId: this.#options.socketId,
      peerSocketId: answer.socketId,
      initialSequence: this.#initialSequence,
      peerInitialSequence: answer.initialSequence,
      startedAt: this.#startedAt,
      concludedAt: now,
      peerTimestamp: timestamp,
      latency: latency.receive * 1000,
      peerLatency: latency.peer * 1000,
      tooLateDrop: (capabilities.flags & SrtFlag.TOO_LATE_DROP) !== 0,
      flowWindow: answer.flowWindow,
      keys: this.#keys,
    });
  }

  #fail(code: number, detail: string): void {
    if (this.#done) return;
    this.#done = true;
    this.#outcome.onFailed(new SrtCallFailed(code, detail));
  }

  #send(now: number): void {
    this.#sentAt = now;
    const timestamp = Math.floor(now - this.#startedAt);
    this.#sink.send(serializeHandshake(this.#handshake, { destination: 0, timestamp, peer: this.#options.peer }), null);
  }
}
