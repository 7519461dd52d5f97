/**
 * Many LL-HLS viewers in one process. Each follows video and audio on one connection by blocking reloads, with gzip as browsers do, and
 * fetches every part. One viewer per edge parses its playlists; the others send the same requests and only check the status.
 */
import { RawClient } from './raw-client.ts';

/** The newest listed part, and the next request. */
interface Position {
  readonly part: string;
  readonly next: string;
}

const GZIP = 'Accept-Encoding: gzip\r\n';

/** The viewers' counters since `open`. */
export interface CrowdCounts {
  playlists: number;
  parts: number;
  bytes: number;
  /** Answers that were not a success. */
  failed: number;
}

/** Video or audio of one edge, as read by the viewer that parses playlists. */
class Rendition {
  readonly path: string;
  position: Position;
  readonly #client: RawClient;
  readonly #waiting: (() => void)[] = [];

  private constructor(client: RawClient, path: string, position: Position) {
    this.#client = client;
    this.path = path;
    this.position = position;
  }

  static async open(port: number, path: string): Promise<Rendition> {
    const client = await RawClient.open(port);
    const { body } = await client.get(path, { keep: true });
    return new Rendition(client, path, positionOf(String(body), path));
  }

  /** Resolves with the next position after `position`. */
  async beyond(position: Position): Promise<Position> {
    if (this.position === position) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    return this.position;
  }

  /** Reads playlists until the connection ends. */
  async lead(counts: CrowdCounts): Promise<void> {
    for (;;) {
      const answer = await this.#client.get(this.path + this.position.next, { keep: true });
      counts.playlists += 1;
      if (answer.status === 200) this.position = positionOf(String(answer.body), this.path);
      else counts.failed += 1;
      for (const go of this.#waiting.splice(0)) go();
      await fetchPart(this.#client, this.position.part, counts);
    }
  }

  close(): void {
    this.#client.close();
  }
}

function positionOf(text: string, path: string): Position {
  let sequence = 0;
  let parts = 0;
  let part = '';
  for (const line of text.split('\n')) {
    if (line.startsWith('#EXT-X-MEDIA-SEQUENCE:')) sequence = Number(line.slice(line.indexOf(':') + 1));
    else if (line.startsWith('#EXT-X-PART:')) {
      part = resolved(/URI="([^"]+)"/.exec(line)?.[1] ?? '', path);
      parts += 1;
    } else if (line.trim() !== '' && !line.startsWith('#')) {
      sequence += 1;
      parts = 0;
    }
  }
  return { part, next: `${path.includes('?') ? '&' : '?'}_HLS_msn=${sequence}&_HLS_part=${parts}` };
}

async function fetchPart(client: RawClient, part: string, counts: CrowdCounts): Promise<void> {
  const { status, bytes } = await client.get(part);
  counts.parts += 1;
  counts.bytes += bytes;
  if (status !== 200) counts.failed += 1;
}

/** The caller of `open` closes it. */
export class LlhlsCrowd {
  readonly counts: CrowdCounts = { playlists: 0, parts: 0, bytes: 0, failed: 0 };
  readonly #renditions: Rendition[] = [];
  readonly #clients: RawClient[] = [];
  #isClosed = false;

  /** Resolves when `viewers` of each edge are connected and wait for their first parts. Rejects when an edge does not have the stream. */
  static async open(ports: readonly number[], viewers: number, stream: string): Promise<LlhlsCrowd> {
    const crowd = new LlhlsCrowd();
    for (const port of ports) {
      for (const path of await playlistsOf(port, stream)) {
        const rendition = await Rendition.open(port, path);
        crowd.#renditions.push(rendition);
        crowd.#run(rendition.lead(crowd.counts));
        for (let viewer = 1; viewer < viewers; viewer += 1) {
          const client = await RawClient.open(port);
          crowd.#clients.push(client);
          crowd.#run(crowd.#follow(client, rendition));
        }
      }
    }
    return crowd;
  }

  close(): void {
    this.#isClosed = true;
    for (const client of [...this.#renditions, ...this.#clients]) client.close();
  }

  async #follow(client: RawClient, rendition: Rendition): Promise<void> {
    const { counts } = this;
    for (let { position } = rendition; ; ) {
      const { status } = await client.get(rendition.path + position.next, { headers: GZIP });
      counts.playlists += 1;
      if (status !== 200) counts.failed += 1;
      position = await rendition.beyond(position);
      await fetchPart(client, position.part, counts);
    }
  }

  /** The end of a connection counts as a failure. */
  #run(work: Promise<void>): void {
    work.catch(() => {
      if (!this.#isClosed) this.counts.failed += 1;
    });
  }
}

/** Paths of a stream's media playlists: video, and audio if there is any. */
export async function playlistsOf(port: number, stream: string): Promise<string[]> {
  const client = await RawClient.open(port);
  try {
    const path = `/app/${stream}/llhls.m3u8`;
    const { status, body } = await client.get(path, { keep: true });
    if (status !== 200) throw new Error(`GET ${path} was answered with ${status}: ${String(body)}`);
    return mediaPlaylists(String(body), path);
  } finally {
    client.close();
  }
}

/** Paths of the media playlists named by the multivariant playlist at `path`: the first video, and its audio if there is any. */
export function mediaPlaylists(text: string, path: string): string[] {
  const video = text.split('\n').find((line) => line.trim() !== '' && !line.startsWith('#'));
  const audio = /#EXT-X-MEDIA:TYPE=AUDIO.*URI="([^"]+)"/.exec(text)?.[1];
  return [video, audio].filter((one) => one !== undefined).map((one) => resolved(one.trim(), path));
}

/** Path and query of a URI in the playlist at `path`. */
export function resolved(uri: string, path: string): string {
  const { pathname, search } = new URL(uri, `http://edge${path}`);
  return pathname + search;
}
