/** Turns router packets of one stream into media packets of OVT, in the layouts that the reference sends. */
import { ADTS_HEADER_LENGTH, writeAdtsHeader } from '../../codecs/aac/adts.ts';
import { type AudioSpecificConfig, parseAudioSpecificConfig } from '../../codecs/aac/audio-specific-config.ts';
import { LengthPrefixedCursor } from '../../codecs/nal/nal-cursor.ts';
import { parameterSetsOfConfig } from '../../codecs/parameter-sets.ts';
import { isReplaceableUnit, START_CODE, withStartCodes } from '../../containers/mpegts/elementary.ts';
import { isId3 } from '../../containers/mpegts/id3-units.ts';
import { AudioCodec, VideoCodec } from '../../media/codec.ts';
import type { Packet } from '../../media/packet.ts';
import { type AudioTrack, isMediaTrack, type Track, type VideoTrack } from '../../media/track.ts';
import { MEDIA_FIELD, MEDIA_HEADER_LENGTH } from './media-packet.ts';
import { OvtPayloadType, PacketWriter, writeInt64 } from './packet.ts';
import { codecIdOf, eventNumbers, OvtFlag, OvtFormat, OvtMediaType, OvtPacketType } from './wire-numbers.ts';

/** The data of a track's packets. */
interface Body {
  readonly format: number;
  readonly packetType: number;
  /** Bytes of data that `write` appends. Throws `ProtocolError` for packets that break their format. */
  length(packet: Packet): number;
  write(packet: Packet, out: PacketWriter): void;
}

/** Whether OVT has a number for the track's codec. */
export function canRelay(track: Track): track is VideoTrack | AudioTrack {
  return isMediaTrack(track) && codecIdOf(track.codec) !== undefined;
}

/** Makes each packet once for all its receivers. */
export class MediaPacketizer {
  readonly #writer: PacketWriter;
  readonly #header = Buffer.alloc(MEDIA_HEADER_LENGTH);
  /** Bodies by track id; rebuilt when the track changes. */
  readonly #bodies = new Map<number, { readonly track: Track; readonly body: Body }>();
  #sequence = 0;

  /** Every packet contains `sessionId`. */
  constructor(sessionId: number) {
    this.#writer = new PacketWriter(OvtPayloadType.MEDIA, sessionId);
  }

  /** All bytes for an event, or for an ID3 tag of the source; null for an event that OVT does not carry. */
  packetizeEvent(packet: Packet): Buffer | null {
    const { event, data } = packet;
    if (event === undefined && !isId3(data)) return null;
    const numbers = event === undefined ? { format: OvtFormat.ID3, packetType: OvtPacketType.RAW } : eventNumbers(event);
    if (numbers === null) return null;
    const body = new RawBody(numbers.format, numbers.packetType);
    return this.#layOut(packet, OvtMediaType.DATA, body);
  }

  /** All bytes for one packet of a track that `canRelay`. Throws `ProtocolError` for packets that break their format. */
  packetize(packet: Packet): Buffer {
    const mediaType = packet.track.type === 'video' ? OvtMediaType.VIDEO : OvtMediaType.AUDIO;
    return this.#layOut(packet, mediaType, this.#bodyOf(packet.track));
  }

  #layOut(packet: Packet, mediaType: number, body: Body): Buffer {
    const size = body.length(packet);
    const header = this.#header;
    header.writeUInt32BE(packet.track.id, MEDIA_FIELD.TRACK_ID);
    writeInt64(header, packet.pts, MEDIA_FIELD.PTS);
    writeInt64(header, packet.dts, MEDIA_FIELD.DTS);
    writeInt64(header, packet.duration, MEDIA_FIELD.DURATION);
    header[MEDIA_FIELD.MEDIA_TYPE] = mediaType;
    header[MEDIA_FIELD.FLAG] = packet.keyframe ? OvtFlag.KEYFRAME : OvtFlag.NONE;
    header[MEDIA_FIELD.FORMAT] = body.format;
    header[MEDIA_FIELD.PACKET_TYPE] = body.packetType;
    header.writeUInt32BE(size, MEDIA_FIELD.DATA_SIZE);
    const writer = this.#writer;
    writer.begin(MEDIA_HEADER_LENGTH + size, this.#sequence, packet.pts);
    writer.put(header);
    body.write(packet, writer);
    this.#sequence = writer.nextSequence;
    return writer.finish();
  }

