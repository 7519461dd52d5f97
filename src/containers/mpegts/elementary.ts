/** Turns packets of the router into the elementary streams of a transport stream, with a class for each kind of track. */
import { ADTS_HEADER_LENGTH, writeAdtsHeader } from '../../codecs/aac/adts.ts';
import { type AudioSpecificConfig, parseAudioSpecificConfig } from '../../codecs/aac/audio-specific-config.ts';
import { H264NalType, h264NalType } from '../../codecs/h264/nal-type.ts';
import { H265NalType, h265NalType } from '../../codecs/h265/nal-type.ts';
import { LengthPrefixedCursor } from '../../codecs/nal/nal-cursor.ts';
import { parameterSetsOfConfig } from '../../codecs/parameter-sets.ts';
import { AudioCodec, VideoCodec } from '../../media/codec.ts';
import type { Packet } from '../../media/packet.ts';
import { type AudioTrack, isMediaTrack, type Track, type VideoTrack } from '../../media/track.ts';
import type { Gather } from './gather.ts';

/** Adds the elementary stream bytes of a packet to a payload. */
export interface ElementaryStream {
  /** Throws `ProtocolError` for packets that break their format; the payload is then unusable. */
  add(packet: Packet, payload: Gather): void;
}

/** The start code before a NAL unit of Annex B. */
export const START_CODE = Uint8Array.of(0, 0, 0, 1);
/** Access unit delimiters that allow every slice type. */
const H264_DELIMITER = Uint8Array.of(0, 0, 0, 1, 0x09, 0xf0);
const H265_DELIMITER = Uint8Array.of(0, 0, 0, 1, 0x46, 0x01, 0x50);
/** 11 bits of prefix, no trimming, no extension ("Opus in MPEG-TS" §4). */
const OPUS_CONTROL_HEADER = [0x7f, 0xe0] as const;
const MAX_OPUS_CONTROL = 256;

/** The elementary stream of `track`; throws `ProtocolError` if its decoder configuration is broken. */
export function elementaryStream(track: Track): ElementaryStream {
  if (track.type === 'video') return new AnnexbStream(track);
  if (track.type === 'audio' && track.codec === AudioCodec.AAC && track.config !== null) return new AdtsStream(track.config);
  if (track.type === 'audio' && track.codec === AudioCodec.OPUS) return new OpusStream();
  return RAW;
}

/** ID3 tags and MP3 frames need no framing. */
const RAW: ElementaryStream = { add: (packet, payload) => payload.add(packet.data) };

/** H.264 and H.265: a delimiter before every access unit, the parameter sets of the configuration before keyframes. */
class AnnexbStream implements ElementaryStream {
  readonly #delimiter: Uint8Array;
  readonly #parameterSets: Uint8Array;
  readonly #repeated: (firstByte: number) => boolean;

  constructor(track: VideoTrack) {
    const h264 = track.codec === VideoCodec.H264;
    this.#delimiter = h264 ? H264_DELIMITER : H265_DELIMITER;
    this.#repeated = isReplaceableUnit(track.codec);
    const sets = parameterSetsOfConfig(track.codec, track.config ?? new Uint8Array(0));
    this.#parameterSets = withStartCodes([...sets.vps, ...sets.sps, ...sets.pps]);
  }

  add(packet: Packet, payload: Gather): void {
    payload.add(this.#delimiter);
    if (packet.keyframe) payload.add(this.#parameterSets);
    const nals = new LengthPrefixedCursor(packet.data);
    while (nals.next()) {
      if (this.#repeated(packet.data[nals.start] ?? 0)) continue;
      payload.add(START_CODE);
      payload.add(packet.data, nals.start, nals.end);
    }
  }
}

/** Recognises the delimiters and parameter sets inside H.264 or H.265 packets by their first byte: ours replace them. */
export function isReplaceableUnit(codec: VideoCodec): (firstByte: number) => boolean {
  return codec === VideoCodec.H264 ? isH264Repeated : isH265Repeated;
}

function isH264Repeated(firstByte: number): boolean {
  const type = h264NalType(firstByte);
  return type === H264NalType.AUD || type === H264NalType.SPS || type === H264NalType.PPS || type === H264NalType.FILLER;
}

function isH265Repeated(firstByte: number): boolean {
  const type = h265NalType(firstByte);
  return (type >= H265NalType.VPS && type <= H265NalType.AUD) || type === H265NalType.FILLER;
}

/** NAL units, each behind a start code. */
export function withStartCodes(units: readonly Uint8Array[]): Uint8Array {
  return new Uint8Array(Buffer.concat(units.flatMap((unit) => [START_CODE, unit])));
}

class AdtsStream implements ElementaryStream {
  readonly #config: AudioSpecificConfig;
  readonly #header = new Uint8Array(ADTS_HEADER_LENGTH);

  constructor(config: Uint8Array) {
    this.#config = parseAudioSpecificConfig(config);
  }

  add(packet: Packet, payload: Gather): void {
    writeAdtsHeader(this.#header, 0, this.#config, packet.data.length);
    payload.add(this.#header);
    payload.add(packet.data);
  }
}

class OpusStream implements ElementaryStream {
  readonly #control = new Uint8Array(MAX_OPUS_CONTROL);

  add(packet: Packet, payload: Gather): void {
    this.#control.set(OPUS_CONTROL_HEADER);
    let at = OPUS_CONTROL_HEADER.length;
    let size = packet.data.length;
    while (size >= 255 && at < MAX_OPUS_CONTROL - 1) {
      this.#control[at] = 255;
      at += 1;
      size -= 255;
    }
    this.#control[at] = size;
    payload.add(this.#control, 0, at + 1);
    payload.add(packet.data);
  }
}

/** True if the tracks need the same elementary stream: only the object is new, not its parameters. */
export function sameElementary(a: Track, b: Track): boolean {
  return a.type === b.type && (!isMediaTrack(a) || (a.codec === codecOf(b) && sameBytes(a.config, configOf(b))));
}

function codecOf(track: Track): VideoTrack['codec'] | AudioTrack['codec'] | null {
  return isMediaTrack(track) ? track.codec : null;
}

function configOf(track: Track): Uint8Array | null {
  return isMediaTrack(track) ? track.config : null;
}

function sameBytes(a: Uint8Array | null, b: Uint8Array | null): boolean {
  if (a === b) return true;
  return a !== null && b !== null && a.length === b.length && a.every((byte, index) => byte === b[index]);
}
