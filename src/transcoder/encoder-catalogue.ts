/** The encoders of each codec in the order of attempts, and the API's names of codec modules. */
import { AudioCodec, VideoCodec } from '../media/codec.ts';

/** Names of modules as profiles and the API use them. */
export const CodecModule = {
  /** Encoders of the codec library itself. */
  DEFAULT: 'default',
  X264: 'x264',
  X265: 'x265',
  LIBVPX: 'libvpx',
  SVTAV1: 'svtav1',
  LIBWEBP: 'libwebp',
  LIBOPUS: 'libopus',
  LAME: 'lame',
  NV: 'nv',
  QSV: 'qsv',
  VAAPI: 'vaapi',
  AMF: 'amf',
} as const;
/** Any of these names. */
export type CodecModule = (typeof CodecModule)[keyof typeof CodecModule];

/** Properties of an encoder needed before it is opened. */
export interface EncoderEntry {
  /** The codec library's name of the encoder. */
  readonly name: string;
  readonly codec: VideoCodec | AudioCodec;
  readonly module: CodecModule;
  readonly hardware: boolean;
  /** For frames: the library's name of the pixel format. */
  readonly pixelFormat: string;
  /** Frames must be brought into the memory of the device first. */
  readonly uploads: boolean;
}

const video = (codec: VideoCodec, module: CodecModule, name: string, pixelFormat = 'yuv420p'): EncoderEntry => ({
  name,
  codec,
  module,
  hardware: false,
  pixelFormat,
  uploads: false,
});
const hardware = (codec: VideoCodec, module: CodecModule, name: string): EncoderEntry => ({
  name,
  codec,
  module,
  hardware: true,
  pixelFormat: 'nv12',
  uploads: module === CodecModule.VAAPI,
});
const audio = (codec: AudioCodec, module: CodecModule, name: string): EncoderEntry => ({
  name,
  codec,
  module,
  hardware: false,
  pixelFormat: '',
  uploads: false,
});

/** All encoders the transcoder can drive; of one codec the software encoder comes first. */
export const ENCODERS: readonly EncoderEntry[] = [
  video(VideoCodec.H264, CodecModule.X264, 'libx264'),
  hardware(VideoCodec.H264, CodecModule.NV, 'h264_nvenc'),
  hardware(VideoCodec.H264, CodecModule.QSV, 'h264_qsv'),
  hardware(VideoCodec.H264, CodecModule.VAAPI, 'h264_vaapi'),
  hardware(VideoCodec.H264, CodecModule.AMF, 'h264_amf'),
  video(VideoCodec.H265, CodecModule.X265, 'libx265'),
  hardware(VideoCodec.H265, CodecModule.NV, 'hevc_nvenc'),
  hardware(VideoCodec.H265, CodecModule.QSV, 'hevc_qsv'),
  hardware(VideoCodec.H265, CodecModule.VAAPI, 'hevc_vaapi'),
  hardware(VideoCodec.H265, CodecModule.AMF, 'hevc_amf'),
  video(VideoCodec.VP8, CodecModule.LIBVPX, 'libvpx'),
  hardware(VideoCodec.VP8, CodecModule.VAAPI, 'vp8_vaapi'),
  video(VideoCodec.AV1, CodecModule.SVTAV1, 'libsvtav1'),
  hardware(VideoCodec.AV1, CodecModule.NV, 'av1_nvenc'),
  hardware(VideoCodec.AV1, CodecModule.QSV, 'av1_qsv'),
  hardware(VideoCodec.AV1, CodecModule.VAAPI, 'av1_vaapi'),
  video(VideoCodec.JPEG, CodecModule.DEFAULT, 'mjpeg', 'yuvj420p'),
  video(VideoCodec.PNG, CodecModule.DEFAULT, 'png', 'rgb24'),
  video(VideoCodec.WEBP, CodecModule.LIBWEBP, 'libwebp'),
  audio(AudioCodec.AAC, CodecModule.DEFAULT, 'aac'),
  audio(AudioCodec.OPUS, CodecModule.LIBOPUS, 'libopus'),
  audio(AudioCodec.MP3, CodecModule.LAME, 'libmp3lame'),
];

/** Hardware is not used for audio and images. */
const HARDWARE_CODECS: ReadonlySet<VideoCodec | AudioCodec> = new Set(ENCODERS.filter((entry) => entry.hardware).map(({ codec }) => codec));

const DECODED = [
  [VideoCodec.H264, 'h264'],
  [VideoCodec.H265, 'hevc'],
  [VideoCodec.VP8, 'vp8'],
  [VideoCodec.VP9, 'vp9'],
  [VideoCodec.AV1, 'av1'],
] as const;

/** Decoders of hardware, by the library's names; software is the library's own choice. */
export const HARDWARE_DECODERS = [
  ...DECODED.map(([codec, name]) => ({ name: `${name}_cuvid`, codec, module: CodecModule.NV })),
  ...DECODED.map(([codec, name]) => ({ name: `${name}_qsv`, codec, module: CodecModule.QSV })),
];

/** Without the device of its module no encoder or decoder works, though some open; asking for it is cheaper, too. */
export const DEVICES: readonly { readonly module: CodecModule; readonly device: 'cuda' | 'qsv' }[] = [
  { module: CodecModule.NV, device: 'cuda' },
  { module: CodecModule.QSV, device: 'qsv' },
];

