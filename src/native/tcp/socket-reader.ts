/** Reads TCP sockets into memory that is used again and again. */
import net from 'node:net';
import { TLSSocket } from 'node:tls';
import { getSystemErrorName } from 'node:util';
import { loadAddon, type NativeAddon } from '../addon.ts';

/** Limit of one read: mostly a keyframe. */
const BUFFER_SIZE = 256 * 1024;
/** After a read of more than this a socket does not rest: the peer may wait for room, or has much to send. */
const REST_READ = 48 * 1024;
/**
 * Linux makes room for twice the largest read. So a socket may receive more than its largest read by this factor, up to `MAX_REST_READ`.
 */
const REST_READ_GROWTH = 1.5;
const MAX_REST_READ = 192 * 1024;
/** Maximum time for reading resting sockets in one turn, ms. */
const STRETCH_MS = 2;
/** How long the rests last. */
const SHORT_REST_MS = 25;
const LONG_REST_MS = 100;
const MAX_REST_MS = 200;
/** A sweep of all leaves out the sockets that rest for short, were read within this time, and have little to read. */
const RECENT_MS = 150;
const LITTLE = 64 * 1024;
/** Timers of Node.js may be this early. */
const TIMER_SLACK_MS = 1;
/** Fewer sockets are read for less when they have something than by a sweep that looks for it. */
const MIN_SHORT_RESTS = 5;

/** How long the next data of a socket can wait. */
export const Rest = {
  NONE: 0,
  /** Up to `SHORT_REST_MS`, and longer where no data is needed yet: until then, or until one of the next calls of `sweep`. */
  SHORT: 1,
  /** For a tenth of a second. */
  LONG: 2,
  /** For a fifth of a second. */
  LONGEST: 3,
} as const;
/** Any of these. */
export type Rest = (typeof Rest)[keyof typeof Rest];

/** Internals of a socket: Node.js has no documented access to the read mode of an accepted socket, nor to its descriptor. */
interface Inside {
  _handle?: (net.SocketConstructorOpts['handle'] & { readonly useUserBuffer?: unknown; readonly fd?: unknown }) | null;
}

/** Takes the first `length` bytes of `data`, which are valid during the call only. Returns how long the next bytes can wait. */
export type OnRead = (data: Buffer, length: number) => Rest;

/** A socket that may rest. */
interface RestingSocket {
  readonly onRead: OnRead;
  /** The last answer of `onRead`. */
  wanted: Rest;
  /** In how many ms incoming data will be needed. */
  readonly neededIn: () => number;
  /** When incoming data is needed, by `performance.now()`; null: not known, call `neededIn`. */
  neededAt: number | null;
  /** Something has come since the last `sweep`. */
  heard: boolean;
  /** After a read of more than this it does not rest. */
  restRead: number;
  /** The last read: its number of bytes, and its time by `performance.now()`. */
  length: number;
  readAt: number;
}

/**
 * Node.js allocates 64 KiB for every read of a socket and leaves a piece of it to the garbage collector, which marks the whole heap for
 * each 64 MiB. The sockets of a reader share one buffer instead: a listener copies the bytes that it keeps.
 */
export class SocketReader {
  readonly #addon: NativeAddon | null;
  readonly #buffer = Buffer.allocUnsafeSlow(BUFFER_SIZE);
  /** Not read before the next `sweep`, though not paused by their owners. */
  readonly #longRests = new Map<net.Socket, RestingSocket>();
  /** Read by sweeps of their own, too. */
  readonly #shortRests = new Map<net.Socket, RestingSocket>();
  /** Sockets by the rest that they want. */
  readonly #wanting: Record<Rest, number> = { [Rest.NONE]: 0, [Rest.SHORT]: 0, [Rest.LONG]: 0, [Rest.LONGEST]: 0 };
  #shortSweep: NodeJS.Timeout | null = null;
  /** When it comes, by `performance.now()`. */
  #shortSweepAt = Number.POSITIVE_INFINITY;
  #sweepingShort = false;
  #planning = false;
  #sweeping = false;
  /** Calls of `sweep` until sockets may rest again. */
  #readNowTurns = 0;

  /** Without the addon each `sweep` costs two turns of the event loop for every socket that rests, and none rests for short. */
  constructor(addon: NativeAddon | null = loadAddon().addon) {
    this.#addon = addon;
  }

