/** Reads events as viewers get them: playlists as text, hls.js in a page, the data streams of a transport stream. */

import { requireProgram } from '../../scripts/ensure-tools.ts';
import type { HlsPlayer } from './browser.ts';
import { Child } from './child.ts';

const DEADLINE_MS = 30_000;

/** The present text of every media playlist in a multivariant playlist. */
export async function mediaPlaylists(url: string): Promise<string[]> {
  const multivariant = await textOf(url);
  const uris = [...multivariant.matchAll(/URI="([^"]+)"/g)].map((match) => match[1] ?? '');
  uris.push(...multivariant.split('\n').filter((line) => line !== '' && !line.startsWith('#')));
  // Each answer has a session of its own.
  return await Promise.all(uris.map(async (uri) => (await textOf(new URL(uri, url).href)).replaceAll(/\?session=[\w-]+/g, '')));
}

/** A line of a playlist with the date-time of the segment after it. */
export interface MarkedSegment {
  readonly line: string;
  readonly date: string;
}

/** The lines about breaks, in order. */
export function marked(playlist: string): MarkedSegment[] {
  const lines = playlist.split('\n');
  return lines.flatMap((line, index) => {
    if (!/^#EXT-X-(CUE|DATERANGE)/.test(line)) return [];
    const date = lines.slice(index).find((later) => later.startsWith('#EXT-X-PROGRAM-DATE-TIME:')) ?? '';
    return [{ line, date: date.slice(date.indexOf(':') + 1) }];
  });
}

/** Makes the page record metadata and date ranges that hls.js reports from now on. */
export async function watchMetadata(player: HlsPlayer): Promise<void> {
  await player.page.evaluate(`
    window.seen = { samples: [], ranges: {}, cues: [] };
    // A player that has stalled takes cues away again.
    const { addCue } = TextTrack.prototype;
    TextTrack.prototype.addCue = function (cue) {
      seen.cues.push({ type: cue.type ?? '', key: cue.value?.key ?? '', data: cue.value?.data ?? null, start: cue.startTime });
      addCue.call(this, cue);
    };
    hls.on(Hls.Events.FRAG_PARSING_METADATA, (_event, data) => {
      for (const { pts, data: bytes, type } of data.samples) seen.samples.push({ track: data.id ?? data.frag.type, pts, type, text: new TextDecoder().decode(bytes) });
    });
    hls.on(Hls.Events.LEVEL_UPDATED, (_event, { details }) => {
      for (const [id, range] of Object.entries(details.dateRanges)) seen.ranges[id] = { ...range.attr, start: range.startDate.getTime() };
    });`);
}

/** Metadata recorded since `watchMetadata`. */
export interface SeenMetadata {
  readonly samples: readonly { readonly track: string; readonly pts: number; readonly type: string; readonly text: string }[];
  readonly ranges: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  /** Cues on the text tracks of the video element. */
  readonly cues: readonly { readonly type: string; readonly key: string; readonly data: unknown; readonly start: number }[];
}

export async function seenMetadata(player: HlsPlayer): Promise<SeenMetadata> {
  return await player.page.evaluate('seen');
}

/** A packet of ffprobe. */
export interface ProbedPacket {
  readonly codec: string;
  /** Seconds; NaN for sections. */
  readonly pts: number;
  readonly size: number;
  readonly bytes: Buffer;
}

/** Data packets of a file or URL, in order, with the codecs of all its streams. */
export async function dataPackets(input: string): Promise<{ readonly codecs: string[]; readonly packets: ProbedPacket[] }> {
  const args = ['-v', 'error', '-of', 'json', '-show_streams', '-show_packets', '-show_data', '-select_streams', 'd', input];
  const child = new Child(requireProgram('ffprobe'), args);
  try {
    const { code } = await child.ended(DEADLINE_MS);
    if (code !== 0) throw new Error(`ffprobe ${input}: ${child.stderr.slice(-1000)}`);
    const { streams, packets } = JSON.parse(child.stdout) as {
      streams: { index: number; codec_name?: string }[];
      packets: { stream_index: number; pts_time?: string; size: string; data: string }[];
    };
    const codecs = new Map(streams.map(({ index, codec_name }) => [index, codec_name ?? 'unknown']));
    return {
      codecs: [...codecs.values()],
      packets: packets.map(({ stream_index, pts_time, size, data }) => ({
        codec: codecs.get(stream_index) ?? '',
        pts: Number(pts_time),
        size: Number(size),
        bytes: dumped(data),
      })),
    };
  } finally {
    await child.kill();
  }
}

/** Presentation times of the keyframes of a file, seconds. */
export async function keyframeTimes(file: string): Promise<number[]> {
  const args = ['-v', 'error', '-select_streams', 'v:0', '-show_entries', 'packet=pts_time,flags', '-of', 'csv=p=0', file];
  const child = new Child(requireProgram('ffprobe'), args);
  try {
    await child.ended(DEADLINE_MS);
    return [...child.stdout.matchAll(/^([\d.]+),K/gm)].map((match) => Number(match[1]));
  } finally {
    await child.kill();
  }
}

/** The bytes in a hex dump of FFmpeg: an offset, up to 16 bytes in pairs, two blanks and the text. */
function dumped(dump: string): Buffer {
  const lines = dump.split('\n').map((line) => /^[0-9a-f]{8}: ((?:[0-9a-f]{2,4} ?)+)/.exec(line)?.[1] ?? '');
  return Buffer.from(lines.join('').replaceAll(' ', ''), 'hex');
}

async function textOf(url: string): Promise<string> {
  const answer = await fetch(url, { signal: AbortSignal.timeout(DEADLINE_MS) });
  if (answer.status !== 200) throw new Error(`${url} answered ${answer.status}`);
  return await answer.text();
}
