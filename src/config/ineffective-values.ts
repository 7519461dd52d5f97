/** Values without effect in members that have one: unknown names, and settings that an encoder does not support. */
import type { ApplicationConfig, EncodeVideoConfig, OutputProfileConfig } from './index.ts';

/** A member by its keys, and what happens instead. */
export interface IneffectiveMember {
  readonly key: string;
  readonly why: string;
}

/** All rules of this file, for the reference page. */
export const VALUE_RULES: readonly { readonly element: string; readonly when: string; readonly why: string }[] = [
  {
    element: 'Publishers/LLHLS/DefaultQueryString',
    when: 'a key other than `_HLS_legacy` and `_HLS_rewind`',
    why: 'no other value has a default',
  },
  { element: 'Publishers/HLS/DefaultQueryString', when: 'a key other than `_HLS_rewind`', why: 'no other value has a default' },
  {
    element: 'OutputProfiles/HWAccels/Encoder/Modules',
    when: '`xma`, `nilogan` or an unknown name',
    why: 'the next module is tried, and software last',
  },
  {
    element: 'OutputProfiles/HWAccels/Decoder/Modules',
    when: 'a name other than `nv` and `qsv`',
    why: 'the next module is tried, and software last',
  },
  {
    element: '…/Encodes/Video/Modules',
    when: '`xma`, `nilogan` or an unknown name; a device of `amf`',
    why: 'the next module is tried, and software last',
  },
  {
    element: '…/Encodes/{Video,Audio,Image}/BypassIfMatch',
    when: 'a condition on a property that such tracks do not have',
    why: 'the condition is ignored',
  },
  { element: '…/Encodes/Video/Profile', when: 'a codec other than H.264, or the module `amf`', why: 'the encoder chooses' },
  { element: '…/Encodes/Video/BFrames', when: 'a codec other than H.264 and H.265', why: 'no B-frames are made' },
  { element: '…/Encodes/Video/Preset', when: 'the modules `vaapi` and `amf`', why: 'the encoder chooses' },
  { element: '…/Encodes/Video/Lookahead', when: 'the modules `qsv`, `vaapi` and `amf`', why: 'no frame is held back' },
];

/** Module names for encodes; `src/transcoder/encoder-catalogue.ts` describes the modules. */
export const ENCODER_MODULES: readonly string[] = [
  ...['default', 'x264', 'libx264', 'openh264', 'x265', 'libx265', 'libvpx', 'svtav1', 'libwebp', 'libopus', 'lame', 'fdkaac'],
  ...['nv', 'nvenc', 'qsv', 'vaapi', 'amf'],
];
/** Names that decoders may give modules. */
export const DECODER_MODULES: readonly string[] = ['nv', 'nvenc', 'qsv'];

const NEXT = 'the next module is tried, and software last';
const LLHLS_KEYS = ['_hls_legacy', '_hls_rewind'];

/** Conditions of `BypassIfMatch` that apply to another kind of track. */
const FOREIGN_CONDITIONS = {
  videos: ['samplerate', 'channel'],
  audios: ['width', 'height', 'sAR', 'framerate'],
  images: ['samplerate', 'channel'],
} as const;

interface Hardware {
  readonly enable: boolean;
  readonly modules: string;
}

/** Query values in `DefaultQueryString` that have no effect. */
export function queryRules({ llhls, hls }: ApplicationConfig['publishers']): IneffectiveMember[] {
  const found: IneffectiveMember[] = [];
  const look = (publisher: string, queries: readonly { readonly key: string }[] | undefined, isKnown: (key: string) => boolean): void => {
    const unknown = queries?.filter(({ key }) => !isKnown(key)) ?? [];
    if (unknown.length === 0) return;
    const names = unknown.map(({ key }) => JSON.stringify(key)).join(', ');
    found.push({ key: `publishers.${publisher}.defaultQueryString`, why: `${names} has no default` });
  };
  look('llhls', llhls?.defaultQueryString?.queries, (key) => LLHLS_KEYS.includes(key.toLowerCase()));
  look('hls', hls?.defaultQueryString?.queries, (key) => key === '_HLS_rewind');
  return found;
}

