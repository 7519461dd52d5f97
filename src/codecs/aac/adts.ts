/**
 * ADTS, ISO/IEC 13818-7 §6.2: AAC frames that describe themselves.
 *
 *  sync 12 | id 1 | layer 2 | protection_absent 1 | profile 2 | freq 4 | private 1 | channels 3 | … 4 |
 *  frame_length 13 | buffer_fullness 11 | raw_data_blocks - 1: 2 | [crc 16]
 */
import { ProtocolError } from '../../util/protocol-error.ts';
import { AacObjectType, type AudioSpecificConfig, buildAudioSpecificConfig } from './audio-specific-config.ts';
import { channelsOfConfiguration, frequencyOfIndex, nearestFrequencyIndex } from './sampling-frequency.ts';

/** Length of the header without CRC, as `writeAdtsHeader` writes it. */
export const ADTS_HEADER_LENGTH = 7;
const MAX_FRAME_LENGTH = 0x1f_ff;

/** One ADTS frame inside a buffer. */
export interface AdtsFrame {
  /** Where the header begins. */
  readonly offset: number;
  /** 7, or 9 with a CRC. */
  readonly headerLength: number;
  /** Length of the frame, header included. */
  readonly frameLength: number;
  /** MPEG-4 audio object type, 1 to 4. */
  readonly objectType: number;
  readonly sampleRate: number;
  readonly channelConfiguration: number;
  /** 0 if the raw data lists the channels. */
  readonly channels: number;
  /** AAC frames in the ADTS frame: nearly always 1. */
  readonly rawDataBlocks: number;
}

/** Parses the header at `offset`. The frame may reach beyond the data: compare `frameLength`. Throws `ADTS`. */
export function parseAdtsHeader(data: Uint8Array, offset = 0): AdtsFrame {
  if (data.length - offset < ADTS_HEADER_LENGTH) throw new ProtocolError('ADTS', 'header ends early', data.length);
  const at = (index: number): number => data[offset + index] ?? 0;
  // Layer must be 0; the MPEG-2/4 bit does not matter.
  if (at(0) !== 0xff || (at(1) & 0xf6) !== 0xf0) throw new ProtocolError('ADTS', 'no ADTS sync word', offset);
  const headerLength = (at(1) & 1) === 1 ? ADTS_HEADER_LENGTH : ADTS_HEADER_LENGTH + 2;
  const frequencyIndex = (at(2) >> 2) & 0xf;
  const sampleRate = frequencyOfIndex(frequencyIndex);
  if (sampleRate === undefined) throw new ProtocolError('ADTS', `sampling frequency index ${frequencyIndex}`, offset + 2);
  const frameLength = ((at(3) & 3) << 11) | (at(4) << 3) | (at(5) >> 5);
  if (frameLength < headerLength) throw new ProtocolError('ADTS', `frame length ${frameLength}`, offset + 3);
  const channelConfiguration = ((at(2) & 1) << 2) | (at(3) >> 6);
  return {
    offset,
    headerLength,
    frameLength,
    objectType: (at(2) >> 6) + 1,
    sampleRate,
    channelConfiguration,
    channels: channelsOfConfiguration(channelConfiguration),
    rawDataBlocks: (at(6) & 3) + 1,
  };
}

/** The AudioSpecificConfig that matches an ADTS header. */
export function configOfAdts(frame: AdtsFrame): Uint8Array {
  return buildAudioSpecificConfig(frame);
}

/**
 * Writes the 7-byte header for a raw frame of `payloadLength` bytes at `offset`. Object types without an ADTS code are written as AAC-LC.
 * Throws `ADTS` if the frame is too long.
 */
export function writeAdtsHeader(target: Uint8Array, offset: number, config: AudioSpecificConfig, payloadLength: number): void {
  const length = ADTS_HEADER_LENGTH + payloadLength;
  if (length > MAX_FRAME_LENGTH) throw new ProtocolError('ADTS', `frame of ${length} bytes, at most ${MAX_FRAME_LENGTH} fit`);
  const objectType = config.objectType <= AacObjectType.LTP ? config.objectType : AacObjectType.LC;
  const channels = config.channelConfiguration & 7;
  target[offset] = 0xff;
  target[offset + 1] = 0xf1; // MPEG-4, no CRC
  target[offset + 2] = ((objectType - 1) << 6) | (nearestFrequencyIndex(config.coreSampleRate) << 2) | (channels >> 2);
  target[offset + 3] = ((channels & 3) << 6) | (length >> 11);
  target[offset + 4] = length >> 3;
  target[offset + 5] = ((length & 7) << 5) | 0x1f; // buffer fullness 0x7ff: variable bitrate
  target[offset + 6] = 0xfc;
}
