/** A simple LL-HLS client: blocking reloads of one media playlist, and its parts, from one server or from several in turns. */
import { createHash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { type ListedSegment, type MediaPlaylist, parseMediaPlaylist } from '../support/playlist/media-playlist.ts';
import { fetchText, openSession } from './viewer.ts';

const DEADLINE_MS = 20_000;
const RETRY_MS = 100;

/** Reads until `stop`. Playlists are compared with earlier playlists of the same and other servers; `faults` lists contradictions. */
export class LlhlsReader {
  /** Last listing of each segment, by number. */
  readonly segments = new Map<number, ListedSegment>();
  readonly faults: string[] = [];
  /** The last playlist. */
  playlist: MediaPlaylist | null = null;
  reloads = 0;
  /** The longest wait for a reload, ms. */
  slowest = 0;
  readonly #servers: readonly string[];
  readonly #every: number;
  readonly #path: string;
  readonly #headers: Readonly<Record<string, string>>;
  /** Hashes of fetched bodies, by URI. */
  readonly #fetched = new Map<string, string>();
  readonly #done: Promise<void>;
  #requests = 0;
  #stopped = false;

  private constructor(servers: readonly string[], every: number, path: string, headers: Readonly<Record<string, string>>) {
    this.#servers = servers;
    this.#every = every;
    this.#path = path;
    this.#headers = headers;
    this.#done = this.#follow();
    // The rejection is reported by `stop`, which a failed test may never call.
    this.#done.catch(() => {});
  }

  /** `urls`: the same multivariant playlist at each server; each serves `every` requests in a row. Reads the video, or the `audio`. */
  static async open(
    urls: readonly string[],
    { every = 1, audio = false, headers = {} }: { every?: number; audio?: boolean; headers?: Readonly<Record<string, string>> } = {},
  ): Promise<LlhlsReader> {
    const playlists = await openSession(urls[0] ?? '', headers);
    const { pathname, search } = new URL(audio ? (playlists.audio ?? '') : playlists.video);
    return new LlhlsReader(
      urls.map((url) => new URL(url).origin),
      every,
      pathname + search,
      headers,
    );
  }

  /** Number of the newest complete segment. */
  get newest(): number {
    return Math.max(-1, ...[...this.segments.values()].filter(({ duration }) => duration !== null).map(({ msn }) => msn));
  }

  /** Rejects when reading failed. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#done;
  }

  async #follow(): Promise<void> {
    let next = '';
    while (!this.#stopped) {
      const began = performance.now();
      const text = await this.#text(next);
      if (text === null) continue;
      this.reloads += 1;
      if (next !== '') this.slowest = Math.max(this.slowest, performance.now() - began);
      const playlist = parseMediaPlaylist(text);
      this.playlist = playlist;
      for (const segment of playlist.segments) this.#take(segment);
      const last = playlist.segments.at(-1);
      if (last === undefined) continue;
      const [msn, part] = last.uri === null ? [last.msn, last.parts.length] : [last.msn + 1, 0];
      next = `&_HLS_msn=${msn}&_HLS_part=${part}`;
      const newest = last.parts.at(-1)?.uri;
      if (newest !== undefined) await this.#fetch(newest);
    }
  }

  /** Null if the server does not answer. */
  async #text(query: string): Promise<string | null> {
    const url = this.#url(this.#path + (this.#path.includes('?') ? query : query.replace('&', '?')));
    try {
      return await fetchText(url, undefined, this.#headers);
    } catch (error) {
      this.faults.push(String(error));
      await delay(RETRY_MS);
      return null;
    }
  }

  #url(path: string): string {
    const server = this.#servers[Math.floor(this.#requests / this.#every) % this.#servers.length] ?? '';
    this.#requests += 1;
    return server + path;
  }

  async #fetch(uri: string): Promise<void> {
    const folder = this.#path.slice(0, this.#path.lastIndexOf('/') + 1);
    const answer = await fetch(this.#url(folder + uri), { signal: AbortSignal.timeout(DEADLINE_MS), headers: this.#headers });
    const hash = createHash('sha256')
      .update(Buffer.from(await answer.arrayBuffer()))
      .digest('hex');
    const name = uri.split('?', 1)[0] ?? uri;
    if (answer.status !== 200) this.faults.push(`${name} was answered with ${answer.status}`);
    else if ((this.#fetched.get(name) ?? hash) !== hash) this.faults.push(`${name} has other bytes`);
    this.#fetched.set(name, hash);
  }

  #take(segment: ListedSegment): void {
    const before = this.segments.get(segment.msn);
    this.segments.set(segment.msn, segment);
    if (before === undefined) {
      if (this.segments.size > 1 && !this.segments.has(segment.msn - 1)) this.faults.push(`segment ${segment.msn} follows none`);
      return;
    }
    const fault = contradiction(before, segment);
    if (fault !== null) this.faults.push(`segment ${segment.msn}: ${fault}`);
  }
}

/** Difference between two listings of a segment; null: none. One may be older, and playlists omit parts of old segments. */
function contradiction(a: ListedSegment, b: ListedSegment): string | null {
  const differs = (what: string, left: unknown, right: unknown): string | null =>
    left === right ? null : `${what} ${String(left)}, then ${String(right)}`;
  const name = (uri: string | null): string | null => uri?.split('?', 1)[0] ?? null;
  const parts = Math.min(a.parts.length, b.parts.length);
  const told = ({ parts: listed }: ListedSegment): string =>
    JSON.stringify(listed.slice(0, parts).map((part) => [name(part.uri), part.duration, part.independent]));
  return (
    (a.duration !== null && b.duration !== null ? differs('duration', a.duration, b.duration) : null) ??
    differs('parts', told(a), told(b)) ??
    (a.programDateTime !== null && b.programDateTime !== null ? differs('date', a.programDateTime, b.programDateTime) : null) ??
    differs('discontinuity', a.discontinuity, b.discontinuity) ??
    differs('map', name(a.map), name(b.map)) ??
    (a.uri !== null && b.uri !== null ? differs('name', name(a.uri), name(b.uri)) : null)
  );
}
