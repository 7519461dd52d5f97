/** The contents of a `segment` message: where segments begin, for edges that number them like their origin. */
import type { SegmentedTrack, SegmentFacts, SegmentMark } from '../../media/segment-mark.ts';
import { ProtocolError } from '../../util/protocol-error.ts';
import { isMembers, type JsonMembers } from './message.ts';

const MAX_TRACKS = 256;
const MAX_RUN = 64;
const MAX_TAGS = 8192;
/** Whole lines that begin with a mark of playlists. */
const TAGS = /^(?:#[^\r\n]*\n)*$/;
/** A day, s: no duration in a mark is longer. */
const MAX_DURATION = 86_400;

/** A mark, and the packet to which it belongs. */
export interface PlacedMark {
  readonly trackId: number;
  /** Ticks of the track. */
  readonly dts: number;
  readonly mark: SegmentMark;
}

/** The `contents` of the message. */
export function markContents({ trackId, dts, mark }: PlacedMark): object {
  return { trackId, dts, ...mark };
}

/** Reads `contents`; unknown members are skipped. Throws `OVT_MARK`, which names the invalid member. */
export function parseMark(contents: unknown): PlacedMark {
  if (!isMembers(contents)) fault('contents', 'is no object');
  const { run, tags, expected, facts } = contents;
  if (typeof run !== 'string' || run.length > MAX_RUN) fault('run', 'is no short text');
  if (typeof tags !== 'string' || tags.length > MAX_TAGS || !TAGS.test(tags)) fault('tags', 'is no lines of a playlist');
  if (!isMembers(facts)) fault('facts', 'is no object');
  return {
    trackId: wholeOf(contents, 'trackId'),
    dts: numberOf(contents, 'dts'),
    mark: {
      run,
      msn: wholeOf(contents, 'msn'),
      time: numberOf(contents, 'time'),
      startTime: numberOf(contents, 'startTime'),
      discontinuity: contents['discontinuity'] === true,
      discontinuities: wholeOf(contents, 'discontinuities'),
      tags,
      expected: expected === null ? null : numberOf(contents, 'expected'),
      earliest: numberOf(contents, 'earliest'),
      facts: factsOf(facts),
    },
  };
}

function factsOf(json: JsonMembers): SegmentFacts {
  const { tracks } = json;
  if (!Array.isArray(tracks) || tracks.length > MAX_TRACKS || !tracks.every(isMembers)) fault('tracks', 'is no short list of objects');
  return {
    segmentDuration: durationOf(json, 'segmentDuration') || fault('segmentDuration', 'is 0'),
    chunkDuration: durationOf(json, 'chunkDuration') || fault('chunkDuration', 'is 0'),
    targetDuration: durationOf(json, 'targetDuration'),
    partHoldBack: durationOf(json, 'partHoldBack'),
    offset: numberOf(json, 'offset'),
    tracks: tracks.map(
      (track): SegmentedTrack => ({
        id: wholeOf(track, 'id'),
        partTicks: wholeOf(track, 'partTicks'),
        generation: wholeOf(track, 'generation'),
      }),
    ),
  };
}

function fault(key: string, what: string): never {
  throw new ProtocolError('OVT_MARK', `'${key}' ${what}`);
}

function numberOf(json: JsonMembers, key: string): number {
  const value = json[key];
  return typeof value === 'number' && Math.abs(value) <= Number.MAX_SAFE_INTEGER ? value : fault(key, 'is no number');
}

function wholeOf(json: JsonMembers, key: string): number {
  const value = numberOf(json, key);
  return Number.isInteger(value) && value >= 0 ? value : fault(key, 'is no whole number');
}

function durationOf(json: JsonMembers, key: string): number {
  const value = numberOf(json, key);
  return value >= 0 && value <= MAX_DURATION ? value : fault(key, 'is no duration');
}
