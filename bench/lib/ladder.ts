/** Ladders of encodes of the benches' sources, and the check that their output decodes. */
import { describeAudio, describeVideo } from '../../src/codecs/describe.ts';
import type { EncodedPacket, EncodeRequest } from '../../src/core/transcoding.ts';
import { AudioCodec, VideoCodec } from '../../src/media/codec.ts';
import type { Packet } from '../../src/media/packet.ts';
import { MPEG_90K, toSeconds } from '../../src/media/timebase.ts';
import type { AudioTrack, VideoTrack } from '../../src/media/track.ts';
import { audioTrack, videoTrack } from '../../test/fakes/synthetic-media.ts';
import { audioConfig, TranscodeRun, videoConfig } from '../../test/fakes/transcode-run.ts';
import { decodeComplaints, ffprobe } from '../../test/support/ffprobe.ts';
import { isAudioFrame, isVideoFrame, readFlv, SOURCE_FPS } from './source.ts';

const VIDEO = 0;
const AUDIO = 1;
const FRAME = MPEG_90K.den / SOURCE_FPS;
const AAC_FRAME = 1024;

/** The first seconds of a source in the router's form. */
export interface Media {
  readonly video: VideoTrack;
  readonly audio: AudioTrack;
  readonly packets: readonly Packet[];
}

export function readMedia(file: string, seconds: number): Media {
  const tags = readFlv(file).filter(({ timestamp }) => timestamp < seconds * 1000);
  const avcc = tags.find(({ type, data }) => type === 9 && data[1] === 0)?.data.subarray(5);
  const config = tags.find(({ type, data }) => type === 8 && data[1] === 0)?.data.subarray(2);
  if (avcc === undefined || config === undefined) throw new Error('the source has no configuration');
  const { width, height, codecString } = describeVideo(VideoCodec.H264, avcc);
  const video = videoTrack({ id: VIDEO, codec: VideoCodec.H264, config: avcc, width, height, codecString });
  const { sampleRate, channels, codecString: audioString } = describeAudio(AudioCodec.AAC, config);
  const timebase = { num: 1, den: sampleRate };
  const audio = audioTrack({ id: AUDIO, config, sampleRate, channels, codecString: audioString, timebase });
  const packets: Packet[] = [];
  let samples = 0;
  let frames = 0;
  for (const tag of tags) {
    if (isVideoFrame(tag)) {
      // Starts at 0: encodes have keyframes on whole seconds, which then coincide with the source's.
      const pts = frames * FRAME;
      frames += 1;
      const keyframe = (tag.data[0] ?? 0) >> 4 === 1;
      packets.push({ track: video, pts, dts: pts, duration: FRAME, keyframe, data: tag.data.subarray(5) });
    } else if (isAudioFrame(tag)) {
      packets.push({ track: audio, pts: samples, dts: samples, duration: AAC_FRAME, keyframe: true, data: tag.data.subarray(2) });
      samples += AAC_FRAME;
    }
  }
  return { video, audio, packets };
}

export interface Rung {
  readonly id: number;
  readonly width: number;
  readonly height: number;
  readonly bitrate: number;
}

export interface AudioRung {
  readonly id: number;
  readonly codec: 'aac' | 'opus';
  readonly bitrate: number;
}

export interface Ladder {
  readonly rungs: readonly Rung[];
  readonly audios: readonly AudioRung[];
}

export function encodesOf({ rungs, audios }: Ladder): EncodeRequest[] {
  const videos = rungs.map(({ id, width, height, bitrate }): EncodeRequest => {
    const encode = videoConfig({ width, height, bitrate, keyFrameInterval: SOURCE_FPS });
    return { id, sourceId: VIDEO, type: 'video', encode };
  });
  return [
    ...videos,
    ...audios.map(
      ({ id, codec, bitrate }): EncodeRequest => ({ id, sourceId: AUDIO, type: 'audio', encode: audioConfig({ codec, bitrate }) }),
    ),
  ];
}

/** Throws unless every output of the run decodes, in its size, up to `seconds`. */
export function judge(run: TranscodeRun, { rungs, audios }: Ladder, seconds: number): void {
  for (const { id, width, height } of rungs) {
    const file = run.file(id);
    const { streams, packets } = ffprobe(file);
    const complaints = decodeComplaints(file);
    const fits = streams[0]?.width === width && streams[0]?.height === height && packets.length >= seconds * SOURCE_FPS - 1;
    if (!fits || complaints.length > 0) throw new Error(`the ${height}p rendition is not right: ${complaints.join('; ')}`);
  }
  for (const { id, codec } of audios) {
    const complaints = decodeComplaints(run.file(id));
    if (run.end(id) < seconds - 0.3 || complaints.length > 0)
      throw new Error(`the ${codec} audio is not right: ends at ${run.end(id)} of ${seconds} s; ${complaints.join('; ')}`);
  }
}

/** A run that is fed in real time, and records the delay of each frame. */
export class PacedRun extends TranscodeRun {
  /** Delays of all encodes' frames from input to output of the transcoder, ms. */
  readonly delays: number[] = [];
  readonly #sentAt = new Map<number, number>();

  override onPacket(packet: EncodedPacket): void {
    super.onPacket(packet);
    const sentAt = this.#sentAt.get(packet.pts);
    if (sentAt !== undefined && this.track(packet.encodeId).type === 'video') this.delays.push(performance.now() - sentAt);
  }

  /** Passes `packets` on at their times; resolves after the last one. `startAt`: a value of `performance.now()`. */
  async play(packets: readonly Packet[], startAt: number): Promise<void> {
    for (const packet of packets) {
      const wait = startAt + toSeconds(packet.dts, packet.track.timebase) * 1000 - performance.now();
      if (wait > 1) await new Promise((resolve) => setTimeout(resolve, wait));
      if (packet.track.type === 'video') this.#sentAt.set(packet.pts, performance.now());
      this.session.push(packet);
    }
  }
}
