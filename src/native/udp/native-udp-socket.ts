/** The addon's socket: one system call takes all waiting datagrams, one sends the datagrams of a turn (`native/src/udp_socket.h`). */
import type { Handle, NativeAddon } from '../addon.ts';
import type { SocketAddress, UdpCounters, UdpSocket, UdpSocketOptions } from './udp-socket.ts';

/** Datagrams of one system call. */
const MAX_DATAGRAMS = 64;
/** Words that describe one: offset, length, port, scope and four of the address. */
const WORDS = 8;
const LENGTH = 1;
const PORT = 2;
const ADDRESS = 4;
const BLOCK_BYTES = MAX_DATAGRAMS * 1500;
const POOL_BYTES = 16_384;
/** Blocks that wait for the system: 12 MB, a keyframe for some hundred viewers. Further blocks are dropped. */
const MAX_WAITING = 128;
/** Senders whose addresses are kept as texts. */
const MAX_KNOWN = 4096;

/** Callbacks of the addon. */
const Told = { RECEIVED: 0, WRITABLE: 1, FAILED: 2, ALARM: 3 } as const;

/** Datagrams that leave together. */
interface Block {
  readonly bytes: Uint8Array;
  readonly words: Uint32Array;
  /** The first datagram that is still to be sent. */
  from: number;
  count: number;
  used: number;
}

/**
 * Owned by its maker; `close` may be called twice. Datagrams that the system does not take are kept for a while, then dropped and
 * counted.
 */
