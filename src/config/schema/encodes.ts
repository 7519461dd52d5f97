/** The encoders of an output profile. */
import type { Static } from '@sinclair/typebox';
import { bitrate, boolean, choice, type Fail, finishing, integer, list, object, optional, real, text } from './field.ts';

const compare = (key: string, what: string) =>
  optional(
    choice(
      `Condition: the ${what} of the source is equal to (\`eq\`), at most (\`lte\`) or at least (\`gte\`) that of the encode`,
      ['eq', 'lte', 'gte'],
      {
        refusal: () => `BypassIfMatch.${key} must specified only one of eq, lte, gte`,
      },
    ),
  );

const BypassIfMatchSchema = object(
  'Passes the track through unchanged if all conditions hold',
  {
    codec: optional(
      choice('Condition: the codec of the source is that of the encode', ['eq'], {
        refusal: () => 'BypassIfMatch.Codec must be specified only eq',
      }),
    ),
    width: compare('Width', 'width'),
    height: compare('Height', 'height'),
    sAR: optional(
      choice('Condition: the sample aspect ratio of the source is that of the encode', ['eq'], {
        xml: 'SAR',
        aliases: ['sar'],
        refusal: () => 'BypassIfMatch.SAR must specified only one of eq',
      }),
    ),
    framerate: compare('Framerate', 'frame rate'),
    samplerate: compare('Samplerate', 'sample rate'),
    channel: compare('Channel', 'channel count'),
    bitrate: optional(text('Not supported')),
  },
  {
    finish: finishing<{ bitrate?: string }>((value, fail) => {
      if (value.bitrate !== undefined) fail('BypassIfMatch.Bitrate is not yet supported', 'bitrate');
    }),
  },
);
/** The typed form of `<BypassIfMatch>`: conditions that are undefined do not count. */
export type BypassIfMatchConfig = Static<typeof BypassIfMatchSchema>;

/** Encoders keep bit rates in 32 bits. */
const MAX_BITRATE = 1_000_000_000;
/** Longest side of a frame that encoders accept. */
const MAX_SIDE = 16_384;
/** Beyond this a stream would consist of repeated frames only. */
const MAX_FRAMERATE = 1000;
const MAX_THREADS = 64;

interface CodedEncode {
  bypass: boolean;
  codec?: string;
  bitrate?: number;
  modules?: string;
}

/** Checks an encode that is not bypassed; the codec is normalised to one of `codecs`. */
function codedRules(value: CodedEncode, codecs: readonly string[], fail: Fail): void {
  splitCodec(value);
  if (value.bypass) return;
  if (value.codec === undefined) fail('Codec must be specified when bypass is false', 'codec');
  else if (value.bitrate === undefined) fail('Bitrate must be specified when bypass is false', 'bitrate');
  else if (value.bitrate <= 0) fail('Bitrate must be greater than 0', 'bitrate');
  else if (value.bitrate > MAX_BITRATE) fail(`Bitrate must not be greater than ${MAX_BITRATE}`, 'bitrate');
  else knownCodec(value.codec, codecs, fail);
}

function knownCodec(codec: string, codecs: readonly string[], fail: Fail): void {
  if (!codecs.includes(codec)) fail(`Unknown codec: ${codec} (expected: ${codecs.join(', ')})`, 'codec');
}

/** `h264_nvenc`, an older way to name codec and encoder in one, means the codec `h264` made by the module `nv`. */
function splitCodec(value: { codec?: string; modules?: string }): void {
  if (value.codec === undefined) return;
  const [base = '', encoder = ''] = value.codec.trim().toLowerCase().split('_', 2);
  value.codec = base === 'hevc' ? 'h265' : base;
  if (encoder !== '') value.modules ??= FORMER_MODULES[encoder] ?? encoder;
}

const FORMER_MODULES: Readonly<Record<string, string>> = { nvenc: 'nv' };

