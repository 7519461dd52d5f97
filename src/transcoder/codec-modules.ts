/** Codec modules as `GET /v2/internals/codecs` lists them. */
import { AudioCodec, VideoCodec } from '../media/codec.ts';
import { CodecModule, ENCODERS, type EncoderEntry, HARDWARE_DECODERS } from './encoder-catalogue.ts';
import type { HelloMessage, StatusMessage } from './messages.ts';

/** One element of the response, with the members of the contract. */
export interface CodecModuleItem {
  readonly busId: string;
  readonly displayName: string;
  readonly id: number;
  readonly isDecoder: boolean;
  readonly isDefault: boolean;
  readonly isEncoder: boolean;
  readonly isHwAccel: boolean;
  readonly mediaType: 'Video' | 'Audio';
  readonly metrics: { readonly active: { readonly decoder: number; readonly encoder: number } };
  readonly module: string;
  readonly name: string;
  readonly supportedCodecs: readonly string[];
}

const DISPLAY_NAMES: Readonly<Record<CodecModule, string>> = {
  [CodecModule.DEFAULT]: 'FFmpeg',
  [CodecModule.X264]: 'x264',
  [CodecModule.X265]: 'x265',
  [CodecModule.LIBVPX]: 'libvpx',
  [CodecModule.SVTAV1]: 'SVT-AV1',
  [CodecModule.LIBWEBP]: 'libwebp',
  [CodecModule.LIBOPUS]: 'libopus',
  [CodecModule.LAME]: 'LAME',
  [CodecModule.NV]: 'NVIDIA NVENC',
  [CodecModule.QSV]: 'Intel Quick Sync Video',
  [CodecModule.VAAPI]: 'VA-API',
  [CodecModule.AMF]: 'AMD AMF',
};

/** Software decoders are the codec library's own; these are the names it gives them. */
const DECODERS: readonly (readonly [VideoCodec | AudioCodec, readonly string[]])[] = [
  [VideoCodec.H264, ['h264']],
  [VideoCodec.H265, ['hevc']],
  [VideoCodec.VP8, ['vp8']],
  [VideoCodec.VP9, ['vp9']],
  [VideoCodec.AV1, ['libdav1d', 'av1']],
  [AudioCodec.AAC, ['aac']],
  [AudioCodec.OPUS, ['opus', 'libopus']],
  [AudioCodec.MP3, ['mp3float', 'mp3']],
  [AudioCodec.PCMU, ['pcm_mulaw']],
  [AudioCodec.PCMA, ['pcm_alaw']],
];

const HARDWARE: ReadonlySet<CodecModule> = new Set([CodecModule.NV, CodecModule.QSV, CodecModule.VAAPI, CodecModule.AMF]);

/** A single module, with its names in the list. */
export function codecModuleOf(
  module: string,
  mediaType: CodecModuleItem['mediaType'],
): Pick<CodecModuleItem, 'displayName' | 'isHwAccel' | 'mediaType' | 'module'> {
  const known = Object.values(CodecModule).find((name) => name === module);
  const displayName = known === undefined ? module : displayNameOf(known, mediaType);
  return { displayName, isHwAccel: known !== undefined && HARDWARE.has(known), mediaType, module };
}

function displayNameOf(module: CodecModule, mediaType: CodecModuleItem['mediaType']): string {
  return `${DISPLAY_NAMES[module]} ${mediaType.toLowerCase()}`;
}

function decodersOf(module: CodecModule): readonly (readonly [VideoCodec | AudioCodec, readonly string[]])[] {
  if (module === CodecModule.DEFAULT) return DECODERS;
  return HARDWARE_DECODERS.filter((entry) => entry.module === module).map(({ codec, name }) => [codec, [name]] as const);
}

const AUDIO: ReadonlySet<string> = new Set(Object.values(AudioCodec));

/** The modules found by a process, with the codecs in use in all processes; `buses`: bus ids of devices, where known. */
export function codecModules(
  hello: HelloMessage,
  statuses: readonly StatusMessage[],
  buses: ReadonlyMap<CodecModule, string> = new Map(),
): CodecModuleItem[] {
  const working = ENCODERS.filter(({ name }) => hello.encoders.includes(name));
  const items: CodecModuleItem[] = [];
  for (const mediaType of ['Video', 'Audio'] as const) {
    for (const module of Object.values(CodecModule)) {
      const encoders = working.filter((entry) => entry.module === module && mediaTypeOf(entry.codec) === mediaType);
      const decoders = decodersOf(module).filter(
        ([codec, names]) => mediaTypeOf(codec) === mediaType && names.some((name) => hello.decoders.includes(name)),
      );
      if (encoders.length === 0 && decoders.length === 0) continue;
      const codecs = new Set([...decoders.map(([codec]) => codec), ...encoders.map(({ codec }) => codec)]);
      items.push({
        busId: buses.get(module) ?? '-',
        displayName: displayNameOf(module, mediaType),
        id: 0,
        isDecoder: decoders.length > 0,
        isDefault: encoders.some((entry) => isDefault(entry, working)) || (decoders.length > 0 && module === CodecModule.DEFAULT),
        isEncoder: encoders.length > 0,
        isHwAccel: HARDWARE.has(module),
        mediaType,
        metrics: {
          active: {
            decoder: sum(
              statuses,
              'decoders',
              decoders.flatMap(([, names]) => names),
            ),
            encoder: sum(
              statuses,
              'encoders',
              encoders.map(({ name }) => name),
            ),
          },
        },
        module,
        // A module for both media types is two items.
        name: `${module}:${items.filter((other) => other.module === module).length}`,
        supportedCodecs: [...codecs],
      });
    }
  }
  return items.map((item, id) => ({ ...item, id }));
}

function mediaTypeOf(codec: string): 'Video' | 'Audio' {
  return AUDIO.has(codec) ? 'Audio' : 'Video';
}

/** Used when an encode names no module. */
function isDefault(entry: EncoderEntry, working: readonly EncoderEntry[]): boolean {
  return working.find(({ codec }) => codec === entry.codec) === entry;
}

function sum(statuses: readonly StatusMessage[], kind: 'encoders' | 'decoders', names: readonly string[]): number {
  let active = 0;
  for (const status of statuses) for (const name of names) active += status[kind][name] ?? 0;
  return active;
}