/** Other names for modules that profiles written for the reference server use. */
const MODULE_ALIASES: Readonly<Record<string, CodecModule>> = {
  nvenc: CodecModule.NV,
  libx264: CodecModule.X264,
  libx265: CodecModule.X265,
  libvpx: CodecModule.LIBVPX,
  // The software encoder of the reference server is not in this build; x264 does its work.
  openh264: CodecModule.X264,
  fdkaac: CodecModule.DEFAULT,
};

/** An encoder to try. */
export interface EncoderCandidate extends EncoderEntry {
  /** Index of the device within its module, from 0; absent: chosen by the library. */
  readonly device?: number;
}

/** An encode's encoder on this machine. */
export interface EncoderChoice {
  /** Encoders to try, in order; empty when there is none at all. */
  readonly candidates: readonly EncoderCandidate[];
  /** Named modules that cannot be used for this codec here. */
  readonly unavailable: readonly string[];
}

/**
 * The encoders for `codec` in the order of attempts: modules named by the encode, those named by the application if hardware is on, then
 * software. `working`: the library's names of encoders that work on this machine.
 */
export function chooseEncoders(
  codec: VideoCodec | AudioCodec,
  wanted: { readonly modules: string; readonly hardware: { readonly enable: boolean; readonly modules: string } },
  working: ReadonlySet<string>,
): EncoderChoice {
  const usable = ENCODERS.filter((entry) => entry.codec === codec && working.has(entry.name));
  const candidates: EncoderCandidate[] = [];
  const unavailable: string[] = [];
  const add = (entries: readonly EncoderEntry[], device?: number): void => {
    for (const entry of entries) {
      const isThere = candidates.some((other) => other.name === entry.name && (device === undefined || other.device === device));
      if (!isThere) candidates.push(device === undefined || !entry.hardware ? entry : { ...entry, device });
    }
  };
  const addNamed = (list: string, report: string[] | null): void => {
    for (const { name, device } of namedModules(list)) {
      if (name === CodecModule.DEFAULT) {
        add(usable.filter((entry) => !entry.hardware));
        continue;
      }
      const found = usable.filter((entry) => entry.module === (MODULE_ALIASES[name] ?? name));
      add(found, device);
      if (found.length === 0) report?.push(name);
    }
  };
  addNamed(wanted.modules, unavailable);
  if (wanted.hardware.enable) {
    if (wanted.hardware.modules.trim() === '') add(usable.filter((entry) => entry.hardware));
    else addNamed(wanted.hardware.modules, HARDWARE_CODECS.has(codec) ? unavailable : null);
  }
  add(usable.filter((entry) => !entry.hardware));
  return { candidates, unavailable };
}

/** A decoder to try, by the library's name. */
export interface DecoderCandidate {
  readonly name: string;
  /** Index of the device, as for an encoder. */
  readonly device?: number;
}

/** The hardware decoders to try for `codec`, in order, and named modules that cannot be used. */
export function chooseDecoders(
  codec: VideoCodec,
  hardware: { readonly enable: boolean; readonly modules: string },
  working: ReadonlySet<string>,
): { readonly candidates: readonly DecoderCandidate[]; readonly unavailable: readonly string[] } {
  if (!hardware.enable) return { candidates: [], unavailable: [] };
  const usable = HARDWARE_DECODERS.filter((entry) => entry.codec === codec && working.has(entry.name));
  const modules = namedModules(hardware.modules);
  if (modules.length === 0) return { candidates: usable.map(({ name }) => ({ name })), unavailable: [] };
  const of = ({ name: module, device }: NamedModule): DecoderCandidate[] =>
    usable
      .filter((entry) => entry.module === (MODULE_ALIASES[module] ?? module))
      .map(({ name }) => ({ name, ...(device !== undefined && { device }) }));
  const unavailable = modules.filter((module) => of(module).length === 0).map(({ name }) => name);
  return { candidates: modules.flatMap(of), unavailable };
}

interface NamedModule {
  readonly name: string;
  readonly device?: number;
}

/** `nv:1, qsv` names device 1 of the module `nv`, and the module `qsv`. */
function namedModules(list: string): NamedModule[] {
  return list.split(',').flatMap((text) => {
    const [name = '', device = ''] = text.trim().toLowerCase().split(':');
    if (name === '') return [];
    return /^\d{1,3}$/.test(device) ? { name, device: Number(device) } : { name };
  });
}

const CODECS_BY_NAME: Readonly<Record<string, VideoCodec | AudioCodec>> = {
  h264: VideoCodec.H264,
  h265: VideoCodec.H265,
  hevc: VideoCodec.H265,
  vp8: VideoCodec.VP8,
  av1: VideoCodec.AV1,
  jpeg: VideoCodec.JPEG,
  png: VideoCodec.PNG,
  webp: VideoCodec.WEBP,
  aac: AudioCodec.AAC,
  opus: AudioCodec.OPUS,
  mp3: AudioCodec.MP3,
};

/** The codec that `codec` of an encode names (`h264_nvenc` is H.264 by a named encoder), or null. */
export function encodeCodec(name: string): { readonly codec: VideoCodec | AudioCodec; readonly module: string } | null {
  const [codec = '', module = ''] = name.trim().toLowerCase().split('_');
  const known = CODECS_BY_NAME[codec];
  return known === undefined ? null : { codec: known, module };
}
