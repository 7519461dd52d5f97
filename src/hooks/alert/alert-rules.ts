/** Problems of a stream by the rules of `Alert`, in the words of the reference server. */
import type { AlertRulesConfig } from '../../config/index.ts';
import type { Track } from '../../media/track.ts';

/** One reported fact. */
export interface AlertMessage {
  readonly code: string;
  readonly description: string;
}

type IngressRules = NonNullable<AlertRulesConfig['ingress']>;

/** Properties of a video track: whether it has B-frames, and its keyframe interval in seconds; NaN: unknown yet. */
export interface VideoFacts {
  readonly hasBframes: boolean;
  readonly keyframeSeconds: number;
}

/** The properties of an inbound stream that rules judge. A rate of 0 is unknown. */
export interface JudgedStream {
  readonly tracks: readonly Track[];
  /** Bit rate of all tracks, bit/s. */
  readonly bitrate: number;
  /** Frame rate of the video. */
  readonly framerate: number;
  readonly videoFacts: (trackId: number) => VideoFacts;
}

/** Longest good distance between keyframes. */
const LONG_KEYFRAME_INTERVAL_S = 4;

/** Reported when the fault is over. */
export const ALL_GOOD: AlertMessage = { code: 'OK', description: 'The current status is good' };

/** All present faults, one message for each rule. */
export function measuredAlerts(rules: IngressRules, { tracks, bitrate, framerate, videoFacts }: JudgedStream): AlertMessage[] {
  const found: AlertMessage[] = [];
  const judge = (value: number, low: number | undefined, high: number | undefined, words: Words): void => {
    if (value <= 0) return;
    const { code, name, ends = ['LOW', 'HIGH'], compared = ['lower', 'higher'], show = String } = words;
    const tell = (end: string, word: string, limit: number): void => {
      const description = `The ingress stream's ${name} (${show(value)}) is ${word} than the configured ${name.replace('current ', '')} (${show(limit)})`;
      found.push({ code: `INGRESS_${code}_${end}`, description });
    };
    if (low !== undefined && value < low) tell(ends[0], compared[0], low);
    if (high !== undefined && value > high) tell(ends[1], compared[1], high);
  };
  const fps = (value: number): string => `${value.toFixed(2)} fps`;
  judge(framerate, rules.minFramerate, rules.maxFramerate, { code: 'FRAMERATE', name: 'current framerate', show: fps });
  for (const track of tracks) {
    if (track.type === 'audio') {
      judge(track.sampleRate, rules.minSamplerate, rules.maxSamplerate, { code: 'SAMPLERATE', name: 'current samplerate' });
    }
    if (track.type !== 'video') continue;
    judge(track.width, rules.minWidth, rules.maxWidth, { code: 'WIDTH', name: 'width', ...SIZES });
    judge(track.height, rules.minHeight, rules.maxHeight, { code: 'HEIGHT', name: 'height', ...SIZES });
    const { hasBframes, keyframeSeconds } = videoFacts(track.id);
    if (rules.longKeyFrameInterval !== undefined && keyframeSeconds > LONG_KEYFRAME_INTERVAL_S) {
      const seconds = keyframeSeconds.toFixed(1);
      found.push({
        code: 'INGRESS_LONG_KEY_FRAME_INTERVAL',
        description: `The ingress stream's keyframe interval (${seconds} seconds) is longer than ${LONG_KEYFRAME_INTERVAL_S} seconds`,
      });
    }
    if (rules.hasBFrames !== undefined && hasBframes)
      found.push({ code: 'INGRESS_HAS_BFRAME', description: 'There are B-Frames in the ingress stream' });
  }
  const bps = (value: number): string => `${Math.round(value)} bps`;
  judge(bitrate, rules.minBitrate, rules.maxBitrate, { code: 'BITRATE', name: 'current bitrate', show: bps });
  // One fault of several tracks is reported for the first.
  return found.filter(({ code }, index) => found.findIndex((other) => other.code === code) === index);
}

interface Words {
  readonly code: string;
  readonly name: string;
  readonly ends?: readonly [string, string];
  readonly compared?: readonly [string, string];
  readonly show?: (value: number) => string;
}

const SIZES = { ends: ['SMALL', 'LARGE'], compared: ['smaller', 'larger'] } as const;
