/** AudioSpecificConfig, ISO/IEC 14496-3 §1.6.2.1. */
import { BitReader } from '../../util/bit-reader.ts';
import { BitWriter } from '../../util/bit-writer.ts';
import { ProtocolError } from '../../util/protocol-error.ts';
import { readProgramConfigChannels } from './program-config.ts';
import { channelsOfConfiguration, ESCAPE_FREQUENCY_INDEX, frequencyOfIndex, indexOfFrequency } from './sampling-frequency.ts';

/** Audio object types (ISO/IEC 14496-3 §1.5.1) that matter here; `ESCAPE`: the number follows in six more bits. */
export const AacObjectType = {
  MAIN: 1,
  LC: 2,
  SSR: 3,
  LTP: 4,
  SBR: 5,
  SCALABLE: 6,
  ER_BSAC: 22,
  PS: 29,
  ESCAPE: 31,
} as const;

/** Fields of an AudioSpecificConfig. */
export interface AudioSpecificConfig {
  /** Object type of the core coder: 2 for AAC-LC, also with SBR or PS on top. */
  readonly objectType: number;
  /** Hz of the core coder. */
  readonly coreSampleRate: number;
  /** Output rate of a decoder in Hz, after spectral band replication. */
  readonly sampleRate: number;
  /** The coded number; 0 if a program config element lists the channels. */
  readonly channelConfiguration: number;
  /** Channels of the decoder's output: 2 for parametric stereo over mono. */
  readonly channels: number;
  readonly sbr: boolean;
  readonly ps: boolean;
  /** Samples of the core coder per frame: 1024 or 960. */
  readonly frameLength: number;
}

interface Extension {
  readonly sbr: boolean;
  readonly ps: boolean;
  readonly sampleRate: number;
}

/** Object types with a GASpecificConfig (§1.6.2.1). */
const GENERAL_AUDIO: ReadonlySet<number> = new Set([1, 2, 3, 4, 6, 7, 17, 19, 20, 21, 22, 23]);
const SYNC_EXTENSION_SBR = 0x2b7;
const SYNC_EXTENSION_PS = 0x548;

/** Parses an AudioSpecificConfig. Throws `AAC_CONFIG` for reserved values. */
export function parseAudioSpecificConfig(data: Uint8Array): AudioSpecificConfig {
  const reader = new BitReader(data);
  let objectType = readObjectType(reader);
  const coreSampleRate = readFrequency(reader);
  const channelConfiguration = reader.bits(4);
  let extension: Extension = { sbr: false, ps: false, sampleRate: coreSampleRate };
  if (objectType === AacObjectType.SBR || objectType === AacObjectType.PS) {
    extension = { sbr: true, ps: objectType === AacObjectType.PS, sampleRate: readFrequency(reader) };
    objectType = readObjectType(reader);
    if (objectType === AacObjectType.ER_BSAC) reader.skip(4);
  }
  let channels = channelsOfConfiguration(channelConfiguration);
  let frameLength = 1024;
  if (GENERAL_AUDIO.has(objectType)) {
    if (reader.flag()) frameLength = 960;
    channels = readGeneralAudio(reader, objectType, channelConfiguration, channels);
  }
  if (!extension.sbr) extension = readSyncExtension(reader, coreSampleRate);
  if (extension.ps && channels === 1) channels = 2;
  return { objectType, coreSampleRate, channelConfiguration, channels, frameLength, ...extension };
}

/** Builds the shortest config for AAC without SBR signalling; the usual two bytes for AAC-LC. */
export function buildAudioSpecificConfig(config: {
  readonly objectType: number;
  readonly sampleRate: number;
  readonly channelConfiguration: number;
}): Uint8Array {
  const writer = new BitWriter();
  if (config.objectType >= AacObjectType.ESCAPE) writer.bits(AacObjectType.ESCAPE, 5).bits(config.objectType - 32, 6);
  else writer.bits(config.objectType, 5);
  const index = indexOfFrequency(config.sampleRate);
  if (index >= 0) writer.bits(index, 4);
  else writer.bits(ESCAPE_FREQUENCY_INDEX, 4).bits(config.sampleRate, 24);
  // GASpecificConfig: 1024 samples, no core coder, no extension.
  return writer.bits(config.channelConfiguration, 4).bits(0, 3).finish();
}

/** RFC 6381 codecs string, e.g. `mp4a.40.2`; SBR and PS on top make 5 and 29. */
export function aacCodecString(config: Pick<AudioSpecificConfig, 'objectType' | 'sbr' | 'ps'>): string {
  const type = config.ps ? AacObjectType.PS : config.sbr ? AacObjectType.SBR : config.objectType;
  return `mp4a.40.${type}`;
}

function readObjectType(reader: BitReader): number {
  const type = reader.bits(5);
  if (type === 0) throw new ProtocolError('AAC_CONFIG', 'audio object type 0', 0);
  return type === AacObjectType.ESCAPE ? 32 + reader.bits(6) : type;
}

function readFrequency(reader: BitReader): number {
  const offset = reader.byteOffset;
  const index = reader.bits(4);
  const frequency = index === ESCAPE_FREQUENCY_INDEX ? reader.bits(24) : (frequencyOfIndex(index) ?? 0);
  if (frequency === 0) throw new ProtocolError('AAC_CONFIG', `sampling frequency index ${index}`, offset);
  return frequency;
}

/** GASpecificConfig behind its frameLengthFlag, §4.4.1; returns the channels. */
function readGeneralAudio(reader: BitReader, objectType: number, channelConfiguration: number, channels: number): number {
  if (reader.flag()) reader.skip(14); // coreCoderDelay
  const extended = reader.flag();
  const listed = channelConfiguration === 0 ? readProgramConfigChannels(reader) : channels;
  if (objectType === AacObjectType.SCALABLE || objectType === 20) reader.skip(3); // layerNr
  if (extended) {
    if (objectType === AacObjectType.ER_BSAC) reader.skip(16);
    if (objectType === 17 || objectType === 19 || objectType === 20 || objectType === 23) reader.skip(3);
    reader.skip(1); // extensionFlag3
  }
  return listed;
}

/** The backward compatible signalling of SBR and PS behind the config (§1.6.5.2), invisible to old decoders. */
function readSyncExtension(reader: BitReader, coreSampleRate: number): Extension {
  const none: Extension = { sbr: false, ps: false, sampleRate: coreSampleRate };
  if (reader.bitsLeft < 17 || reader.bits(11) !== SYNC_EXTENSION_SBR) return none;
  if (reader.bits(5) !== AacObjectType.SBR || !reader.flag()) return none;
  const sampleRate = readFrequency(reader);
  const ps = reader.bitsLeft >= 12 && reader.bits(11) === SYNC_EXTENSION_PS && reader.flag();
  return { sbr: true, ps, sampleRate };
}
