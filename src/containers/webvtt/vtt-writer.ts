/** WebVTT files for HLS (rfc8216bis §3.1.4): cues on their timeline, with its mapping to the time of the media. */
import { wrap33 } from '../mpegts/timestamp.ts';
import type { CuePayload } from './cue-payload.ts';

/** A cue with its time, ms. */
export interface TimedCue extends CuePayload {
  /** One word, the same in every repetition of the cue: players recognise repetitions by it. */
  readonly id: string;
  readonly start: number;
  readonly end: number;
}

const TICKS_PER_MS = 90;

/** The file with `cues` for the media from `time` (ms) on, which is `mediaTime` (ms) in the timestamps of the media. */
export function writeVtt(cues: readonly TimedCue[], time: number, mediaTime: number): string {
  const ticks = wrap33(Math.round(mediaTime * TICKS_PER_MS));
  let text = `WEBVTT\nX-TIMESTAMP-MAP=LOCAL:${clock(time)},MPEGTS:${ticks}\n`;
  for (const { id, start, end, settings, text: shown } of cues) {
    text += `\n${id}\n${clock(start)} --> ${clock(end)}${settings === '' ? '' : ` ${settings}`}\n${shown}\n`;
  }
  return text;
}

/** `hh:mm:ss.ttt`; hours have as many digits as they need. */
function clock(ms: number): string {
  const rounded = Math.max(0, Math.round(ms));
  const two = (value: number): string => String(Math.floor(value)).padStart(2, '0');
  const hours = two(rounded / 3_600_000);
  return `${hours}:${two((rounded / 60_000) % 60)}:${two((rounded / 1000) % 60)}.${String(rounded % 1000).padStart(3, '0')}`;
}
