/**
 * All SRT connections of one UDP port, draft-sharabayko-srt-01 §4.3: answers callers, calls listeners, and passes every datagram to its
 * connection. Has no socket, and stores nothing about a caller before it has returned its cookie.
 */
import { randomInt } from 'node:crypto';
import { AddressRateLimiter } from '../../util/address-rate-limiter.ts';
import { forEachGuarded } from '../../util/guarded.ts';
import { ProtocolError } from '../../util/protocol-error.ts';
import { TokenBucket } from '../../util/token-bucket.ts';
import { type CallerOptions, SrtCaller, type SrtCallFailed } from './caller.ts';
import { type Conclusion, readConclusion } from './conclusion.ts';
import {
  type AgreedTerms,
  DEFAULT_CONNECTION_LIMITS,
  SrtConnection,
  type SrtConnectionEvents,
  type SrtConnectionLimits,
} from './connection.ts';
import {
  ExtensionBit,
  ExtensionType,
  HANDSHAKE_V5,
  type Handshake,
  type HandshakeExtension,
  HandshakeType,
  isHandshake,
  parseHandshake,
  SRT_MAGIC,
  SrtFlag,
  serializeCapabilities,
  serializeHandshake,
} from './handshake.ts';
import { destinationOf, HEADER_LENGTH, timestampOf } from './header.ts';
import type { KeyLength } from './key-material.ts';
import type { DatagramPeer, DatagramSink } from './link.ts';
import { REJECTION_BASE, RejectionCode } from './rejection.ts';
import { type KeyRefresh, SessionKeys } from './session-keys.ts';
import { SynCookies } from './syn-cookie.ts';
import { agreeOnLatency, capabilitiesFor, DEFAULT_LATENCY, handshakeWith, type LatencyWish } from './terms.ts';
import { writeU32 } from './words.ts';

/** Sends datagrams of one UDP port; may gather them until `flush`. */
export interface DatagramSender {
  /** One datagram: `head`, then `payload` if present. Their bytes must stay unchanged until `flush` has returned. */
  send(to: DatagramPeer, head: Uint8Array, payload: Uint8Array | null): void;
  /** Sends the batched datagrams. */
  flush(): void;
}

/** A caller that has proved its address. */
export interface SrtCall {
  readonly streamId: string;
  readonly peer: DatagramPeer;
  readonly encrypted: boolean;
}

/** Serves an accepted connection. */
export interface SrtSession extends SrtConnectionEvents {
  /** Called once, before anything else. */
  onOpen(connection: SrtConnection): void;
}

/** Decides about callers; both methods are called within the handshake and must answer at once. */
export interface CallPolicy {
  /** The passphrase that this caller must have; null: it must not encrypt. */
  passphrase(call: SrtCall): string | null;
  /** Serves the caller, or returns the reason of a refusal. */
  open(call: SrtCall): SrtSession | RejectionCode;
  /** A caller with a valid cookie was refused before `open`: wrong passphrase, unknown extension, no room. */
  onRefused?(peer: DatagramPeer, code: RejectionCode): void;
  /** A caller has to ask again because too many passphrases were tried. */
  onDeferred?(peer: DatagramPeer): void;
}

/** Absent limits have defaults. */
export interface MultiplexerOptions {
  readonly sender: DatagramSender;
  /** Null: callers are not answered. */
  readonly policy: CallPolicy | null;
  readonly latency?: LatencyWish;
  /** Proposed to callers that encrypt. */
  readonly keyLength?: KeyLength | null;
  readonly keyRefresh?: KeyRefresh;
  readonly connectionLimits?: Partial<SrtConnectionLimits>;
  /** Connections at once; more callers are refused. */
  readonly maxConnections?: number;
  /** Passphrases tried per second, a millisecond of work each; callers beyond that have to ask again. */
  readonly maxKeyTrialsPerSecond?: number;
  /** Passphrases of one address tried per second that were wrong, or right without a connection; 0: no limit. */
  readonly maxWrongKeysPerSecond?: number;
  /** `dueAt` is earlier now, because a packet was sent. */
  readonly onDue?: () => void;
  /** An internal failure on a peer's data, or in a session: that connection ends, the others continue. */
  readonly onFault?: (error: unknown) => void;
}

