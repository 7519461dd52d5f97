/**
 * A process with the viewers of `llhls-crowd`: each has one connection, requests the playlist with the next part (blocking, with gzip), and
 * then that part, as hls.js does.
 */
import { connect, type Socket } from 'node:net';
import { constants, setPriority } from 'node:os';
import { gunzipSync } from 'node:zlib';
import { readMediaPlaylist } from '../../test/harness/viewer.ts';
import { percentile } from './measure.ts';

/** The order: path and query of the playlist, with a session, and its newest part. */
export interface CrowdOrder {
  readonly port: number;
  readonly viewers: number;
  readonly playlist: string;
  readonly sequence: number;
  readonly part: number;
  readonly seconds: number;
}

/** Lateness in ms behind the end of the part, by the times of the playlist: when its last frame was due from the encoder. */
export interface CrowdFigures {
  readonly playlists: number;
  readonly parts: number;
  readonly failed: number;
  readonly lateness: Readonly<Record<'playlist' | 'part', { readonly p50: number; readonly p99: number; readonly max: number }>>;
}

const HEAD_END = Buffer.from('\r\n\r\n');
/** Connections that are opened at a time. */
const OPEN_AT_ONCE = 100;

/** A part that ends at `at`, ms of `performance.now()`; `next` is what a viewer asks for behind it. */
interface Known {
  readonly at: number;
  readonly url: string;
  readonly next: { readonly sequence: number; readonly part: number };
}

let order: CrowdOrder;
let failed = 0;
const late = { playlist: [] as number[], part: [] as number[] };
/** By `sequence part`: all viewers read the same playlists, one of them takes each apart. */
const known = new Map<string, Known>();

/** One viewer: one request after the other on one connection. */
class Viewer {
  readonly #socket: Socket;
  #bytes: Buffer[] = [];
  #length = 0;
  #wanted = -1;
  #asked: 'playlist' | 'part' = 'playlist';
  #place: { sequence: number; part: number };
  #key = '';

  constructor(socket: Socket) {
    this.#socket = socket;
    this.#place = { sequence: order.sequence, part: order.part + 1 };
    socket.on('data', (chunk: Buffer) => this.#onData(chunk));
    socket.on('close', () => {
      if (!over) failed += 1;
    });
    socket.on('error', () => {});
  }

  askForPlaylist(): void {
    const { sequence, part } = this.#place;
    this.#asked = 'playlist';
    this.#key = `${sequence} ${part}`;
    this.#ask(`${order.playlist}${order.playlist.includes('?') ? '&' : '?'}_HLS_msn=${sequence}&_HLS_part=${part}`);
  }

  #ask(target: string): void {
    if (over) return;
    this.#socket.write(`GET ${target} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept-Encoding: gzip, deflate, br\r\nAccept: */*\r\n\r\n`);
  }

  #onData(chunk: Buffer): void {
    this.#bytes.push(chunk);
    this.#length += chunk.length;
    if (this.#wanted < 0) {
      const all = this.#bytes.length === 1 ? chunk : Buffer.concat(this.#bytes);
      const end = all.indexOf(HEAD_END);
      if (end < 0) return;
      const head = all.toString('latin1', 0, end);
      if (!head.startsWith('HTTP/1.1 200')) {
        failed += 1;
        this.#socket.destroy();
        return;
      }
      this.#wanted = end + HEAD_END.length + Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0);
    }
    if (this.#length < this.#wanted) return;
    const body = this.#asked === 'playlist' && !known.has(this.#key) ? Buffer.concat(this.#bytes) : null;
    this.#bytes = [];
    this.#length = 0;
    this.#wanted = -1;
    this.#onAnswer(body);
  }

  #onAnswer(answer: Buffer | null): void {
    const now = performance.now();
    if (answer !== null) this.#learn(answer);
    const part = known.get(this.#key);
    if (part === undefined) {
      failed += 1;
      this.#socket.destroy();
      return;
    }
    late[this.#asked].push(now - part.at);
    if (this.#asked === 'playlist') {
      this.#asked = 'part';
      this.#ask(part.url);
    } else {
      this.#place = part.next;
      this.askForPlaylist();
    }
  }

  /** Of a playlist: its newest part is the one that was asked for, unless this viewer is late. */
  #learn(answer: Buffer): void {
    const body = answer.subarray(answer.indexOf(HEAD_END) + HEAD_END.length);
    const base = `http://127.0.0.1:${order.port}${order.playlist}`;
    const text = gunzipSync(body).toString();
    const files = readMediaPlaylist(text, base);
    const newest = files.parts.at(-1);
    if (newest === undefined) return;
    const { pathname, search } = new URL(newest);
    const at = endOf(text) - performance.timeOrigin;
    known.set(this.#key, { at, url: pathname + search, next: { sequence: files.lastSequence, part: files.lastPart + 1 } });
  }
}

let over = false;

/** When the newest part of a playlist ends, wall clock ms. */
function endOf(text: string): number {
  let end = Number.NaN;
  for (const line of text.split('\n')) {
    if (line.startsWith('#EXT-X-PROGRAM-DATE-TIME:')) end = Date.parse(line.slice(line.indexOf(':') + 1));
    else if (line.startsWith('#EXT-X-PART:')) end += Number(/DURATION=([\d.]+)/.exec(line)?.[1]) * 1000;
  }
  return end;
}

function open(): Promise<Viewer> {
  return new Promise((resolve, reject) => {
    const socket = connect(order.port, '127.0.0.1', () => resolve(new Viewer(socket)));
    socket.setNoDelay(true);
    socket.once('error', reject);
  });
}

function summary(values: readonly number[]): { p50: number; p99: number; max: number } {
  return { p50: percentile(values, 50), p99: percentile(values, 99), max: values.reduce((most, value) => Math.max(most, value), 0) };
}

process.once('message', (told: CrowdOrder) => {
  order = told;
  setPriority(0, constants.priority.PRIORITY_BELOW_NORMAL);
  void (async () => {
    const viewers: Viewer[] = [];
    while (viewers.length < order.viewers) {
      const count = Math.min(OPEN_AT_ONCE, order.viewers - viewers.length);
      for (const viewer of await Promise.all(Array.from({ length: count }, open))) {
        viewers.push(viewer);
        viewer.askForPlaylist();
      }
    }
    // The first viewers began while others were still connecting, which is not to be measured.
    await new Promise((resolve) => setTimeout(resolve, 2000));
    late.playlist = [];
    late.part = [];
    setTimeout(() => {
      over = true;
      const figures = { playlists: late.playlist.length, parts: late.part.length, failed };
      process.send?.({ ...figures, lateness: { playlist: summary(late.playlist), part: summary(late.part) } } satisfies CrowdFigures, () =>
        process.exit(0),
      );
    }, order.seconds * 1000);
  })();
});
