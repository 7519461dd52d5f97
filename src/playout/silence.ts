/** Silent frames, built from the formats of the codecs: a channel sends them where an item has no audio. */
import { buildAudioSpecificConfig, parseAudioSpecificConfig } from '../codecs/aac/audio-specific-config.ts';
import { parseOpusHead } from '../codecs/opus/opus-head.ts';
import type { SourceAudioTrack } from '../core/ingest.ts';
import { AudioCodec, BitstreamFormat } from '../media/codec.ts';
import { MPEG_90K } from '../media/timebase.ts';
import { BitWriter } from '../util/bit-writer.ts';
import { ProtocolError } from '../util/protocol-error.ts';
import { audioFrameSeconds } from './audio-frames.ts';

const RATE = 48_000;
const STEREO = 2;
/** Elements of a raw data block, ISO/IEC 14496-3 table 4.71. */
const AAC_SINGLE = 0;
const AAC_PAIR = 1;
const AAC_LFE = 3;
const AAC_END = 7;
/** By channel configuration, table 1.19. */
const AAC_ELEMENTS: readonly (readonly number[])[] = [
  [],
  [AAC_SINGLE],
  [AAC_PAIR],
  [AAC_SINGLE, AAC_PAIR],
  [AAC_SINGLE, AAC_PAIR, AAC_SINGLE],
  [AAC_SINGLE, AAC_PAIR, AAC_PAIR],
  [AAC_SINGLE, AAC_PAIR, AAC_PAIR, AAC_LFE],
  [AAC_SINGLE, AAC_PAIR, AAC_PAIR, AAC_PAIR, AAC_LFE],
];
/** CELT, full band, 20 ms, one frame of no bytes (RFC 6716 §3.1): lost on purpose, which decoders conceal by silence. */
const OPUS_TOC = 0xf8;
const OPUS_STEREO = 0x04;
/** The following bytes make the range decoder read the silence flag (§4.3). */
const OPUS_SILENCE = [0xff, 0xfe] as const;
/** MPEG-1 layer III without CRC; a header byte of 64 kbit/s, and all zeros behind it: no bits of main data. */
const MP3_HEADER = [0xff, 0xfb] as const;
const MP3_64K = 5;
const MP3_RATES: readonly number[] = [44_100, 48_000, 32_000];
const MP3_MONO = 0xc0;

/** A frame of silence and how long it is. */
export interface SilentFrame {
  readonly data: Uint8Array;
  readonly ms: number;
}

/** Announced audio of a channel that had none yet. */
export const SILENT_TRACK: SourceAudioTrack = {
  type: 'audio',
  id: 0,
  timebase: MPEG_90K,
  bitrateConf: 0,
  codec: AudioCodec.AAC,
  format: BitstreamFormat.AAC_RAW,
  config: buildAudioSpecificConfig({ objectType: 2, sampleRate: RATE, channelConfiguration: STEREO }),
  sampleRate: RATE,
  channels: STEREO,
};

/** Silence as decoders of `track` take it; null when there is none that needs no encoder. */
export function silentFrame(track: SourceAudioTrack): SilentFrame | null {
  try {
    const data = silentData(track);
    return data === null ? null : { data, ms: audioFrameSeconds(track, data) * 1000 };
  } catch (error) {
    if (error instanceof ProtocolError) return null;
    throw error;
  }
}

function silentData({ codec, config, sampleRate, channels }: SourceAudioTrack): Uint8Array | null {
  switch (codec) {
    case AudioCodec.AAC: {
      const configuration = config === null ? channels : parseAudioSpecificConfig(config).channelConfiguration;
      return aacSilence(configuration);
    }
    case AudioCodec.OPUS: {
      const stereo = (config === null ? channels : parseOpusHead(config).channels) > 1;
      return new Uint8Array([OPUS_TOC | (stereo ? OPUS_STEREO : 0), ...OPUS_SILENCE]);
    }
    case AudioCodec.MP3:
      return mp3Silence(sampleRate, channels);
    case AudioCodec.PCMU:
    case AudioCodec.PCMA:
      return null;
  }
}

/** raw_data_block (§4.4.2.1) of elements without a single spectral line. */
function aacSilence(configuration: number): Uint8Array | null {
  const elements = AAC_ELEMENTS[configuration] ?? [];
  if (elements.length === 0) return null;
  const writer = new BitWriter();
  const tags = [0, 0, 0, 0];
  for (const element of elements) {
    writer.bits(element, 3).bits(tags[element] ?? 0, 4);
    tags[element] = (tags[element] ?? 0) + 1;
    // Each channel of a pair has a window of its own: common_window is 0.
    if (element === AAC_PAIR) writer.bits(0, 1);
    for (let channel = element === AAC_PAIR ? 2 : 1; channel > 0; channel -= 1) writeSilentChannel(writer);
  }
  return writer.bits(AAC_END, 3).finish();
}

/** individual_channel_stream: a long window whose max_sfb is 0, so that no section or scale factor follows. */
function writeSilentChannel(writer: BitWriter): void {
  // global_gain, ics_info, then neither pulses, noise shaping nor gain control.
  writer.bits(0, 8).bits(0, 11).bits(0, 3);
}

function mp3Silence(sampleRate: number, channels: number): Uint8Array | null {
  const rate = MP3_RATES.indexOf(sampleRate);
  if (rate < 0) return null;
  const frame = new Uint8Array(Math.floor((144 * 64_000) / sampleRate));
  frame.set([...MP3_HEADER, (MP3_64K << 4) | (rate << 2), channels === 1 ? MP3_MONO : 0]);
  return frame;
}
