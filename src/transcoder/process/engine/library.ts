/**
 * The codec library. It is loaded in transcoder processes only, by the files of this folder: a wrong call here ends the process, not with an
 * exception. The rules that keep it alive: one operation at a time per object, nothing is closed while an operation is under way (`await` it
 * first), views into frames and packets do not outlive the callback.
 */
import * as C from 'node-av/constants';
import { FFmpegError, type Frame, getFFmpegInfo, Log } from 'node-av/lib';
import { AudioCodec, VideoCodec } from '../../../media/codec.ts';

/** A decoded frame or block of samples. The holder returns it to the pool. */
export type RawFrame = Frame;

/** The library refused something; the text is for the log. */
export class EngineError extends Error {
  override readonly name = 'EngineError';
}

/** EAGAIN: the library needs more input before it has output. */
export const AGAIN = -11;
/** A frame without a time (AV_NOPTS_VALUE). */
export const NO_TIMESTAMP = -(2n ** 63n);

/** The library's codecs by ours. */
export const CODEC_IDS: Readonly<Record<VideoCodec | AudioCodec, C.AVCodecID>> = {
  [VideoCodec.H264]: C.AV_CODEC_ID_H264,
  [VideoCodec.H265]: C.AV_CODEC_ID_HEVC,
  [VideoCodec.VP8]: C.AV_CODEC_ID_VP8,
  [VideoCodec.VP9]: C.AV_CODEC_ID_VP9,
  [VideoCodec.AV1]: C.AV_CODEC_ID_AV1,
  [VideoCodec.JPEG]: C.AV_CODEC_ID_MJPEG,
  [VideoCodec.PNG]: C.AV_CODEC_ID_PNG,
  [VideoCodec.WEBP]: C.AV_CODEC_ID_WEBP,
  [AudioCodec.AAC]: C.AV_CODEC_ID_AAC,
  [AudioCodec.OPUS]: C.AV_CODEC_ID_OPUS,
  [AudioCodec.MP3]: C.AV_CODEC_ID_MP3,
  [AudioCodec.PCMU]: C.AV_CODEC_ID_PCM_MULAW,
  [AudioCodec.PCMA]: C.AV_CODEC_ID_PCM_ALAW,
};

/** Silences the library's own log, which goes to stderr line by line for every bad bit of a stream. */
export function silenceLibrary(): void {
  Log.setLevel(C.AV_LOG_FATAL);
}

/** The version of FFmpeg that is loaded, as FFmpeg writes it. */
export function libraryVersion(): string {
  return getFFmpegInfo().version;
}

/** Throws EngineError for a negative result code of the library. */
export function throwIfFailed(code: number, what: string): void {
  if (code < 0) throw new EngineError(`${what}: ${FFmpegError.strerror(code)}`);
}
