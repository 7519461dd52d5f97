/** Reads subtitle files: WebVTT (§4) and SubRip, whichever of both a file is. */
import { areCueSettings } from './cue-payload.ts';

/** A file of more bytes is none of subtitles. */
export const MAX_SUBTITLE_FILE = 4 * 1024 * 1024;
/** Cues of one file; what follows is left out. */
const MAX_CUES = 20_000;
/** UTF-16 units of one cue; longer ones are cut. */
const MAX_TEXT = 4096;
/** ms. */
const MAX_DURATION = 3_600_000;
/** Hours of WebVTT have two digits or more. */
const TIMING =
  /^[ \t]*(?:(\d{1,5}):)?([0-5]?\d):([0-5]?\d)[.,](\d{1,3})[ \t]*-->[ \t]*(?:(\d{1,5}):)?([0-5]?\d):([0-5]?\d)[.,](\d{1,3})(?:[ \t]+(.*))?$/;
/** What SubRip files have besides the tags that WebVTT knows: fonts, and places in braces. */
const SUBRIP_ONLY = /<\/?font[^<>]{0,200}>|\{\\[^{}]{0,200}\}/gi;
const BLOCKS_WITHOUT_CUES = /^(?:WEBVTT|NOTE|STYLE|REGION)(?:[ \t]|$)/;

/** A cue of a file; times in ms from its beginning. */
export interface FileCue {
  readonly start: number;
  readonly duration: number;
  /** Cue settings of WebVTT; empty for none. */
  readonly settings: string;
  readonly text: string;
}

/** The cues of a file in UTF-8, in order of their times. What cannot be read is left out: hostile files have none. */
export function readSubtitleFile(bytes: Uint8Array): FileCue[] {
  if (bytes.length > MAX_SUBTITLE_FILE) return [];
  // The decoder takes the byte order mark off.
  const lines = new TextDecoder('utf-8').decode(bytes).split(/\r\n|\r|\n/);
  const isVtt = /^WEBVTT(?:[ \t]|$)/.test(lines[0] ?? '');
  const cues: FileCue[] = [];
  for (let at = 0; at < lines.length && cues.length < MAX_CUES; ) {
    const end = blockEnd(lines, at);
    const cue = cueOf(lines.slice(at, end), isVtt);
    if (cue !== null) cues.push(cue);
    at = end + 1;
  }
  return cues.sort((a, b) => a.start - b.start);
}

/** Where the lines from `at` on are interrupted by a blank one. */
function blockEnd(lines: readonly string[], at: number): number {
  let end = at;
  while (end < lines.length && lines[end]?.trim() !== '') end += 1;
  return end;
}

/** Its identifier, or number, may stand before its times. */
function cueOf(block: readonly string[], isVtt: boolean): FileCue | null {
  if (isVtt && BLOCKS_WITHOUT_CUES.test(block[0] ?? '')) return null;
  const index = block.findIndex((line, number) => number < 2 && line.includes('-->'));
  const times = index < 0 ? null : TIMING.exec(block[index] ?? '');
  if (times === null) return null;
  const start = milliseconds(times, 1);
  const duration = Math.min(milliseconds(times, 5) - start, MAX_DURATION);
  const lines = block
    .slice(index + 1)
    .join('\n')
    .slice(0, MAX_TEXT);
  const text = isVtt ? lines : lines.replace(SUBRIP_ONLY, '');
  if (duration <= 0 || text.trim() === '') return null;
  const settings = isVtt ? (times[9] ?? '').trim() : '';
  return { start, duration, settings: settings.length <= 256 && areCueSettings(settings) ? settings : '', text };
}

function milliseconds(times: RegExpExecArray, from: number): number {
  const [hours = '0', minutes = '0', seconds = '0', fraction = '0'] = times.slice(from, from + 4);
  return ((Number(hours) * 60 + Number(minutes)) * 60 + Number(seconds)) * 1000 + Number(fraction.padEnd(3, '0'));
}
