/**
 * One established SRT connection in live mode, draft-sharabayko-srt-01 §4 to §6, without socket and timer: its owner passes it datagrams
 * and the time, and gets datagrams and payloads. All times are µs of one monotonic clock.
 */
import { ProtocolError } from '../../util/protocol-error.ts';
import {
  type ControlPacket,
  parseControlPacket,
  serializeAckAck,
  serializeKeepAlive,
  serializeShutdown,
  serializeUserDefined,
} from './control-packet.ts';
import { ExtensionType } from './handshake.ts';
import { isControlPacket, timestampOf } from './header.ts';
import { KeyState } from './key-material.ts';
import type { DatagramSink, Link } from './link.ts';
import { DEFAULT_BANDWIDTH, type SendBandwidth } from './live-pacer.ts';
import { Receiver } from './receiver.ts';
import { RttEstimator } from './rtt-estimator.ts';
import { Sender } from './sender.ts';
import type { SessionKeys } from './session-keys.ts';
import type { SrtStatistics } from './statistics.ts';
import { TsbpdClock } from './tsbpd-clock.ts';
import { writeU32 } from './words.ts';

/** Silence after which a keep-alive is sent, µs. */
const KEEP_ALIVE_INTERVAL = 1_000_000;
/** Minimum time between key material sent, and between key material checked, µs: deriving keys costs a millisecond. */
const KEY_INTERVAL = 50_000;

/** Why a connection ended. */
export interface SrtCloseReason {
  readonly code: 'closed' | 'peer-left' | 'timeout';
  readonly detail: string;
}

/** Events for the owner of a connection. `onClosed` is the last. */
export interface SrtConnectionEvents {
  /** Payloads in order, each a view into a buffer of its own that passes to the owner. */
  onData(payload: Uint8Array): void;
  onClosed(reason: SrtCloseReason): void;
  /** A payload was sent, so `tick` is due at `at` µs, or at an earlier time that was given before. */
  onDue?(at: number): void;
}

/** Limits of this side. */
export interface SrtConnectionLimits {
  /** Silence after which the peer counts as gone, µs. */
  readonly idleTimeout: number;
  /** Packets kept for sending (again), a power of two. */
  readonly sendBuffer: number;
  /** Packets kept until they are passed on, a power of two. */
  readonly receiveBuffer: number;
  readonly bandwidth: SendBandwidth;
}

/** The limits of libsrt, where it has them: 5 s of silence, buffers of 8192 packets. */
export const DEFAULT_CONNECTION_LIMITS: SrtConnectionLimits = {
  idleTimeout: 5_000_000,
  sendBuffer: 8192,
  receiveBuffer: 8192,
  bandwidth: DEFAULT_BANDWIDTH,
};

/** The result of a handshake. */
export interface AgreedTerms {
  readonly socketId: number;
  readonly peerSocketId: number;
  /** Number of the first packet we send, and of the first one the peer does. */
  readonly initialSequence: number;
  readonly peerInitialSequence: number;
  /** Time on our clock at which our timestamps are 0. */
  readonly startedAt: number;
  /** End of the handshake, on our clock and on the peer's. */
  readonly concludedAt: number;
  readonly peerTimestamp: number;
  /** Time for which we hold packets back, µs. */
  readonly latency: number;
  /** Time for which the peer holds packets back, µs. */
  readonly peerLatency: number;
  /** The peer skips packets that come too late. */
  readonly tooLateDrop: boolean;
  /** Packets the peer can take. */
  readonly flowWindow: number;
  readonly keys: SessionKeys | null;
}

/**
 * The caller or the multiplexer creates it and passes it datagrams; it ends by `close`, by the peer, or by silence. Every end calls
 * `onClosed`.
 */
export class SrtConnection {
  readonly terms: AgreedTerms;
  /** Control packets that broke the protocol. */
  malformed = 0;
  readonly #sink: DatagramSink;
  readonly #events: SrtConnectionEvents;
  readonly #limits: SrtConnectionLimits;
  readonly #link: Link;
  readonly #sender: Sender;
  readonly #receiver: Receiver;
  #closed = false;
  #heardAt: number;
  #sentAt: number;
  #keysSentAt = 0;
  #keysJudgedAt = 0;

