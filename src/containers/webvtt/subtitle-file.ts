/** Reads subtitle files: WebVTT (§4) and SubRip, detecting the format. */
import { areCueSettings } from './cue-payload.ts';

/** Larger files are no subtitle files. */
export const MAX_SUBTITLE_FILE = 4 * 1024 * 1024;
/** Maximum of cues in a file; the rest is ignored. */
const MAX_CUES = 20_000;
/** UTF-16 units of one cue; longer cues are cut. */
const MAX_TEXT = 4096;
/** ms. */
const MAX_DURATION = 3_600_000;
/** UTF-16 units that are read at once, in some milliseconds. */
const PIECE = 16_384;
/** Lines of a block up to its times, which may follow an identifier. */
const TIMING_LINES = 2;
const LF = 0x0a;
const CR = 0x0d;
/** WebVTT requires hours of two digits or more; shorter ones are accepted. */
const TIMING =
  /^[ \t]*(?:(\d{1,5}):)?([0-5]?\d):([0-5]?\d)[.,](\d{1,3})[ \t]*-->[ \t]*(?:(\d{1,5}):)?([0-5]?\d):([0-5]?\d)[.,](\d{1,3})(?:[ \t]+(.*))?$/;
/** Additional markup of SubRip files: fonts, and positions in braces. */
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

/**
 * Reads the cues of a UTF-8 file. Unreadable parts are skipped. It reads piece by piece, because a large file takes a while and the caller
 * has other work.
 */
export class SubtitleFile {
  readonly #text: string;
  readonly #isVtt: boolean;
  readonly #cues: FileCue[] = [];
  #at = 0;

  constructor(bytes: Uint8Array) {
    // The decoder removes the byte order mark.
    this.#text = bytes.length > MAX_SUBTITLE_FILE ? '' : new TextDecoder('utf-8').decode(bytes);
    this.#isVtt = /^WEBVTT(?:[ \t\r\n]|$)/.test(this.#text);
  }

  /** The cues read so far, sorted by time. */
  get cues(): readonly FileCue[] {
    return this.#cues.toSorted((a, b) => a.start - b.start);
  }

  /** Reads a piece; false at the end of the file. */
  readOn(): boolean {
    const end = this.#at + PIECE;
    while (this.#at < end && this.#at < this.#text.length) {
      const block = this.#nextBlock(end);
      const cue = block.length === 0 ? null : cueOf(block, this.#isVtt);
      if (cue !== null && this.#cues.push(cue) >= MAX_CUES) this.#at = this.#text.length;
    }
    return this.#at < this.#text.length;
  }

  /** Lines up to a blank one, at most as many as fit into a cue; none if there are only blank lines before `limit`. */
  #nextBlock(limit: number): string[] {
    const block: string[] = [];
    let length = 0;
    while (this.#at < this.#text.length) {
      const line = this.#nextLine();
      if (line.trim() === '') {
        if (block.length > 0 || this.#at >= limit) break;
      } else if (block.length < TIMING_LINES || length < MAX_TEXT) {
        if (block.length >= TIMING_LINES) length += line.length;
        block.push(line);
      }
    }
    return block;
  }

  #nextLine(): string {
    const from = this.#at;
    let end = from;
    while (end < this.#text.length && !isLineEnd(this.#text.charCodeAt(end))) end += 1;
    this.#at = end + (this.#text.charCodeAt(end) === CR && this.#text.charCodeAt(end + 1) === LF ? 2 : 1);
    return this.#text.slice(from, end);
  }
}

function isLineEnd(code: number): boolean {
  return code === LF || code === CR;
}

/** An identifier or a number may precede the times. */
function cueOf(block: readonly string[], isVtt: boolean): FileCue | null {
  if (isVtt && BLOCKS_WITHOUT_CUES.test(block[0] ?? '')) return null;
  const index = block.slice(0, TIMING_LINES).findIndex((line) => line.includes('-->'));
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
