/** Finds the compiled addon in `native/` and gives it types. */
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { messageOf } from '../util/message-of.ts';

/** Handles are opaque and freed by the garbage collector. */
export type Handle = object;

/** The result of a handshake step. `state`: 0 in progress, 1 connected, 2 over. */
export interface DtlsOutcome {
  readonly state: number;
  readonly error: string;
  readonly datagrams: readonly Buffer[];
}

/** Result of a completed handshake: SRTP keys by DTLS-SRTP profile (RFC 5764 section 4.2) and the SHA-256 of the peer's certificate. */
export interface NativeKeys {
  readonly profile: number;
  readonly localKey: Buffer;
  readonly localSalt: Buffer;
  readonly remoteKey: Buffer;
  readonly remoteSalt: Buffer;
  readonly fingerprint: Buffer;
}

/** The exports of `native/src/addon.cc`; each function there names its arguments. */
export interface NativeAddon {
  open(
    threads: number,
    mode: number,
    history: number,
    deliver: (type: number, id: number, bytes: Buffer, host: string, port: number, at: number) => void,
  ): Handle;
  close(fanout: Handle): void;
  bind(fanout: Handle, host: string, port: number): [id: number, port: number];
  send(fanout: Handle, socket: number, host: string, port: number, bytes: Uint8Array): boolean;
  openSource(fanout: Handle, clockRate: number, epochMs: number, fec: boolean): number;
  closeSource(fanout: Handle, source: number): void;
  push(
    fanout: Handle,
    source: number,
    timestamp: number,
    keyframe: boolean,
    marker: boolean,
    payloads: Uint8Array,
    sizes: Uint32Array,
  ): boolean;
  openViewer(fanout: Handle, cname: string, slots: Uint32Array, extensions: Uint8Array): number;
  closeViewer(fanout: Handle, viewer: number): void;
  setKeys(
    fanout: Handle,
    viewer: number,
    profile: number,
    localKey: Uint8Array,
    localSalt: Uint8Array,
    remoteKey: Uint8Array,
    remoteSalt: Uint8Array,
  ): boolean;
  connect(fanout: Handle, viewer: number, socket: number, host: string, port: number): boolean;
  hear(fanout: Handle, viewer: number, socket: number, host: string, port: number): boolean;
  connectTcp(fanout: Handle, viewer: number): boolean;
  play(fanout: Handle, viewer: number, slot: number, source: number): boolean;
  inject(fanout: Handle, viewer: number, packet: Uint8Array): boolean;
  sendRtcp(fanout: Handle, viewer: number, packet: Uint8Array): boolean;
  viewerCounters(fanout: Handle, viewer: number): Record<string, number> | null;
  readSends(fanout: Handle, viewer: number, first: number, into: Uint32Array): void;
  counters(fanout: Handle): Record<string, number>;
  dtlsContext(certificate: string, key: string): Handle;
  dtlsOpen(context: Handle, server: boolean): Handle;
  dtlsReceive(dtls: Handle, datagram: Uint8Array): DtlsOutcome;
  dtlsTick(dtls: Handle): DtlsOutcome;
  dtlsClose(dtls: Handle): DtlsOutcome;
  dtlsKeys(dtls: Handle): NativeKeys | null;
  srtpOpen(profile: number, key: Uint8Array, salt: Uint8Array): Handle;
  srtpProtect(protector: Handle, packet: Uint8Array, index: number): Buffer;
  /** A number is an error: 1 malformed, 2 forged, 3 replayed, 4 too many sources. */
  srtpUnprotect(protector: Handle, packet: Uint8Array): Buffer | number;
  udpOpen(
    host: string,
    port: number,
    bufferBytes: number,
    words: Uint32Array,
    told: (event: number, first: number, second: number) => void,
  ): [socket: Handle, port: number];
  udpClose(socket: Handle): void;
  udpSend(socket: Handle, bytes: Uint8Array, words: Uint32Array, from: number, count: number): number;
  udpTake(socket: Handle, into: Uint8Array, at: number): void;
  udpAlarm(socket: Handle, ms: number): void;
  udpErrorText(error: number): string;
  udpAwaitRoom(socket: Handle): void;
  udpParse(socket: Handle, address: string, words: Uint32Array): boolean;
  udpText(socket: Handle, n: number): string;
  udpCounters(socket: Handle): NativeUdpCounters;
  memoryFileOpen(chunks: readonly Uint8Array[]): Handle | null;
  memoryFileClose(memoryFile: Handle): void;
  /** How many bytes of `head` (Latin-1) and `chunks` the socket took. */
  tcpSend(descriptor: number, head: string, chunks: readonly Uint8Array[]): number;
  tcpSendMemoryFile(descriptor: number, head: string, memoryFile: Handle, length: number): number;
  /** How many bytes came, 0 at the end of the stream, a negative error number, or undefined when nothing has come. */
  tcpReceive(descriptor: number, into: Uint8Array): number | undefined;
  /** How many bytes of gzip were written; 0: `text` or its compressed form is too long, or there is no zlib. */
  gzipText(text: string, into: Uint8Array): number;
  /** The context of a certificate with its chain, and its key (PEM; empty: none). Throws when they cannot be used. */
  tlsContext(cert: string, key: string, ciphers: string, suites: string, groups: string, oldest: number, http2: boolean): Handle;
  tlsOpen(context: Handle, descriptor: number, streams: number, headerLines: number, headerBytes: number): Handle;
  tlsClose(connection: Handle): void;
  /** Flags, and above them the number of plain bytes in `into` (see `TlsLink`). */
  tlsReceive(connection: Handle, bytes: Uint8Array, into: Uint8Array, choose: (serverName: string) => Handle | null): number;
  /** Flags, and above them the number of bytes of head and chunks that are encrypted so far. */
  tlsSend(connection: Handle, head: string, chunks: readonly Uint8Array[], skip: number): number;
  tlsShut(connection: Handle): number;
  tlsTakeRest(connection: Handle): Buffer;
  tlsRestSent(connection: Handle): void;
  tlsError(connection: Handle): string;
  http2Respond(connection: Handle, stream: number, status: string, block: string, chunks: readonly Uint8Array[] | null): boolean;
  http2Control(connection: Handle, what: number, stream: number, amount: number): void;
  http2Flush(connection: Handle): number;
  /** Type, stream, number, text or bytes of each. */
  http2Events(connection: Handle): (number | string | Buffer)[];
  /** `mostFollowers`: requests that wait for the answers to others at once. */
  answersOpen(mostFollowers: number): Handle;
  /** The link to a TCP connection of this thread that Node.js reads; null: it cannot be had. */
  answersLink(cache: Handle, descriptor: number): Handle | null;
  answersArm(link: Handle): void;
  answersDisarm(link: Handle): void;
  /** Whether requests were released, which `answersReleaseAll` hands to JavaScript; as the other functions that answer so. */
  answersUnlink(link: Handle): boolean;
  answersRelease(link: Handle): void;
  answersReleaseAll(cache: Handle): void;
  /** Hands the requests that wait for answers of a feed to JavaScript. */
  answersReleaseFeed(cache: Handle, feed: number): void;
  /** Whether requests of others for the same may wait for the answer to the one that JavaScript holds. */
  answersLead(link: Handle, target: string, variant: number, feed: number): boolean;
  answersEndLead(link: Handle): boolean;
  answersFollowers(link: Handle): number;
  /** How long the request that JavaScript is answering has followed another, ms. */
  answersHeldFor(link: Handle): number;
  /** Requests that follow others. */
  answersWaiting(cache: Handle): number;
  answersRequests(link: Handle): number;
  /** Time since the last answer, ms; 0 while an answer is being sent, below 0 before the first. */
  answersIdle(link: Handle): number;
  answersKeep(
    link: Handle,
    target: string,
    variant: number,
    feed: number,
    head: string,
    billed: number,
    body: readonly Uint8Array[],
    tailLength: number,
    places: Uint32Array,
    sums: Uint32Array,
  ): boolean;
  answersKeepMemoryFile(
    link: Handle,
    target: string,
    variant: number,
    feed: number,
    head: string,
    billed: number,
    memoryFile: Handle,
  ): boolean;
  /** Below 0: of all feeds, with the sessions. */
  answersFlush(cache: Handle, feed: number): boolean;
  answersSession(cache: Handle, token: string, feed: number, expiresAt: number): number;
  answersForget(cache: Handle, session: number): void;
  answersSweep(cache: Handle, limit: number): void;
  answersTake(cache: Handle): NativeAnswerFigures;
  /** A listening socket that accepts nothing and calls `knocked` once, with the first connection. */
  doorOpen(host: string, port: number, backlog: number, knocked: () => void): [door: Handle, port: number, descriptor: number];
  doorClose(door: Handle): void;
  /** Another descriptor of the same socket, or a negative error number. */
  doorShare(descriptor: number): number;
  /** Gives memory that was freed back to the system. */
  trimMemory(): void;
  /** Sends a datagram to a Unix socket, whose name is abstract when it begins with `@`. 0, or the number of the error; never waits. */
  notifySend(path: string, text: string): number;
}