  /**
   * Calls `onRead` for bytes that arrive on `accepted`, a new socket of a server with `pauseOnConnect`, and returns the socket to use from
   * now on. When `onRead` answers that the next bytes can wait, the socket rests, because an event for every write of a peer costs more
   * than processing it. `neededIn` is called once in each short rest, after the read was processed: in how many ms incoming bytes will be
   * needed, if known; it must not throw. TLS sockets, and sockets that were read before, are returned unchanged: Node.js reads them, and
   * they never rest.
   */
  adopt(accepted: net.Socket, onRead: OnRead, neededIn: () => number = () => 0): net.Socket {
    const inside = accepted as unknown as Inside;
    const handle = inside._handle;
    // On Windows a pending read holds its buffer. A socket that was read before, for a PROXY header, keeps its read mode.
    if (
      accepted instanceof TLSSocket ||
      accepted.bytesRead > 0 ||
      process.platform === 'win32' ||
      typeof handle?.useUserBuffer !== 'function'
    ) {
      accepted.on('data', (data: Buffer) => void onRead(data, data.length));
      return accepted.resume();
    }
    inside._handle = null;
    const buffer = this.#buffer;
    const resting: RestingSocket = {
      ...{ onRead, neededIn, wanted: Rest.NONE, neededAt: null, heard: true },
      ...{ restRead: REST_READ, length: 0, readAt: Number.NEGATIVE_INFINITY },
    };
    this.#wanting[Rest.NONE] += 1;
    const options = {
      handle,
      onread: {
        buffer,
        callback: (length: number): boolean => {
          const rest = this.#restAfter(resting, length);
          if (rest === Rest.NONE) return true;
          this.#setRest(socket, resting, rest);
          return false;
        },
      },
    };
    const socket: net.Socket = new net.Socket(options);
    // The server counts the socket it has accepted.
    socket.once('close', () => {
      this.#want(resting, Rest.NONE);
      this.#wanting[Rest.NONE] -= 1;
      this.#forget(socket);
      accepted.destroy();
    });
    return socket.resume();
  }

  /** How often `sweep` has to be called for now, ms. */
  get sweepInterval(): number {
    return this.#wanting[Rest.SHORT] > 0 || this.#wanting[Rest.LONG] > 0 ? LONG_REST_MS : MAX_REST_MS;
  }

