/** The codec of a line of a program map table, ISO/IEC 13818-1 §2.4.4.9 and the registrations of SMPTE-RA. */
import { AudioCodec, VideoCodec } from '../../media/codec.ts';
import type { PmtEntry } from './psi.ts';
import { forEachDescriptor } from './psi-parser.ts';
import { Descriptor, StreamType } from './stream-type.ts';

/** Kinds of elementary streams. */
export type StreamKind =
  | { readonly type: 'video'; readonly codec: typeof VideoCodec.H264 | typeof VideoCodec.H265 }
  | { readonly type: 'audio'; readonly codec: typeof AudioCodec.AAC; readonly layout: 'adts' | 'latm' }
  | { readonly type: 'audio'; readonly codec: typeof AudioCodec.MP3 }
  | { readonly type: 'audio'; readonly codec: typeof AudioCodec.OPUS; readonly channels: number }
  | { readonly type: 'data' }
  /** splice_info_sections. */
  | { readonly type: 'splices' }
  /** Not supported; `what` describes it, for the log. */
  | { readonly type: 'unsupported'; readonly what: string };

/** One stream of a program map table. */
export interface StreamDescription {
  readonly pid: number;
  readonly kind: StreamKind;
  /** ISO 639-2 code of three letters; empty without one. */
  readonly language: string;
}

const OPUS_EXTENSION_TAG = 0x80;
const DEFAULT_OPUS_CHANNELS = 2;
/** More channels need a mapping that is only implied by the descriptor. */
const MAX_OPUS_CHANNELS = 2;

const OTHER_TYPES: Readonly<Record<number, string>> = {
  1: 'MPEG-1 video',
  2: 'MPEG-2 video',
  16: 'MPEG-4 part 2 video',
  32: 'MVC video',
  33: 'JPEG 2000 video',
  45: 'MPEG-H audio',
  51: 'H.266 video',
  66: 'AVS video',
  129: 'AC-3 audio',
  130: 'DTS audio',
  131: 'TrueHD audio',
  135: 'E-AC-3 audio',
};
/** Names by registration or by the tag of a DVB descriptor, for private streams. */
const OTHER_TAGS: Readonly<Record<number, string>> = {
  86: 'teletext',
  89: 'DVB subtitles',
  106: 'AC-3 audio',
  122: 'E-AC-3 audio',
  123: 'DTS audio',
};

/** Describes a line of a program map table. */
export function describeElementaryStream(entry: PmtEntry): StreamDescription {
  const facts = factsOf(entry.descriptors);
  return { pid: entry.pid, kind: kindOf(entry.streamType, facts), language: facts.language };
}

interface Facts {
  language: string;
  /** Identifiers of registration and metadata descriptors. */
  readonly identifiers: Set<string>;
  opusChannels: number;
  /** The kind of a private stream, from a DVB descriptor. */
  named: string | null;
}

function factsOf(descriptors: Uint8Array): Facts {
  const facts: Facts = { language: '', identifiers: new Set(), opusChannels: DEFAULT_OPUS_CHANNELS, named: null };
  forEachDescriptor(descriptors, (tag, body) => {
    if (tag === Descriptor.REGISTRATION) facts.identifiers.add(ascii(body.subarray(0, 4)));
    else if (tag === Descriptor.METADATA) facts.identifiers.add(metadataFormat(body));
    else if (tag === Descriptor.LANGUAGE) facts.language = languageOf(body);
    else if (tag === Descriptor.DVB_EXTENSION && body[0] === OPUS_EXTENSION_TAG) facts.opusChannels = body[1] ?? 0;
    else facts.named ??= OTHER_TAGS[tag] ?? null;
  });
  return facts;
}

function kindOf(streamType: number, facts: Facts): StreamKind {
  switch (streamType) {
    case StreamType.H264:
      return { type: 'video', codec: VideoCodec.H264 };
    case StreamType.H265:
      return { type: 'video', codec: VideoCodec.H265 };
    case StreamType.AAC_ADTS:
      return { type: 'audio', codec: AudioCodec.AAC, layout: 'adts' };
    case StreamType.AAC_LATM:
      return { type: 'audio', codec: AudioCodec.AAC, layout: 'latm' };
    case StreamType.MPEG1_AUDIO:
    case StreamType.MPEG2_AUDIO:
      return { type: 'audio', codec: AudioCodec.MP3 };
    case StreamType.METADATA_PES:
      return facts.identifiers.has('ID3 ') ? { type: 'data' } : unsupported('metadata other than ID3');
    case StreamType.SCTE35:
      return { type: 'splices' };
    case StreamType.PRIVATE:
      return privateKind(facts);
    default:
      return unsupported(OTHER_TYPES[streamType] ?? `stream type 0x${streamType.toString(16).padStart(2, '0')}`);
  }
}

function privateKind(facts: Facts): StreamKind {
  if (facts.identifiers.has('Opus')) return opusKind(facts.opusChannels);
  if (facts.identifiers.has('HEVC')) return { type: 'video', codec: VideoCodec.H265 };
  if (facts.identifiers.has('ID3 ')) return { type: 'data' };
  const [identifier] = facts.identifiers;
  return unsupported(facts.named ?? (identifier === undefined ? 'private data' : `private data '${identifier}'`));
}

function unsupported(what: string): StreamKind {
  return { type: 'unsupported', what };
}

/** metadata_descriptor, §2.6.60: an application format, then a format, which is 0xff if an identifier names it. */
function metadataFormat(body: Uint8Array): string {
  const at = body[0] === 0xff && body[1] === 0xff ? 6 : 2;
  return body[at] === 0xff ? ascii(body.subarray(at + 1, at + 5)) : '';
}

function languageOf(body: Uint8Array): string {
  const code = ascii(body.subarray(0, 3)).toLowerCase();
  return /^[a-z]{3}$/.test(code) && code !== 'und' ? code : '';
}

function opusKind(channels: number): StreamKind {
  if (channels < 1 || channels > MAX_OPUS_CHANNELS) return unsupported(`Opus audio with channel configuration ${channels}`);
  return { type: 'audio', codec: AudioCodec.OPUS, channels };
}

/** Identifiers reach logs: unprintable characters become dots. */
function ascii(bytes: Uint8Array): string {
  return String.fromCharCode(...bytes).replace(/[^\x20-\x7e]/g, '.');
}