const within = (key: string, minimum: number, maximum: number) => (value: number, fail: Fail, member: string) => {
  if (value < minimum || value > maximum) fail(`${key} must be between ${minimum} and ${maximum}`, member);
};
/** Sizes must be even, because frames are coded with half as many colour samples in both directions. */
function evenSize(value: { width: number; height: number }, fail: Fail): void {
  for (const key of ['width', 'height'] as const) {
    if (value[key] % 2 !== 0) fail(`${key === 'width' ? 'Width' : 'Height'} must be an even number of pixels, but got ${value[key]}`, key);
  }
}

const AAC_SAMPLE_RATES = [8000, 11_025, 12_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000, 64_000, 88_200, 96_000];

function aacSampleRate(value: AudioFinish, fail: Fail): void {
  if (value.bypass || value.codec !== 'aac' || value.samplerate === 0 || AAC_SAMPLE_RATES.includes(value.samplerate)) return;
  fail(`Unknown Samplerate of aac: ${value.samplerate} (expected: ${AAC_SAMPLE_RATES.join(', ')})`, 'samplerate');
}

const skipFramesRange = within('SkipFrames', 0, 120);

const named = (prefix: string) => text(`Name that renditions refer to; default: \`${prefix}_<n>\``, { default: '' });
const bypass = boolean('Passes the track through unchanged', { default: false });
const modules = optional(text('Encoder modules to try, in order, separated by commas; absent: automatic'));
const width = integer('Width, pixels; 0: from the source, in proportion to the height', { default: 0, minimum: 0, maximum: MAX_SIDE });
const height = integer('Height, pixels; 0: from the source, in proportion to the width', { default: 0, minimum: 0, maximum: MAX_SIDE });
const framerate = real('Frames per second; 0: as the source', { default: 0, minimum: 0, maximum: MAX_FRAMERATE });
const rate = optional(bitrate('Bits per second; required unless bypassed. The suffixes K (× 1024) and M (× 1048576) may be used'));

interface AudioFinish extends CodedEncode {
  samplerate: number;
  channel: number;
}

interface VideoFinish extends CodedEncode {
  width: number;
  height: number;
  skipFrames: number;
  keyFrameInterval: number;
  keyFrameIntervalType: string;
  bFrames: number;
}

/** `<Video>` in `<Encodes>`. A codec such as `h264_nvenc` is split into codec and module; sizes have to be even. */
const EncodeVideoSchema = object(
  'One video encoder',
  {
    name: named('video'),
    bypass,
    codec: optional(text('`h264`, `h265`, `vp8` or `av1`; required unless bypassed')),
    bitrate: rate,
    width,
    height,
    framerate,
    skipFrames: integer('Number of frames that are dropped after each kept frame, 0 to 120; -1: `Framerate` applies instead', {
      default: -1,
    }),
    keyFrameInterval: integer('Distance between keyframes, in the unit of `KeyFrameIntervalType`; 0: one second', { default: 0 }),
    keyFrameIntervalType: choice('Unit of `KeyFrameInterval`: `frame` (0 to 600) or `time` (ms, 1 to 10000)', ['frame', 'time'], {
      default: 'frame',
      refusal: () => 'KeyFrameIntervalType must be frame or time',
    }),
    bFrames: integer('Maximum number of consecutive B-frames, 0 to 16', { default: 0 }),
    preset: optional(
      choice('Trade-off between speed and quality; absent: the default of the encoder', ['slower', 'slow', 'medium', 'fast', 'faster'], {
        refusal: () => 'Preset must be slower, slow, medium, fast, or faster',
      }),
    ),
    profile: optional(
      choice('H.264 profile; absent: `baseline`', ['baseline', 'main', 'high'], {
        refusal: () => 'Profile must be baseline, main or high',
      }),
    ),
    threadCount: integer('Encoder threads; -1: automatic', { default: -1, minimum: -1, maximum: MAX_THREADS }),
    lookahead: integer('Number of frames that the encoder looks ahead; -1: off', { default: -1, minimum: -1, maximum: 250 }),
    modules,
    bypassIfMatch: optional(BypassIfMatchSchema),
  },
  {
    finish: finishing<VideoFinish>((value, fail) => {
      codedRules(value, ['h264', 'h265', 'vp8', 'av1'], fail);
      if (value.skipFrames !== -1) skipFramesRange(value.skipFrames, fail, 'skipFrames');
      if (value.keyFrameIntervalType === 'frame') within('KeyFrameInterval', 0, 600)(value.keyFrameInterval, fail, 'keyFrameInterval');
      else within('KeyFrameInterval', 0, 10_000)(value.keyFrameInterval, fail, 'keyFrameInterval');
      within('BFrames', 0, 16)(value.bFrames, fail, 'bFrames');
      if (!value.bypass) evenSize(value, fail);
    }),
  },
);
/** The typed form of `<Video>`: rates in bits per second, sizes in pixels. Codec and bit rate are there unless `bypass` is set. */
export type EncodeVideoConfig = Static<typeof EncodeVideoSchema>;