/** Datagrams and calls that led nowhere. */
export interface MultiplexerCounters {
  /** Not an SRT packet, or for an unknown connection. */
  stray: number;
  /** Handshakes that broke the protocol. */
  malformed: number;
  /** Conclusions with a wrong or expired cookie. */
  badCookie: number;
  /** Inductions left without an answer because too many came at once: their callers ask again, by default each 250 ms. */
  unanswered: number;
  /** Callers refused. */
  refused: number;
  /** Callers that have to ask again because too many passphrases were tried. */
  deferred: number;
}

interface Entry {
  readonly connection: SrtConnection;
  readonly peer: DatagramPeer;
  readonly callKey: string;
  /** The answer to the caller's conclusion, which may get lost. */
  readonly answer: Uint8Array | null;
}

/** An admitted caller. */
interface Admission {
  readonly call: SrtCall;
  readonly session: SrtSession;
  readonly keys: SessionKeys | null;
  readonly conclusion: Conclusion;
}

interface PendingCall {
  readonly caller: SrtCaller;
  readonly peer: DatagramPeer;
}

const MAX_SOCKET_ID = 0x3f_ff_ff_ff;
const DEFAULT_MAX_CONNECTIONS = 5000;
const DEFAULT_KEY_TRIALS = 100;
const DEFAULT_WRONG_KEYS = 20;
/** Inductions answered at once, and per second: an answer costs a signature, and a peer can request it from any forged address. */
const MAX_INDUCTIONS = { burst: 200, perSecond: 2000 } as const;

/** Parameters of `call`. */
export type OutgoingCall = Omit<CallerOptions, 'socketId' | 'peer'>;

/** Owned by its port, which hands it datagrams and the time. `close` ends all connections and calls, telling the peers. */
export class SrtMultiplexer {
  readonly counters: MultiplexerCounters = { stray: 0, malformed: 0, badCookie: 0, unanswered: 0, refused: 0, deferred: 0 };
  readonly #options: MultiplexerOptions;
  readonly #limits: SrtConnectionLimits;
  readonly #maxConnections: number;
  readonly #keyTrials: TokenBucket;
  readonly #wrongKeys: AddressRateLimiter;
  readonly #inductions = new TokenBucket(MAX_INDUCTIONS);
  readonly #cookies = new SynCookies();
  readonly #entries = new Map<number, Entry>();
  readonly #calls = new Map<number, PendingCall>();
  /** Accepted connections by address and socket id of the caller, to recognise a repeated conclusion. */
  readonly #accepted = new Map<string, Entry>();
  #dueAt = Number.POSITIVE_INFINITY;

  constructor(options: MultiplexerOptions) {
    this.#options = options;
    this.#limits = { ...DEFAULT_CONNECTION_LIMITS, ...options.connectionLimits };
    this.#maxConnections = options.maxConnections ?? DEFAULT_MAX_CONNECTIONS;
    const keyTrials = options.maxKeyTrialsPerSecond ?? DEFAULT_KEY_TRIALS;
    this.#keyTrials = new TokenBucket({ burst: keyTrials, perSecond: keyTrials });
    this.#wrongKeys = new AddressRateLimiter(options.maxWrongKeysPerSecond ?? DEFAULT_WRONG_KEYS);
  }

  /** Connections open now. */
  get connections(): number {
    return this.#entries.size;
  }

  /** True while `tick` is needed. */
  get busy(): boolean {
    return this.#entries.size > 0 || this.#calls.size > 0;
  }

  /** Time of the next `tick`, or a little earlier, µs; infinite if none is needed. */
  get dueAt(): number {
    return this.#dueAt;
  }

