/** Synthetic tracks and packets as the router passes them on: parameters and timing are real, payloads are counters. */
import { writeCuePayload } from '../../src/containers/webvtt/cue-payload.ts';
import { AudioCodec, VideoCodec } from '../../src/media/codec.ts';
import type { Packet } from '../../src/media/packet.ts';
import { MILLISECONDS, MPEG_90K, type Timebase, toSeconds } from '../../src/media/timebase.ts';
import { EventFormat } from '../../src/media/timed-event.ts';
import type { AudioTrack, DataTrack, SubtitleTrack, VideoTrack } from '../../src/media/track.ts';
import { ASC, AVCC } from '../fixtures/bitstreams.ts';

export function videoTrack(overrides: Partial<VideoTrack> = {}): VideoTrack {
  return {
    id: 0,
    publicName: 'Video_0',
    variantName: 'video',
    timebase: MPEG_90K,
    bitrateConf: 2_500_000,
    language: '',
    characteristics: '',
    bypass: true,
    type: 'video',
    codec: VideoCodec.H264,
    width: 1280,
    height: 720,
    framerateConf: 30,
    config: AVCC.high720,
    codecString: 'avc1.64001f',
    ...overrides,
  };
}

export function audioTrack(overrides: Partial<AudioTrack> = {}): AudioTrack {
  return {
    id: 1,
    publicName: 'Audio_1',
    variantName: 'audio',
    timebase: { num: 1, den: 48_000 },
    bitrateConf: 128_000,
    language: '',
    characteristics: '',
    bypass: true,
    type: 'audio',
    codec: AudioCodec.AAC,
    sampleRate: 48_000,
    channels: 2,
    config: ASC.plainStereo48,
    codecString: 'mp4a.40.2',
    ...overrides,
  };
}

/** The data track every stream has. */
export function subtitleTrack(overrides: Partial<SubtitleTrack> = {}): SubtitleTrack {
  return {
    ...{ type: 'subtitle', id: 5, publicName: 'English', variantName: 'subtitle', timebase: MILLISECONDS, bitrateConf: 0, language: 'en' },
    ...{ characteristics: '', bypass: true, isDefault: false, autoSelect: false, forced: false },
    ...overrides,
  };
}

/** A cue that is announced at `told` ms and shown from `start` to `end` ms. */
export function cuePacket(
  track: SubtitleTrack,
  [start, end]: readonly [number, number],
  text: string,
  { told = start, settings = '' } = {},
): Packet {
  const event = { format: EventFormat.SUBTITLE, target: 'all' } as const;
  return { track, pts: start, dts: told, duration: end - start, keyframe: true, data: writeCuePayload({ settings, text }), event };
}

export function dataTrack(id: number): DataTrack {
  return {
    id,
    publicName: `Data_${id}`,
    variantName: '',
    timebase: MPEG_90K,
    bitrateConf: 0,
    language: '',
    characteristics: '',
    bypass: true,
    type: 'data',
  };
}

/** A video frame at `seconds` (decoding time). */
export interface FrameTime {
  readonly seconds: number;
  readonly keyframe: boolean;
  /** pts − dts in seconds. */
  readonly delay?: number;
}

/** Frames at a constant rate with a keyframe every `gop` frames; with B-frames the order is I P B B … */
export function constantFrames(options: { rate: number; gop: number; seconds: number; from?: number; bFrames?: boolean }): FrameTime[] {
  const { rate, gop, seconds, from = 0 } = options;
  const frames: FrameTime[] = [];
  for (let i = 0; i < Math.round(rate * seconds); i++) {
    const keyframe = i % gop === 0;
    // Decoding order I P B B P B B: in display order each P follows the two B-frames after it.
    const step = keyframe ? 1 : [3, 0, 0][((i - 1) % gop) % 3];
    const delay = options.bFrames === true ? (step ?? 1) / rate : 0;
    frames.push({ seconds: from + i / rate, keyframe, delay });
  }
  return frames;
}

/** Packets for `frames`; each duration is the distance from the previous frame, as a router without lookahead estimates it. */
export function videoPackets(track: VideoTrack, frames: readonly FrameTime[], size = 500): Packet[] {
  const ticks = (seconds: number): number => toTicks(seconds, track.timebase);
  let previous = 0;
  return frames.map((frame, index) => {
    const dts = ticks(frame.seconds);
    const before = frames[index - 1];
    const after = frames[index + 1];
    const distance = before === undefined ? (after === undefined ? 0 : ticks(after.seconds) - dts) : dts - previous;
    previous = dts;
    return {
      track,
      pts: dts + ticks(frame.delay ?? 0),
      dts,
      duration: distance,
      keyframe: frame.keyframe,
      data: new Uint8Array(frame.keyframe ? size * 4 : size).fill(index & 0xff),
    };
  });
}

/** AAC frames of 1024 samples from `from` for `seconds`. */
export function audioPackets(track: AudioTrack, seconds: number, from = 0): Packet[] {
  const frame = 1024 / track.sampleRate;
  const count = Math.floor(seconds / frame);
  return Array.from({ length: count }, (_, index) => {
    const pts = toTicks(from + index * frame, track.timebase);
    const duration = toTicks(from + (index + 1) * frame, track.timebase) - pts;
    return { track, pts, dts: pts, duration, keyframe: true, data: new Uint8Array(340).fill(index & 0xff) };
  });
}

/** Packets of several tracks in order of decoding time, as a good source interleaves them. */
export function interleave(...tracks: readonly (readonly Packet[])[]): Packet[] {
  const time = (packet: Packet): number => toSeconds(packet.dts, packet.track.timebase);
  return tracks.flat().sort((a, b) => time(a) - time(b));
}

function toTicks(seconds: number, timebase: Timebase): number {
  return Math.round((seconds * timebase.den) / timebase.num);
}
