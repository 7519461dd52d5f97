/** How long the frames of audio are: transport streams do not say, and a splice has to know. */
import { describeAudio } from '../codecs/describe.ts';
import { parseMpegAudioHeader } from '../codecs/mp3/frame-header.ts';
import { OPUS_SAMPLE_RATE } from '../codecs/opus/opus-head.ts';
import { opusPacketSamples } from '../codecs/opus/packet.ts';
import type { SourceAudioTrack } from '../core/ingest.ts';
import { AudioCodec } from '../media/codec.ts';

const USUAL_SAMPLES = 1024;
const USUAL_RATE = 48_000;

/** Seconds of each frame of `track`, where all are as long; null where each one tells. Throws ProtocolError for a configuration that cannot be read. */
export function constantFrameSeconds({ codec, config, sampleRate }: SourceAudioTrack): number | null {
  if (codec !== AudioCodec.AAC) return null;
  if (config === null) return USUAL_SAMPLES / (sampleRate || USUAL_RATE);
  const described = describeAudio(codec, config);
  return described.samplesPerFrame / described.sampleRate;
}

/** Seconds of the frame `data` of `track`. Throws ProtocolError when it cannot be read. */
export function audioFrameSeconds(track: SourceAudioTrack, data: Uint8Array): number {
  const { codec, sampleRate, channels } = track;
  switch (codec) {
    case AudioCodec.OPUS:
      return opusPacketSamples(data) / OPUS_SAMPLE_RATE;
    case AudioCodec.MP3: {
      const header = parseMpegAudioHeader(data);
      return header.samplesPerFrame / header.sampleRate;
    }
    case AudioCodec.AAC:
      return constantFrameSeconds(track) ?? 0;
    case AudioCodec.PCMU:
    case AudioCodec.PCMA:
      return data.length / (channels || 1) / (sampleRate || USUAL_RATE);
  }
}
