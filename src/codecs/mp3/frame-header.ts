/** Header of MPEG audio frames (layers I to III), ISO/IEC 11172-3 §2.4.1.3 and 13818-3. */
import { ProtocolError } from '../../util/protocol-error.ts';

/** Fields of a frame header. */
export interface MpegAudioFrame {
  /** 1, 2, or 2.5 for the unofficial low rates. */
  readonly version: 1 | 2 | 2.5;
  readonly layer: 1 | 2 | 3;
  /** Bits per second. */
  readonly bitrate: number;
  readonly sampleRate: number;
  readonly channels: number;
  /** Bytes of the frame, header included. */
  readonly frameLength: number;
  readonly samplesPerFrame: number;
}

/** Bytes of the header, without a CRC that may follow. */
export const MPEG_AUDIO_HEADER_LENGTH = 4;
const MONO = 3;

const KBITS_V1: Readonly<Record<1 | 2 | 3, readonly number[]>> = {
  1: [0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448],
  2: [0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384],
  3: [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
};
const KBITS_V2_LAYER_1: readonly number[] = [0, 32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256];
const KBITS_V2: readonly number[] = [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160];
const SAMPLE_RATES: readonly number[] = [44_100, 48_000, 32_000];

/** Parses the header at `offset`. Free-format bitrates are refused. Throws `MP3_HEADER`. */
export function parseMpegAudioHeader(data: Uint8Array, offset = 0): MpegAudioFrame {
  if (data.length - offset < MPEG_AUDIO_HEADER_LENGTH) throw new ProtocolError('MP3_HEADER', 'header ends early', data.length);
  const [b0 = 0, b1 = 0, b2 = 0, b3 = 0] = data.subarray(offset, offset + MPEG_AUDIO_HEADER_LENGTH);
  if (b0 !== 0xff || (b1 & 0xe0) !== 0xe0) throw new ProtocolError('MP3_HEADER', 'no sync word', offset);
  const version = versionOf((b1 >> 3) & 3, offset);
  const layer = layerOf((b1 >> 1) & 3, offset);
  const kbits = bitrateTable(version, layer)[b2 >> 4];
  const fullRate = SAMPLE_RATES[(b2 >> 2) & 3];
  if (kbits === undefined || kbits === 0 || fullRate === undefined)
    throw new ProtocolError('MP3_HEADER', 'bitrate or sampling rate', offset + 2);
  const sampleRate = version === 1 ? fullRate : fullRate / (version === 2 ? 2 : 4);
  const samplesPerFrame = layer === 1 ? 384 : layer === 3 && version !== 1 ? 576 : 1152;
  const padding = (b2 >> 1) & 1;
  const slot = layer === 1 ? 4 : 1;
  const frameLength = (Math.floor((samplesPerFrame * kbits * 125) / (sampleRate * slot)) + padding) * slot;
  return { version, layer, bitrate: kbits * 1000, sampleRate, channels: b3 >> 6 === MONO ? 1 : 2, frameLength, samplesPerFrame };
}

function versionOf(code: number, offset: number): 1 | 2 | 2.5 {
  if (code === 3) return 1;
  if (code === 2) return 2;
  if (code === 0) return 2.5;
  throw new ProtocolError('MP3_HEADER', 'reserved version', offset + 1);
}

function layerOf(code: number, offset: number): 1 | 2 | 3 {
  if (code === 3) return 1;
  if (code === 2) return 2;
  if (code === 1) return 3;
  throw new ProtocolError('MP3_HEADER', 'reserved layer', offset + 1);
}

function bitrateTable(version: 1 | 2 | 2.5, layer: 1 | 2 | 3): readonly number[] {
  if (version === 1) return KBITS_V1[layer];
  return layer === 1 ? KBITS_V2_LAYER_1 : KBITS_V2;
}