  /**
   * Reads all resting sockets but those that sweeps of their own have just read, and calls `done` when the last of them is being read: many
   * sockets take several turns of the event loop. Must be called at each `sweepInterval`, because the end of a connection is not noticed during a rest either.
   */
  sweep(done?: () => void): void {
    if (this.#readNowTurns > 0) this.#readNowTurns -= 1;
    const now = performance.now();
    const sockets: net.Socket[] = [];
    for (const [socket, resting] of this.#shortRests) {
      if (resting.length <= LITTLE && now - resting.readAt < RECENT_MS) continue;
      // Polling a silent socket repeatedly costs more than an event.
      if (resting.heard) sockets.push(socket);
      else this.endRest(socket);
      resting.heard = false;
    }
    // The call before is still at it.
    if (this.#sweeping) return;
    this.#sweeping = true;
    sockets.push(...this.#longRests.keys());
    this.#visitFrom(sockets, 0, () => {
      this.#sweeping = false;
      this.#planSoon();
      done?.();
    });
  }

  /** Has all sockets read until nothing is left in them, their ends included: none rests before `sweep` was called twice. */
  readNow(): void {
    this.#readNowTurns = 2;
    for (const socket of [...this.#longRests.keys(), ...this.#shortRests.keys()]) this.endRest(socket);
  }

  /** Node.js reads the socket again as soon as data arrives; a paused socket is resumed by who paused it. */
  endRest(socket: net.Socket): void {
    this.#forget(socket);
    if (!socket.destroyed && !socket.isPaused()) socket.resume();
  }

  readonly #sweepShort = (): void => {
    this.#stopSweepingShort();
    // The previous sweep is still running, and plans the next.
    if (this.#sweepingShort) return;
    this.#sweepingShort = true;
    const dueBy = performance.now() + TIMER_SLACK_MS;
    const needed: net.Socket[] = [];
    for (const [socket, { neededAt }] of this.#shortRests) if (neededAt !== null && neededAt <= dueBy) needed.push(socket);
    this.#visitFrom(needed, 0, () => {
      this.#sweepingShort = false;
      this.#planSoon();
    });
  };

  /** When the present reads are processed: only then is known when more is needed. */
  #planSoon(): void {
    if (this.#planning || this.#sweeping || this.#sweepingShort) return;
    this.#planning = true;
    queueMicrotask(this.#plan);
  }

  /** The sweeps of many sockets come together in one beat; a beat in which nothing is needed is left out. */
  readonly #plan = (): void => {
    this.#planning = false;
    const now = performance.now();
    let earliest = Number.POSITIVE_INFINITY;
    for (const resting of this.#shortRests.values()) {
      resting.neededAt ??= now + resting.neededIn();
      earliest = Math.min(earliest, resting.neededAt);
    }
    const beat = Math.ceil(Math.max(earliest, now + TIMER_SLACK_MS) / SHORT_REST_MS) * SHORT_REST_MS;
    if (beat >= this.#shortSweepAt) return;
    this.#stopSweepingShort();
    this.#shortSweepAt = beat;
    this.#shortSweep = setTimeout(this.#sweepShort, beat - now);
  };

  #stopSweepingShort(): void {
    if (this.#shortSweep !== null) clearTimeout(this.#shortSweep);
    this.#shortSweep = null;
    this.#shortSweepAt = Number.POSITIVE_INFINITY;
  }

  #visitFrom(sockets: readonly net.Socket[], first: number, done: () => void): void {
    const from = performance.now();
    for (let index = first; index < sockets.length; index += 1) {
      const socket = sockets[index];
      if (socket === undefined) continue;
      try {
        this.#visit(socket);
      } catch (error) {
        // The other sockets are read all the same, now and at the next call.
        socket.destroy(error instanceof Error ? error : new Error(String(error)));
      }
      if (performance.now() - from < STRETCH_MS) continue;
      setImmediate(() => this.#visitFrom(sockets, index + 1, done));
      return;
    }
    done();
  }

  /** Reads past the event loop, which would wake twice for the same bytes: to read, and to find nothing more. */
  #visit(socket: net.Socket): void {
    const short = this.#shortRests.get(socket);
    const resting = short ?? this.#longRests.get(socket);
    if (resting === undefined) return;
    const descriptor = (socket as unknown as Inside)._handle?.fd;
    if (this.#addon === null || socket.isPaused() || typeof descriptor !== 'number' || descriptor < 0) {
      this.endRest(socket);
      return;
    }
    const received = this.#addon.tcpReceive(descriptor, this.#buffer);
    if (received === undefined) {
      // A peer that was silent for so long is read as soon as it sends.
      if (short === undefined) this.endRest(socket);
      return;
    }
    if (received > 0) {
      this.#setRest(socket, resting, this.#restAfter(resting, received));
      return;
    }
    // The system reports an error only once. It reports an end again, to Node.js.
    if (received < 0) socket.destroy(readError(received));
    this.endRest(socket);
  }

  /** Passes on the bytes. Returns how long the socket may rest. */
  #restAfter(resting: RestingSocket, length: number): Rest {
    resting.heard = true;
    resting.neededAt = null;
    resting.length = length;
    resting.readAt = performance.now();
    this.#want(resting, resting.onRead(this.#buffer, length));
    const isLarge = length > resting.restRead;
    resting.restRead = Math.max(resting.restRead, Math.min(REST_READ_GROWTH * length, MAX_REST_READ));
    if (isLarge || this.#readNowTurns > 0) return Rest.NONE;
    const isShort = resting.wanted === Rest.SHORT;
    return isShort && (this.#addon === null || this.#wanting[Rest.SHORT] < MIN_SHORT_RESTS) ? Rest.NONE : resting.wanted;
  }

  #want(resting: RestingSocket, rest: Rest): void {
    this.#wanting[resting.wanted] -= 1;
    this.#wanting[rest] += 1;
    resting.wanted = rest;
  }

  /** Starts or ends a rest of the socket. */
  #setRest(socket: net.Socket, resting: RestingSocket, rest: Rest): void {
    if (rest === Rest.NONE) {
      this.endRest(socket);
      return;
    }
    const to = rest === Rest.SHORT ? this.#shortRests : this.#longRests;
    if (rest === Rest.SHORT) this.#planSoon();
    if (to.has(socket)) return;
    const from = to === this.#shortRests ? this.#longRests : this.#shortRests;
    from.delete(socket);
    to.set(socket, resting);
    if (this.#shortRests.size === 0) this.#stopSweepingShort();
  }

  #forget(socket: net.Socket): void {
    this.#longRests.delete(socket);
    if (this.#shortRests.delete(socket) && this.#shortRests.size === 0) this.#stopSweepingShort();
  }
}

/** As Node.js has it. */
function readError(number: number): Error {
  const code = getSystemErrorName(number);
  return Object.assign(new Error(`read ${code}`), { code, errno: number, syscall: 'read' });
}