  /** Takes a datagram of the port at `now` µs; its buffer passes to us. */
  receive(datagram: Uint8Array, from: DatagramPeer, now: number): void {
    // A port of 0 can be forged but not answered: sending to it throws.
    if (datagram.length < HEADER_LENGTH || from.port === 0) {
      this.counters.stray += 1;
      return;
    }
    const destination = destinationOf(datagram);
    if (destination === 0) {
      this.#answerCaller(datagram, from, now);
      return;
    }
    const entry = this.#entries.get(destination);
    if (entry !== undefined && isSame(entry.peer, from)) {
      try {
        this.#dueAt = Math.min(this.#dueAt, entry.connection.receive(datagram, now));
      } catch (error) {
        this.#drop(entry, error, now);
      }
      return;
    }
    const call = this.#calls.get(destination);
    if (call !== undefined && isSame(call.peer, from)) this.#guardCall(call, () => call.caller.receive(datagram, now));
    else this.counters.stray += 1;
  }

  /** Does everything that depends on time; call it soon after `dueAt`. */
  tick(now: number): void {
    for (const call of this.#calls.values()) this.#guardCall(call, () => call.caller.tick(now));
    forEachGuarded(
      this.#entries.values(),
      ({ connection }) => connection.tick(now),
      (entry, error) => this.#drop(entry, error, now),
    );
    this.#dueAt = Number.POSITIVE_INFINITY;
    for (const { caller } of this.#calls.values()) this.#dueAt = Math.min(this.#dueAt, caller.dueAt);
    for (const { connection } of this.#entries.values()) this.#dueAt = Math.min(this.#dueAt, connection.dueAt);
  }

  /** Calls a listener. Success calls `session.onOpen`, failure `onFailed`. */
  call(peer: DatagramPeer, call: OutgoingCall, session: SrtSession, onFailed: (error: SrtCallFailed) => void, now: number): SrtCaller {
    const socketId = this.#newSocketId();
    const sink = this.#sinkTo(peer);
    const caller = new SrtCaller(
      { ...call, socketId, peer: peer.address },
      sink,
      {
        onConnected: (terms) => {
          this.#calls.delete(socketId);
          this.#add(terms, { peer, sink, callKey: '', answer: null, session });
        },
        onFailed: (error) => {
          this.#calls.delete(socketId);
          onFailed(error);
        },
      },
      now,
    );
    this.#calls.set(socketId, { caller, peer });
    this.#dueAt = Math.min(this.#dueAt, caller.dueAt);
    return caller;
  }

  /** Ends everything, telling the peers. */
  close(detail: string, now: number): void {
    for (const { caller } of [...this.#calls.values()]) caller.cancel(detail);
    for (const { connection } of [...this.#entries.values()]) connection.close(detail, now);
  }

  /** An internal error in one connection, or in its user, ends that connection. */
  #drop(entry: Entry, error: unknown, now: number): void {
    this.#options.onFault?.(error);
    const { connection, callKey } = entry;
    try {
      connection.close('internal error', now);
    } catch (again) {
      this.#options.onFault?.(again);
      this.#entries.delete(connection.terms.socketId);
      this.#accepted.delete(callKey);
    }
  }

  #guardCall({ caller }: PendingCall, action: () => void): void {
    try {
      action();
    } catch (error) {
      this.#options.onFault?.(error);
      caller.cancel('internal error');
    }
  }

  #answerCaller(datagram: Uint8Array, from: DatagramPeer, now: number): void {
    const { policy } = this.#options;
    if (policy === null || !isHandshake(datagram)) {
      this.counters.stray += 1;
      return;
    }
    let handshake: Handshake | null = null;
    try {
      handshake = parseHandshake(datagram);
      if (handshake.type === HandshakeType.INDUCTION) this.#induct(handshake, from, now);
      else if (handshake.type === HandshakeType.CONCLUSION) this.#conclude(handshake, { datagram, from, now, policy });
      else this.counters.stray += 1;
    } catch (error) {
      if (!(error instanceof ProtocolError)) {
        this.#options.onFault?.(error);
        return;
      }
      this.counters.malformed += 1;
      // Only a caller that has proved its address gets an answer.
      if (handshake?.type === HandshakeType.CONCLUSION && this.#cookies.isValid(addressKey(from), handshake.cookie, now / 1000)) {
        this.#refuse(handshake, from, RejectionCode.ROGUE);
      }
    }
  }

  #induct({ socketId, initialSequence }: Handshake, from: DatagramPeer, now: number): void {
    if (!this.#inductions.take(now / 1000)) {
      this.counters.unanswered += 1;
      return;
    }
    const { keyLength } = this.#options;
    const answer = handshakeWith({
      type: HandshakeType.INDUCTION,
      encryption: (keyLength ?? 0) / 8,
      extensionField: SRT_MAGIC,
      socketId,
      initialSequence,
      cookie: this.#cookies.issue(addressKey(from), now / 1000),
    });
    this.#options.sender.send(from, serializeHandshake(answer, { destination: socketId, timestamp: 0, peer: from.address }), null);
  }

  #conclude(
    handshake: Handshake,
    { datagram, from, now, policy }: { datagram: Uint8Array; from: DatagramPeer; now: number; policy: CallPolicy },
  ): void {
    const callKey = `${addressKey(from)} ${handshake.socketId}`;
    const known = this.#accepted.get(callKey);
    if (known?.answer) {
      writeU32(known.answer, 8, Math.floor(now - known.connection.terms.startedAt));
      this.#options.sender.send(from, known.answer, null);
      return;
    }
    if (!this.#cookies.isValid(addressKey(from), handshake.cookie, now / 1000)) {
      this.counters.badCookie += 1;
      return;
    }
    const judged = this.#judge(handshake, { from, now, policy });
    if (judged === null) return;
    const { call, session, keys, conclusion } = judged;
    const { capabilities, keyMaterial } = conclusion;
    const latency = agreeOnLatency(this.#options.latency ?? DEFAULT_LATENCY, capabilities);
    const terms: AgreedTerms = {
      socketId: this.#newSocketId(),
      peerSocketId: handshake.socketId,
      initialSequence: handshake.initialSequence,
      peerInitialSequence: handshake.initialSequence,
      startedAt: now,
      concludedAt: now,
      peerTimestamp: timestampOf(datagram),
      latency: latency.receive * 1000,
      peerLatency: latency.peer * 1000,
      tooLateDrop: (capabilities.flags & SrtFlag.TOO_LATE_DROP) !== 0,
      flowWindow: handshake.flowWindow,
      keys,
    };
    const answer = conclusionAnswer(handshake, terms, latency, { peer: call.peer, keyMaterial });
    this.#options.sender.send(call.peer, answer, null);
    this.#add(terms, { peer: call.peer, sink: this.#sinkTo(call.peer), callKey, answer, session });
  }

  /** Admits a caller with a valid cookie; null: the caller was refused, or has to repeat its request. */
  #judge(handshake: Handshake, { from, now, policy }: { from: DatagramPeer; now: number; policy: CallPolicy }): Admission | null {
    const refuse = (code: RejectionCode): null => this.#refuse(handshake, from, code);
    const conclusion = readConclusion(handshake);
    if (typeof conclusion === 'number') return refuse(conclusion);
    if (this.#entries.size >= this.#maxConnections) return refuse(RejectionCode.RESOURCE);
    const { keyMaterial, streamId } = conclusion;
    const call: SrtCall = { streamId, peer: { address: from.address, port: from.port }, encrypted: keyMaterial !== null };
    const passphrase = policy.passphrase(call);
    if ((passphrase === null) !== (keyMaterial === null)) return refuse(RejectionCode.UNSECURE);
    let keys: SessionKeys | null = null;
    if (passphrase !== null && keyMaterial !== null) {
      // The limit of the address is checked first: a caller that tries one passphrase after the other must not use up the common limit.
      const ms = now / 1000;
      if (!this.#wrongKeys.take(from.address, ms) || !this.#keyTrials.take(ms)) {
        this.counters.deferred += 1;
        policy.onDeferred?.(call.peer);
        return null;
      }
      keys = SessionKeys.receive(passphrase, keyMaterial, this.#options.keyRefresh);
      if (keys === null) return refuse(RejectionCode.BAD_SECRET);
    }
    const session = policy.open(call);
    if (typeof session === 'number') {
      this.#answerRefusal(handshake, from, session);
      return null;
    }
    if (keys !== null) this.#wrongKeys.giveBack(from.address);
    return { call, session, keys, conclusion };
  }

  #add(
    terms: AgreedTerms,
    { peer, sink, callKey, answer, session }: Omit<Entry, 'connection'> & { readonly sink: DatagramSink; readonly session: SrtSession },
  ): void {
    const connection = new SrtConnection(
      terms,
      sink,
      {
        onData: (payload) => session.onData(payload),
        onClosed: (reason) => {
          this.#entries.delete(terms.socketId);
          this.#accepted.delete(callKey);
          session.onClosed(reason);
        },
        onDue: (at) => {
          if (at >= this.#dueAt) return;
          this.#dueAt = at;
          this.#options.onDue?.();
        },
      },
      this.#limits,
    );
    const entry: Entry = { connection, peer, callKey, answer };
    this.#entries.set(terms.socketId, entry);
    this.#dueAt = Math.min(this.#dueAt, connection.dueAt);
    if (answer !== null) this.#accepted.set(callKey, entry);
    session.onOpen(connection);
  }

  #refuse(handshake: Handshake, from: DatagramPeer, code: RejectionCode): null {
    this.#answerRefusal(handshake, from, code);
    this.#options.policy?.onRefused?.({ address: from.address, port: from.port }, code);
    return null;
  }

  #answerRefusal(handshake: Handshake, to: DatagramPeer, code: number): void {
    this.counters.refused += 1;
    const { socketId, cookie, initialSequence } = handshake;
    const refusal = handshakeWith({ type: REJECTION_BASE + code, socketId, cookie, initialSequence });
    this.#options.sender.send(to, serializeHandshake(refusal, { destination: socketId, timestamp: 0, peer: to.address }), null);
  }

  #sinkTo(peer: DatagramPeer): DatagramSink {
    const { sender } = this.#options;
    return { send: (head, payload) => sender.send(peer, head, payload) };
  }

  #newSocketId(): number {
    for (;;) {
      const id = randomInt(1, MAX_SOCKET_ID);
      if (!this.#entries.has(id) && !this.#calls.has(id)) return id;
    }
  }
}

function conclusionAnswer(
  { cookie, encryption }: Handshake,
  terms: AgreedTerms,
  latency: LatencyWish,
  { peer, keyMaterial }: { peer: DatagramPeer; keyMaterial: Uint8Array | null },
): Uint8Array {
  const extensions: HandshakeExtension[] = [
    { type: ExtensionType.HANDSHAKE_RESPONSE, content: serializeCapabilities(capabilitiesFor(latency)) },
  ];
  // Repeating the key material confirms it.
  if (keyMaterial !== null) extensions.push({ type: ExtensionType.KEY_RESPONSE, content: keyMaterial });
  const answer = handshakeWith({
    version: HANDSHAKE_V5,
    encryption,
    extensionField: ExtensionBit.HANDSHAKE | (keyMaterial === null ? 0 : ExtensionBit.KEY_MATERIAL),
    type: HandshakeType.CONCLUSION,
    socketId: terms.socketId,
    cookie,
    initialSequence: terms.initialSequence,
    extensions,
  });
  return serializeHandshake(answer, { destination: terms.peerSocketId, timestamp: 0, peer: peer.address });
}

function addressKey({ address, port }: DatagramPeer): string {
  return `${address} ${port}`;
}

function isSame(a: DatagramPeer, b: DatagramPeer): boolean {
  return a.port === b.port && a.address === b.address;
}
