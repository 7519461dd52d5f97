/** How long the frames of audio are: transport streams do not say, and a splice has to know. */
import { describeAudio } from '../codecs/describe.ts';
import { parseMpegAudioHeader } from '../codecs/mp3/frame-header.ts';
import { OPUS_SAMPLE_RATE } from '../codecs/opus/opus-head.ts';
import { opusPacketSamples } from '../codecs/opus/packet.ts';
import type { SourceAudioTrack } from '../core/ingest.ts';
import { AudioCodec } from '../media/codec.ts';

const USUAL_SAMPLES = 1024;
const USUAL_RATE = 48_000;

/** Seconds of the frame `data` of `track`. Throws ProtocolError when it cannot be read. */
export function audioFrameSeconds({ codec, config, sampleRate, channels }: SourceAudioTrack, data: Uint8Array): number {
  switch (codec) {
    case AudioCodec.OPUS:
      return opusPacketSamples(data) / OPUS_SAMPLE_RATE;
    case AudioCodec.MP3: {
      const header = parseMpegAudioHeader(data);
      return header.samplesPerFrame / header.sampleRate;
    }
    case AudioCodec.AAC: {
      if (config === null) return USUAL_SAMPLES / (sampleRate || USUAL_RATE);
      const described = describeAudio(codec, config);
      return described.samplesPerFrame / described.sampleRate;
    }
    case AudioCodec.PCMU:
    case AudioCodec.PCMA:
      return data.length / (channels || 1) / (sampleRate || USUAL_RATE);
  }
}
