/** Sample rate and channels out of the audio sequence headers FLV carries. */

const SAMPLE_RATES = [96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8000, 7350] as const;
const EXPLICIT_RATE = 15;
const ESCAPED_OBJECT_TYPE = 31;
const CHANNELS_OF_CONFIGURATION_7 = 8;
const OPUS_MAGIC = 'OpusHead';
const OPUS_HEAD_LENGTH = 19;
const OPUS_SAMPLE_RATE = 48_000;

/** Zero means not told. */
export interface AudioShape {
  /** Hz. */
  readonly sampleRate: number;
  readonly channels: number;
}

/** Base sample rate and channel configuration of an AudioSpecificConfig (ISO 14496-3 §1.6.2.1); null when it is none. */
export function audioSpecificConfigShape(config: Uint8Array): AudioShape | null {
  if (config.length < 2) return null;
  let bit = 0;
  const read = (count: number): number => {
    let value = 0;
    for (let i = 0; i < count; i += 1, bit += 1) value = value * 2 + (((config[bit >> 3] ?? 0) >> (7 - (bit & 7))) & 1);
    return value;
  };
  let objectType = read(5);
  if (objectType === ESCAPED_OBJECT_TYPE) objectType = 32 + read(6);
  const index = read(4);
  const sampleRate = index === EXPLICIT_RATE ? read(24) : (SAMPLE_RATES[index] ?? 0);
  const configuration = read(4);
  if (objectType === 0 || sampleRate === 0 || bit > config.length * 8) return null;
  return { sampleRate, channels: configuration === 7 ? CHANNELS_OF_CONFIGURATION_7 : configuration };
}

/** Shape told by an Opus ID header (RFC 7845 §5.1); null when it is none. Opus always decodes at 48 kHz. */
export function opusHeadShape(head: Uint8Array): AudioShape | null {
  if (head.length < OPUS_HEAD_LENGTH || Buffer.from(head.subarray(0, 8)).toString('latin1') !== OPUS_MAGIC) return null;
  return { sampleRate: OPUS_SAMPLE_RATE, channels: head[9] ?? 0 };
}

/** An Opus ID header for publishers that send none: no pre-skip, no gain, mapping family 0. */
export function buildOpusHead(channels: number): Buffer {
  const head = Buffer.alloc(OPUS_HEAD_LENGTH);
  head.write(OPUS_MAGIC, 0, 'latin1');
  head.writeUInt8(1, 8);
  head.writeUInt8(channels, 9);
  head.writeUInt32LE(OPUS_SAMPLE_RATE, 12);
  return head;
}