export class NativeUdpSocket implements UdpSocket {
  readonly port: number;
  readonly #addon: NativeAddon;
  readonly #handle: Handle;
  readonly #options: UdpSocketOptions;
  readonly #received = new Uint32Array(MAX_DATAGRAMS * WORDS);
  /** By port and address; emptied when full. */
  readonly #known = new Map<string | number, SocketAddress>();
  /** The address of a peer in words; zeros for an unreachable address. */
  readonly #places = new WeakMap<SocketAddress, Uint32Array>();
  readonly #waiting: Block[] = [];
  /** The sender of the datagram before, and where it is. */
  #last: SocketAddress | null = null;
  #lastPlace: Uint32Array = new Uint32Array(WORDS);
  /** Datagrams lie one behind the other in it; keeping one keeps the whole pool in memory. */
  #pool = new Uint8Array(POOL_BYTES);
  #poolUsed = 0;
  #block = newBlock();
  #leaving = false;
  /** Runs `#leave` behind the turn; cheaper than `queueMicrotask`, which makes an asynchronous resource each time. */
  readonly #settled = Promise.resolve();
  readonly #leave = (): void => {
    this.#leaving = false;
    try {
      this.flush();
    } catch (error) {
      this.#failed(error);
    }
  };
  #closed = false;
  #dropped = 0;
  #unreachable = 0;

  /** Throws when the port cannot be bound. */
  constructor(addon: NativeAddon, options: UdpSocketOptions) {
    const { host, port, bufferBytes } = options;
    this.#addon = addon;
    this.#options = options;
    const told = (event: number, first: number, second: number): void => this.#hear(event, first, second);
    [this.#handle, this.port] = addon.udpOpen(host, port, bufferBytes, this.#received, told);
  }

  get counters(): UdpCounters {
    const { datagramsSent, sendCalls, sendErrors, datagramsReceived, receiveCalls } = this.#addon.udpCounters(this.#handle);
    return {
      datagramsSent,
      sendCalls,
      sendErrors: sendErrors + this.#unreachable,
      dropped: this.#dropped,
      datagramsReceived,
      receiveCalls,
    };
  }

  send(to: SocketAddress, head: Uint8Array, payload: Uint8Array | null): void {
    if (this.#closed) return;
    const place = this.#placeOf(to);
    const length = head.length + (payload === null ? 0 : payload.length);
    if (place[PORT] === 0 || length > BLOCK_BYTES) {
      this.#unreachable += 1;
      return;
    }
    if (this.#block.count === MAX_DATAGRAMS || this.#block.used + length > BLOCK_BYTES) this.flush();
    const block = this.#block;
    const at = block.count * WORDS;
    block.words.set(place, at);
    block.words[at] = block.used;
    block.words[at + LENGTH] = length;
    block.bytes.set(head, block.used);
    if (payload !== null) block.bytes.set(payload, block.used + head.length);
    block.used += length;
    block.count += 1;
    if (this.#leaving) return;
    this.#leaving = true;
    void this.#settled.then(this.#leave);
  }

  flush(): void {
    const block = this.#block;
    if (this.#closed || block.count === 0) return;
    if (this.#waiting.length === 0 && this.#give(block)) {
      block.count = 0;
      block.used = 0;
      return;
    }
    if (this.#waiting.length === MAX_WAITING) {
      this.#dropped += block.count - block.from;
      block.count = 0;
      block.used = 0;
      block.from = 0;
      return;
    }
    if (this.#waiting.length === 0) this.#addon.udpAwaitRoom(this.#handle);
    this.#waiting.push(block);
    this.#block = newBlock();
  }

  close(): Promise<void> {
    this.#closed = true;
    this.#waiting.length = 0;
    this.#addon.udpClose(this.#handle);
    return Promise.resolve();
  }

  alarm(ms: number): void {
    if (!this.#closed) this.#addon.udpAlarm(this.#handle, ms);
  }

  #hear(event: number, first: number, second: number): void {
    if (this.#closed) return;
    try {
      this.#act(event, first, second);
    } catch (error) {
      this.#failed(error);
    }
  }

  #failed(error: unknown): void {
    const { onFault } = this.#options;
    if (onFault === undefined) throw error;
    onFault(error);
  }

  #act(event: number, first: number, second: number): void {
    if (event === Told.RECEIVED) this.#takeTurn(first, second);
    else if (event === Told.ALARM) this.#options.onAlarm();
    else if (event === Told.WRITABLE) this.#goOn();
    else if (event === Told.FAILED) this.#options.onError(new Error(this.#addon.udpErrorText(first)));
  }

  #takeTurn(count: number, bytes: number): void {
    const { onDatagram, onTurn } = this.#options;
    if (this.#poolUsed + bytes > this.#pool.length) {
      this.#pool = new Uint8Array(Math.max(POOL_BYTES, bytes));
      this.#poolUsed = 0;
    }
    const { buffer } = this.#pool;
    const start = this.#poolUsed;
    this.#addon.udpTake(this.#handle, this.#pool, start);
    this.#poolUsed += bytes;
    for (let n = 0; n < count && !this.#closed; n += 1) {
      const at = n * WORDS;
      const datagram = new Uint8Array(buffer, start + (this.#received[at] ?? 0), this.#received[at + LENGTH] ?? 0);
      onDatagram(datagram, this.#senderOf(n));
    }
    if (!this.#closed) onTurn();
  }

  /** Sends the waiting datagrams, as far as there is room. */
  #goOn(): void {
    while (this.#waiting.length > 0) {
      const block = this.#waiting[0];
      if (block === undefined) return;
      if (!this.#give(block)) {
        this.#addon.udpAwaitRoom(this.#handle);
        return;
      }
      this.#waiting.shift();
    }
  }

  /** True when all of the block has left. */
  #give(block: Block): boolean {
    block.from = this.#addon.udpSend(this.#handle, block.bytes, block.words, block.from, block.count);
    if (block.from < block.count) return false;
    block.from = 0;
    return true;
  }

  #senderOf(n: number): SocketAddress {
    const words = this.#received;
    const at = n * WORDS;
    if (this.#last !== null && isSamePlace(words, at, this.#lastPlace)) return this.#last;
    const address = this.#lookUp(words, at, n);
    this.#last = address;
    this.#lastPlace = this.#placeOf(address);
    return address;
  }

  #lookUp(words: Uint32Array, at: number, n: number): SocketAddress {
    const port = words[at + PORT] ?? 0;
    const inner = ((words[at + 5] ?? 0) | (words[at + 6] ?? 0) | (words[at + 7] ?? 0)) !== 0;
    const key = inner ? words.subarray(at + PORT, at + WORDS).join() : (words[at + ADDRESS] ?? 0) * 65_536 + port;
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    if (this.#known.size === MAX_KNOWN) this.#known.clear();
    const address = { address: this.#addon.udpText(this.#handle, n), port };
    this.#known.set(key, address);
    this.#places.set(address, words.slice(at, at + WORDS));
    return address;
  }

  #placeOf(peer: SocketAddress): Uint32Array {
    const known = this.#places.get(peer);
    if (known !== undefined) return known;
    const place = new Uint32Array(WORDS);
    if (this.#addon.udpParse(this.#handle, peer.address, place)) place[PORT] = peer.port;
    this.#places.set(peer, place);
    return place;
  }
}

/** Port, scope and address. */
function isSamePlace(words: Uint32Array, at: number, place: Uint32Array): boolean {
  for (let word = PORT; word < WORDS; word += 1) if (words[at + word] !== place[word]) return false;
  return true;
}

function newBlock(): Block {
  return { bytes: new Uint8Array(BLOCK_BYTES), words: new Uint32Array(MAX_DATAGRAMS * WORDS), from: 0, count: 0, used: 0 };
}