  constructor(
    terms: AgreedTerms,
    sink: DatagramSink,
    events: SrtConnectionEvents,
    limits: SrtConnectionLimits = DEFAULT_CONNECTION_LIMITS,
  ) {
    this.terms = terms;
    this.#sink = sink;
    this.#events = events;
    this.#limits = limits;
    this.#heardAt = terms.concludedAt;
    this.#sentAt = terms.concludedAt;
    this.#link = {
      sink,
      rtt: new RttEstimator(),
      keys: terms.keys,
      address: (now) => {
        this.#sentAt = now;
        return { timestamp: Math.floor(now - terms.startedAt), destination: terms.peerSocketId };
      },
    };
    this.#sender = new Sender(this.#link, {
      initialSequence: terms.initialSequence,
      peerLatency: terms.peerLatency,
      tooLateDrop: terms.tooLateDrop,
      flowWindow: terms.flowWindow,
      bufferLimit: limits.sendBuffer,
      bandwidth: limits.bandwidth,
    });
    this.#receiver = new Receiver(this.#link, {
      initialSequence: terms.peerInitialSequence,
      clock: new TsbpdClock(terms.concludedAt, terms.peerTimestamp, terms.latency),
      bufferLimit: limits.receiveBuffer,
      onPayload: (payload) => {
        if (!this.#closed) events.onData(payload);
      },
    });
  }

  get closed(): boolean {
    return this.#closed;
  }

  get encrypted(): boolean {
    return this.terms.keys !== null;
  }

  /** Packets kept for sending (again). */
  get sendBacklog(): number {
    return this.#sender.backlog;
  }

  get statistics(): SrtStatistics {
    return {
      rtt: this.#link.rtt.rtt / 1000,
      sender: { ...this.#sender.statistics },
      receiver: { ...this.#receiver.statistics },
      malformed: this.malformed,
    };
  }

  /** Time of the next `tick`, µs. */
  get dueAt(): number {
    const silent = Math.min(this.#heardAt + this.#limits.idleTimeout + 1, this.#sentAt + KEEP_ALIVE_INTERVAL);
    const keys = this.terms.keys?.announcement ? this.#keysSentAt + this.#keyInterval : Number.POSITIVE_INFINITY;
    return Math.min(this.#receiver.dueAt, this.#sender.dueAt, silent, keys);
  }

  /**
   * Sends one payload of at most 1456 bytes, which must not change afterwards: several connections may share it. False
   * when the buffer is full or the connection closed; the payload is then dropped.
   */
  send(payload: Uint8Array, now: number): boolean {
    if (this.#closed) return false;
    const taken = this.#sender.push(payload, now);
    // A payload can make `tick` due sooner only for the sender, and for a new key.
    this.#events.onDue?.(this.terms.keys === null ? this.#sender.dueAt : this.dueAt);
    return taken;
  }

  /**
   * Takes a datagram for this connection; keeps and changes its buffer. Returns when `tick` is due, µs; an earlier time that was returned
   * before remains.
   */
  receive(datagram: Uint8Array, now: number): number {
    if (this.#closed) return Number.POSITIVE_INFINITY;
    this.#heardAt = now;
    if (!isControlPacket(datagram)) {
      this.#receiver.receive(datagram, now);
      // Media makes `tick` due sooner only for the receiver.
      return this.#receiver.dueAt;
    }
    try {
      this.#control(parseControlPacket(datagram), timestampOf(datagram), now);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.malformed += 1;
    }
    return this.dueAt;
  }

  /** Does everything that depends on time; call it at `dueAt`, or more often. */
  tick(now: number): void {
    if (this.#closed) return;
    if (now - this.#heardAt > this.#limits.idleTimeout) {
      this.#end({ code: 'timeout', detail: `nothing heard for ${Math.round(this.#limits.idleTimeout / 1000)} ms` });
      return;
    }
    this.#receiver.tick(now);
    if (this.#closed) return;
    this.#sender.tick(now);
    this.#announceKeys(now);
    if (now - this.#sentAt >= KEEP_ALIVE_INTERVAL) this.#sink.send(serializeKeepAlive(this.#link.address(now)), null);
  }

  /** Tells the peer and ends. Idempotent. */
  close(detail: string, now: number): void {
    if (this.#closed) return;
    this.#sink.send(serializeShutdown(this.#link.address(now)), null);
    this.#end({ code: 'closed', detail });
  }

  #end(reason: SrtCloseReason): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#events.onClosed(reason);
  }

  #control(packet: ControlPacket, timestamp: number, now: number): void {
    switch (packet.type) {
      case 'ack':
        if (packet.number !== 0) this.#sink.send(serializeAckAck(packet.number, this.#link.address(now)), null);
        this.#sender.acknowledge(packet.sequence, packet.report, now);
        break;
      case 'ack-ack':
        this.#receiver.acknowledged(packet.number, timestamp, now);
        break;
      case 'nak':
        this.#sender.reportLost(packet.ranges, now);
        break;
      case 'drop-request':
        this.#receiver.drop(packet.range);
        break;
      case 'user-defined':
        this.#keyMaterial(packet.subtype, packet.content, now);
        break;
      case 'shutdown':
        this.#receiver.flush();
        this.#end({ code: 'peer-left', detail: 'shut down by the peer' });
        break;
      case 'peer-error':
        this.#end({ code: 'peer-left', detail: `peer failed with code ${packet.code}` });
        break;
      case 'keep-alive':
      case 'other':
        break;
    }
  }

  #keyMaterial(subtype: number, content: Uint8Array, now: number): void {
    const { keys } = this.terms;
    if (subtype === ExtensionType.KEY_RESPONSE) {
      keys?.confirm(content);
      return;
    }
    if (subtype !== ExtensionType.KEY_REQUEST || now - this.#keysJudgedAt < KEY_INTERVAL) return;
    this.#keysJudgedAt = now;
    const answer = keys === null ? keyFailure(KeyState.NO_SECRET) : keys.accept(content) ? content : keyFailure(KeyState.BAD_SECRET);
    this.#sink.send(serializeUserDefined(ExtensionType.KEY_RESPONSE, answer, this.#link.address(now)), null);
  }

  /** Time between announcements of keys, µs. */
  get #keyInterval(): number {
    return Math.max(KEY_INTERVAL, 1.5 * this.#link.rtt.rtt);
  }

  #announceKeys(now: number): void {
    const announcement = this.terms.keys?.announcement ?? null;
    if (announcement === null || now - this.#keysSentAt < this.#keyInterval) return;
    this.#keysSentAt = now;
    this.#sink.send(serializeUserDefined(ExtensionType.KEY_REQUEST, announcement, this.#link.address(now)), null);
  }
}

function keyFailure(state: number): Uint8Array {
  const content = new Uint8Array(4);
  writeU32(content, 0, state);
  return content;
}
