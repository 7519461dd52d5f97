/** A viewer made of plain HTTP requests that follows the playlists of one stream. */

const DEADLINE_MS = 20_000;

export interface MediaPlaylists {
  /** Absolute URLs of the media playlists, session included. */
  readonly video: string;
  readonly audio: string | null;
}

/** GETs a URL as text; throws unless the status is 200. */
export async function fetchText(
  url: string,
  signal: AbortSignal = AbortSignal.timeout(DEADLINE_MS),
  headers: Readonly<Record<string, string>> = {},
): Promise<string> {
  const answer = await fetch(url, { signal, headers });
  const text = await answer.text();
  if (answer.status !== 200) throw new Error(`GET ${url} answered ${answer.status}: ${text.slice(0, 200)}`);
  return text;
}

/** Begins a session: requests the multivariant playlist and resolves its URIs. */
export async function openSession(multivariantUrl: string, headers: Readonly<Record<string, string>> = {}): Promise<MediaPlaylists> {
  const text = await fetchText(multivariantUrl, undefined, headers);
  const lines = text.split('\n').map((line) => line.trim());
  const video = lines.find((line) => line !== '' && !line.startsWith('#'));
  if (video === undefined) throw new Error(`no media playlist in:\n${text}`);
  const audio = /#EXT-X-MEDIA:TYPE=AUDIO.*URI="([^"]+)"/.exec(text)?.[1];
  return {
    video: new URL(video, multivariantUrl).href,
    audio: audio === undefined ? null : new URL(audio, multivariantUrl).href,
  };
}

/** URIs of a media playlist, absolute. */
export interface MediaFiles {
  readonly init: string;
  /** Complete segments, oldest first. */
  readonly segments: readonly string[];
  /** Finished parts, oldest first. */
  readonly parts: readonly string[];
  /** Number of the last segment with a part, and of its last part. */
  readonly lastSequence: number;
  readonly lastPart: number;
}

/** Reads a low-latency media playlist as far as tests and benches need it. */
export function readMediaPlaylist(text: string, url: string): MediaFiles {
  const segments: string[] = [];
  const parts: string[] = [];
  let init = '';
  let sequence = 0;
  let partsOfSegment = 0;
  for (const line of text.split('\n').map((one) => one.trim())) {
    const uri = /URI="([^"]+)"/.exec(line)?.[1] ?? '';
    if (line.startsWith('#EXT-X-MEDIA-SEQUENCE:')) sequence = Number(line.slice(line.indexOf(':') + 1));
    else if (line.startsWith('#EXT-X-MAP:')) init = new URL(uri, url).href;
    else if (line.startsWith('#EXT-X-PART:')) {
      parts.push(new URL(uri, url).href);
      partsOfSegment += 1;
    } else if (line !== '' && !line.startsWith('#')) {
      segments.push(new URL(line, url).href);
      sequence += 1;
      partsOfSegment = 0;
    }
  }
  return { init, segments, parts, lastSequence: sequence, lastPart: partsOfSegment - 1 };
}

/** Watches a media playlist by blocking reloads, part after part, until `signal` aborts. Throws when an answer is not 200. */
export async function follow(playlistUrl: string, signal: AbortSignal): Promise<void> {
  let text = await fetchText(playlistUrl);
  while (!signal.aborted) {
    const { lastSequence, lastPart } = readMediaPlaylist(text, playlistUrl);
    const next = new URL(playlistUrl);
    next.searchParams.set('_HLS_msn', `${lastSequence}`);
    next.searchParams.set('_HLS_part', `${lastPart + 1}`);
    text = await fetchText(next.href);
  }
}