  #bodyOf(track: Track): Body {
    const known = this.#bodies.get(track.id);
    if (known?.track === track) return known.body;
    const body = bodyOf(track);
    this.#bodies.set(track.id, { track, body });
    return body;
  }
}

function bodyOf(track: Track): Body {
  if (track.type === 'video' && (track.codec === VideoCodec.H264 || track.codec === VideoCodec.H265)) return new AnnexbBody(track);
  if (track.type === 'audio' && track.codec === AudioCodec.AAC && track.config !== null) return new AdtsBody(track.config);
  return new RawBody((isMediaTrack(track) ? RAW_FORMATS[track.codec] : undefined) ?? OvtFormat.UNKNOWN);
}

const RAW_FORMATS: Readonly<Partial<Record<VideoCodec | AudioCodec, number>>> = {
  [VideoCodec.VP8]: OvtFormat.VP8,
  [VideoCodec.JPEG]: OvtFormat.JPEG,
  [VideoCodec.PNG]: OvtFormat.PNG,
  [VideoCodec.WEBP]: OvtFormat.WEBP,
  [AudioCodec.AAC]: OvtFormat.AAC_RAW,
  [AudioCodec.OPUS]: OvtFormat.OPUS,
  [AudioCodec.MP3]: OvtFormat.MP3,
};

class RawBody implements Body {
  readonly format: number;
  readonly packetType: number;

  constructor(format: number, packetType: number = OvtPacketType.RAW) {
    this.format = format;
    this.packetType = packetType;
  }

  length({ data }: Packet): number {
    return data.length;
  }

  write({ data }: Packet, out: PacketWriter): void {
    out.put(data);
  }
}

/** Writes start codes instead of lengths, and before keyframes the parameter sets of the configuration instead of those inside. */
class AnnexbBody implements Body {
  readonly format: number;
  readonly packetType = OvtPacketType.NALU;
  readonly #parameterSets: Uint8Array;
  readonly #replaceable: (firstByte: number) => boolean;

  constructor({ codec, config }: VideoTrack) {
    this.format = codec === VideoCodec.H264 ? OvtFormat.H264_ANNEXB : OvtFormat.H265_ANNEXB;
    this.#replaceable = isReplaceableUnit(codec);
    const sets = config === null ? null : parameterSetsOfConfig(codec, config);
    this.#parameterSets = withStartCodes(sets === null ? [] : [...sets.vps, ...sets.sps, ...sets.pps]);
  }

  length({ data, keyframe }: Packet): number {
    let length = keyframe ? this.#parameterSets.length : 0;
    const units = new LengthPrefixedCursor(data);
    while (units.next()) {
      if (!this.#replaceable(data[units.start] ?? 0)) length += START_CODE.length + units.end - units.start;
    }
    return length;
  }

  write({ data, keyframe }: Packet, out: PacketWriter): void {
    if (keyframe) out.put(this.#parameterSets);
    const units = new LengthPrefixedCursor(data);
    while (units.next()) {
      if (this.#replaceable(data[units.start] ?? 0)) continue;
      out.put(START_CODE);
      out.put(data, units.start, units.end);
    }
  }
}

class AdtsBody implements Body {
  readonly format = OvtFormat.AAC_ADTS;
  readonly packetType = OvtPacketType.RAW;
  readonly #config: AudioSpecificConfig;
  readonly #header = new Uint8Array(ADTS_HEADER_LENGTH);

  constructor(config: Uint8Array) {
    this.#config = parseAudioSpecificConfig(config);
  }

  length({ data }: Packet): number {
    writeAdtsHeader(this.#header, 0, this.#config, data.length);
    return ADTS_HEADER_LENGTH + data.length;
  }

  /** Writes the header of the packet whose length was computed last. */
  write({ data }: Packet, out: PacketWriter): void {
    out.put(this.#header);
    out.put(data);
  }
}
