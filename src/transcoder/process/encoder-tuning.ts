/** Settings of each encoder for live use: no frame is held back unless asked for, and keyframes come only where they are forced. */
import type { EncodeVideoConfig } from '../../config/index.ts';
import { VideoCodec } from '../../media/codec.ts';
import { CodecModule, type EncoderEntry } from '../encoder-catalogue.ts';

/** Settings for opening an encoder; `options` are private options of its library. */
export interface EncoderTuning {
  readonly options: Readonly<Record<string, string>>;
  /** Threads of the encoder; 0 leaves it to the encoder. */
  readonly threads: number;
  readonly bFrames: number;
  /** Bits that may pile up in rate control. */
  readonly bufferBits: number;
}

type Tuned = Pick<EncodeVideoConfig, 'bFrames' | 'preset' | 'profile' | 'threadCount' | 'lookahead'>;

/** libvpx and SVT-AV1 count speed up where x264 has words. */
const VPX_SPEED = { slower: 3, slow: 4, medium: 5, fast: 6, faster: 8 } as const;
const SVT_PRESET = { slower: 6, slow: 7, medium: 8, fast: 9, faster: 10 } as const;
const NVENC_PRESET = { slower: 'p6', slow: 'p5', medium: 'p4', fast: 'p3', faster: 'p2' } as const;

/** Frames up to this many pixels are encoded faster by one thread than by several with their hand-overs. */
const ONE_THREAD_PIXELS = 640 * 360;
const TWO_THREADS_PIXELS = 1280 * 720;
const MAX_THREADS = 8;

/** How `entry` is set up for a video encode of `pixels` per frame on a machine with `cpus` cores. */
export function tuneVideo(entry: EncoderEntry, encode: Tuned, bitrate: number, pixels: number, cpus: number): EncoderTuning {
  const threads = encode.threadCount > 0 ? encode.threadCount : defaultThreads(pixels, cpus);
  const common = { threads, bFrames: supportsBFrames(entry) ? encode.bFrames : 0, bufferBits: Math.max(1, Math.round(bitrate / 2)) };
  return { ...common, options: optionsOf(entry, encode, bitrate) };
}

function defaultThreads(pixels: number, cpus: number): number {
  if (pixels <= ONE_THREAD_PIXELS) return 1;
  if (pixels <= TWO_THREADS_PIXELS) return Math.min(2, cpus);
  return Math.min(Math.max(4, Math.floor(cpus / 3)), MAX_THREADS, cpus);
}

function supportsBFrames({ codec }: EncoderEntry): boolean {
  return codec === VideoCodec.H264 || codec === VideoCodec.H265;
}

function optionsOf(entry: EncoderEntry, encode: Tuned, bitrate: number): Record<string, string> {
  const { bFrames, lookahead } = encode;
  const held = Math.max(0, lookahead);
  switch (entry.module) {
    case CodecModule.X264:
      return {
        preset: encode.preset ?? 'faster',
        tune: 'zerolatency',
        profile: h264Profile(encode),
        'forced-idr': '1',
        sc_threshold: '0',
        'rc-lookahead': String(held),
      };
    case CodecModule.X265:
      return {
        preset: encode.preset ?? 'superfast',
        tune: 'zerolatency',
        'forced-idr': '1',
        'x265-params': `scenecut=0:open-gop=0:bframes=${bFrames}:rc-lookahead=${Math.max(held, bFrames)}:log-level=none:info=0`,
      };
    case CodecModule.LIBVPX:
      return {
        deadline: 'realtime',
        'cpu-used': String(VPX_SPEED[encode.preset ?? 'faster']),
        'lag-in-frames': String(held),
        'auto-alt-ref': '0',
        minrate: String(bitrate),
      };
    case CodecModule.SVTAV1:
      return {
        preset: String(SVT_PRESET[encode.preset ?? 'faster']),
        'svtav1-params': `rc=2:pred-struct=1:scd=0:lookahead=${held}:force-key-frames=1`,
      };
    case CodecModule.NV:
      return {
        preset: NVENC_PRESET[encode.preset ?? 'faster'],
        tune: 'ull',
        rc: 'cbr',
        zerolatency: '1',
        delay: '0',
        'forced-idr': '1',
        'no-scenecut': '1',
        'rc-lookahead': String(held),
        ...(entry.codec === VideoCodec.H264 && { profile: h264Profile(encode) }),
      };
    case CodecModule.QSV:
      return {
        preset: encode.preset ?? 'faster',
        async_depth: '1',
        forced_idr: '1',
        ...(entry.codec === VideoCodec.H264 && { profile: h264Profile(encode) }),
      };
    case CodecModule.VAAPI:
      return {
        rc_mode: 'CBR',
        async_depth: '1',
        ...(entry.codec === VideoCodec.H264 && {
          profile: h264Profile(encode) === 'baseline' ? 'constrained_baseline' : h264Profile(encode),
        }),
      };
    default:
      return {};
  }
}

/** Every WebRTC peer decodes Baseline; it has no B-frames, so a configuration with B-frames selects Main. */
function h264Profile(encode: Tuned): string {
  return encode.profile ?? (encode.bFrames > 0 ? 'main' : 'baseline');
}

/** Options for images. */
export function tuneImage(entry: EncoderEntry): Record<string, string> {
  switch (entry.codec) {
    case VideoCodec.JPEG:
      return { qmin: '3', qmax: '5' };
    case VideoCodec.WEBP:
      return { quality: '80', compression_level: '2' };
    default:
      return {};
  }
}

/** Options for audio. */
export function tuneAudio(entry: EncoderEntry): Record<string, string> {
  return entry.module === CodecModule.LIBOPUS ? { application: 'audio', frame_duration: '20', vbr: 'constrained' } : {};
}