/** `<Audio>` in `<Encodes>`. Sample rates that AAC lacks are refused. */
const EncodeAudioSchema = object(
  'One audio encoder',
  {
    name: named('audio'),
    bypass,
    codec: optional(text('`aac`, `opus` or `mp3`; required unless bypassed')),
    bitrate: rate,
    samplerate: integer('Sample rate, Hz; 0: the sample rate of the source at its start', { default: 0, minimum: 0 }),
    channel: integer('Number of channels; 0: as the source; the number rises, but does not fall, when the source changes', {
      default: 0,
      minimum: 0,
    }),
    modules,
    bypassIfMatch: optional(BypassIfMatchSchema),
  },
  {
    finish: finishing<AudioFinish>((value, fail) => {
      codedRules(value, ['aac', 'opus', 'mp3'], fail);
      aacSampleRate(value, fail);
      within('Channel', 0, 8)(value.channel, fail, 'channel');
    }),
  },
);
/** The typed form of `<Audio>`: bit rate in bits per second, sample rate in Hz. Codec and bit rate are there unless `bypass` is set. */
export type EncodeAudioConfig = Static<typeof EncodeAudioSchema>;

/** `<Image>` in `<Encodes>`: frames for the thumbnail publisher. Never bypassed, so the codec is required. */
const EncodeImageSchema = object(
  'One image encoder',
  {
    name: named('image'),
    codec: optional(text('`jpeg`, `png` or `webp`; required')),
    width,
    height,
    framerate,
    skipFrames: integer('Number of frames that are dropped after each kept frame, 0 to 120', { default: 0 }),
    modules,
    bypassIfMatch: optional(BypassIfMatchSchema),
  },
  {
    finish: finishing<{ codec?: string; skipFrames: number; modules?: string }>((value, fail) => {
      splitCodec(value);
      if (value.codec === undefined) fail('Codec must be specified for images', 'codec');
      else knownCodec(value.codec, ['jpeg', 'png', 'webp'], fail);
      skipFramesRange(value.skipFrames, fail, 'skipFrames');
    }),
  },
);
/** The typed form of `<Image>`; `framerate` counts frames per second. */
export type EncodeImageConfig = Static<typeof EncodeImageSchema>;

interface EncodesFinish {
  videos: { name: string }[];
  audios: { name: string }[];
  images: { name: string }[];
}

function nameUnnamed(encodes: readonly { name: string }[], prefix: string): void {
  let unnamed = 0;
  for (const encode of encodes) {
    if (encode.name !== '') continue;
    encode.name = `${prefix}_${unnamed}`;
    unnamed += 1;
  }
}

/** `<Encodes>` of an output profile. Encodes without a name get one. */
export const EncodesSchema = object(
  'The encodes of the profile; at least one',
  {
    videos: list('Video', EncodeVideoSchema, { xml: 'Video', default: [] }),
    audios: list('Audio', EncodeAudioSchema, { xml: 'Audio', default: [] }),
    images: list('Images, for thumbnails', EncodeImageSchema, { xml: 'Image', default: [] }),
  },
  {
    default: {},
    alwaysEchoed: ['audios', 'videos'],
    finish: finishing<EncodesFinish>((value) => {
      nameUnnamed(value.videos, 'video');
      nameUnnamed(value.audios, 'audio');
      nameUnnamed(value.images, 'image');
    }),
  },
);
/** The typed form of `<Encodes>`: three lists, each in the order of the file, any of them possibly empty. */
export type EncodesConfig = Static<typeof EncodesSchema>;