/** Modules of all encodes and decodes of an application that this server does not have. */
export function hardwareRules(decoder: Hardware | undefined, encoder: Hardware | undefined): IneffectiveMember[] {
  const found: IneffectiveMember[] = [];
  const look = (kind: 'decoder' | 'encoder', { enable, modules }: Hardware, isKnown: (module: string) => boolean): void => {
    const unknown = enable ? namesIn(modules).filter((module) => !isKnown(module)) : [];
    if (unknown.length > 0)
      found.push({ key: `outputProfiles.hwaccels.${kind}.modules`, why: `${unknown.join(', ')} cannot be used: ${NEXT}` });
  };
  if (decoder !== undefined) look('decoder', decoder, (module) => DECODER_MODULES.includes(nameOf(module)));
  if (encoder !== undefined) look('encoder', encoder, isEncoderModule);
  return found;
}

/** Settings of encodes that their codec or their modules do not take; `hardware` is that of the application. Keys start in the profile. */
export function encodingRules({ encodes }: OutputProfileConfig, hardware?: Hardware): IneffectiveMember[] {
  const found: IneffectiveMember[] = [];
  const add = (key: string, why: string): void => void found.push({ key: `encodes.${key}`, why });
  for (const kind of ['videos', 'audios', 'images'] as const) {
    const unknown = encodes[kind].flatMap(({ modules = '' }) => namesIn(modules)).filter((module) => !isEncoderModule(module));
    if (unknown.length > 0) add(`${kind}.modules`, `${unknown.join(', ')} cannot be used: ${NEXT}`);
  }
  for (const [kind, keys] of Object.entries(FOREIGN_CONDITIONS) as [keyof typeof FOREIGN_CONDITIONS, readonly string[]][]) {
    const given = new Set(encodes[kind].flatMap(({ bypassIfMatch = {} }) => Object.keys(bypassIfMatch)));
    for (const key of keys) if (given.has(key)) add(`${kind}.bypassIfMatch.${key}`, 'such tracks do not have it');
  }
  const shared = hardware?.enable === true ? namesIn(hardware.modules) : [];
  for (const encode of encodes.videos) if (!encode.bypass) for (const [key, why] of settingsLost(encode, shared)) add(`videos.${key}`, why);
  return found;
}

function settingsLost(encode: EncodeVideoConfig, shared: readonly string[]): [key: string, why: string][] {
  const { codec = '', profile, preset, lookahead, bFrames, modules = '' } = encode;
  const named = [...namesIn(modules), ...shared].map(nameOf);
  const among = (...names: string[]): string | undefined => names.find((name) => named.includes(name));
  const lost: [string, string][] = [];
  const module = { profile: among('amf'), preset: among('vaapi', 'amf'), lookahead: among('qsv', 'vaapi', 'amf') };
  if (profile !== undefined && codec !== 'h264') lost.push(['profile', `${codec} has no such profiles: the encoder chooses`]);
  else if (profile !== undefined && module.profile !== undefined)
    lost.push(['profile', `${module.profile} is not told: the encoder chooses`]);
  if (bFrames > 0 && codec !== 'h264' && codec !== 'h265') lost.push(['bFrames', `${codec} has none`]);
  if (preset !== undefined && module.preset !== undefined) lost.push(['preset', `${module.preset} is not told: the encoder chooses`]);
  if (lookahead > 0 && module.lookahead !== undefined) lost.push(['lookahead', `${module.lookahead} is not told: no frame is held back`]);
  return lost;
}

function namesIn(modules: string): string[] {
  return modules
    .split(',')
    .map((module) => module.trim().toLowerCase())
    .filter((module) => module !== '');
}

/** The module without its device. */
function nameOf(module: string): string {
  return module.split(':', 1)[0] ?? '';
}

/** AMF cannot select a device, so `amf:0` names no module. */
function isEncoderModule(module: string): boolean {
  return ENCODER_MODULES.includes(nameOf(module)) && !module.startsWith('amf:');
}