/** Numbers since the socket was opened. */
export interface NativeUdpCounters {
  readonly datagramsSent: number;
  readonly sendCalls: number;
  readonly sendErrors: number;
  readonly datagramsReceived: number;
  readonly receiveCalls: number;
}

/** The requests answered without JavaScript since the last call. */
export interface NativeAnswerFigures {
  readonly requests: number;
  readonly bytes: number;
  readonly aborts: number;
  readonly timeouts: number;
  /** Answers that were not kept because there was no room. */
  readonly refused: number;
  /** Requests that began to follow others. */
  readonly held: number;
  /** Requests that could have, for which there was no room. */
  readonly crowded: number;
  /** Requests that followed others until their clients left. */
  readonly left: number;
  /** Pairs: the number of a feed, and the bytes sent of it. */
  readonly feeds: readonly number[];
  /** Pairs: the number of a session, and the bytes sent to it. */
  readonly sessions: readonly number[];
}

/** Overrides the addon: the path of another build, or `off` for none. */
const OVERRIDE = 'MILLRACE_NATIVE';
/** A function that builds of older versions lack. */
const NEWEST = 'memoryFileOpen' satisfies keyof NativeAddon;
const BUILT = new URL('../../native/build/millrace.node', import.meta.url);

/** The addon, or why there is none. */
export function loadAddon(): { readonly addon: NativeAddon } | { readonly addon: null; readonly reason: string } {
  const override = process.env[OVERRIDE];
  if (override === 'off') return { addon: null, reason: `switched off by ${OVERRIDE}` };
  const file = override === undefined || override === '' ? fileURLToPath(BUILT) : override;
  if (!existsSync(file)) return { addon: null, reason: `${file} was not built (npm run build:native tells why)` };
  try {
    const addon = createRequire(import.meta.url)(file) as NativeAddon;
    if (typeof addon[NEWEST] === 'function') return { addon };
    return { addon: null, reason: `${file} is older than the server (npm run build:native renews it)` };
  } catch (error) {
    return { addon: null, reason: messageOf(error) };
  }
}
