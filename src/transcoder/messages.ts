/** The rare messages between the server and a transcoder process: JSON, where packets are binary. */
import type { SourceAudioTrack, SourceVideoTrack } from '../core/ingest.ts';
import type { EncodeFaultFacts, EncodeRequest, OverlayRequest } from '../core/transcoding.ts';
import type { AudioCodec, VideoCodec } from '../media/codec.ts';
import type { Timebase } from '../media/timebase.ts';
import type { AudioTrack, VideoTrack } from '../media/track.ts';
import type { QueueFigures } from '../util/queue-gauge.ts';

/** Hardware modules that a job may use. */
export interface HardwareChoice {
  readonly enable: boolean;
  /** `nv:0,qsv`: modules to try first, in order; empty tries all that were found. */
  readonly modules: string;
}

type VideoRequest = Extract<EncodeRequest, { type: 'video' }>;

/** An encode whose images are elsewhere in the message. */
export type EncodeMessage =
  | Exclude<EncodeRequest, { type: 'video' }>
  | (Omit<VideoRequest, 'overlays'> & { readonly overlays?: readonly Omit<OverlayRequest, 'image'>[] });

/** OPEN. */
export interface OpenMessage {
  readonly encodes: readonly EncodeMessage[];
  /** Images of the overlays, in base64, by overlay id: renditions of a stream have the same ones. */
  readonly images: Readonly<Record<string, string>>;
  readonly decoderThreads: number;
  /** Inbound video tracks whose keyframes their encodes follow. */
  readonly bypassedSources: readonly number[];
  readonly hardware: HardwareChoice;
  readonly hardwareDecoding: HardwareChoice;
}

/** SOURCE: parameters for a decoder. */
export type SourceMessage =
  | {
      readonly type: 'video';
      readonly codec: VideoCodec;
      readonly width: number;
      readonly height: number;
      /** Frames per second; 0 when unknown. */
      readonly framerate: number;
      readonly timebase: Timebase;
      /** Base64; null for codecs without. */
      readonly config: string | null;
    }
  | {
      readonly type: 'audio';
      readonly codec: AudioCodec;
      readonly sampleRate: number;
      readonly channels: number;
      readonly timebase: Timebase;
      readonly config: string | null;
    };

/** TRACK: the output track of an encoder. */
export type TrackMessage =
  | {
      readonly type: 'video';
      readonly codec: VideoCodec;
      readonly width: number;
      readonly height: number;
      readonly framerate: number;
      readonly config: string | null;
      readonly codecString: string;
      readonly bitrate: number;
    }
  | {
      readonly type: 'audio';
      readonly codec: AudioCodec;
      readonly sampleRate: number;
      readonly channels: number;
      readonly config: string | null;
      readonly codecString: string;
      readonly bitrate: number;
    };

/** HELLO. */
export interface HelloMessage {
  /** Version of the codec library. */
  readonly version: string;
  /** Encoders and decoders of the catalogue that work on this machine, by the library's names. */
  readonly encoders: readonly string[];
  readonly decoders: readonly string[];
}

/** The parts of an encode. */
export type EncodePart = 'decoder' | 'filter' | 'encoder';

/** FAILED: reason of an encode's failure, for the log. */
export interface FailedMessage extends EncodeFaultFacts {
  readonly reason: string;
  /** The failed part of an encode. */
  readonly part: EncodePart;
}

/** NOTICE: a line for the log of the server. */
export interface NoticeMessage {
  readonly level: 'info' | 'warn';
  readonly message: string;
}

/** A queue inside the child. */
export interface ChildQueue extends QueueFigures {
  readonly job: number;
  /** Last part of its URN: `filter_video`, `encoder_h264_2`. */
  readonly role: string;
  readonly type: string;
  readonly threshold: number;
}

/** STATUS. */
export interface StatusMessage {
  /** Codecs at work, by the library's name. */
  readonly encoders: Readonly<Record<string, number>>;
  readonly decoders: Readonly<Record<string, number>>;
  readonly queues: readonly ChildQueue[];
}

/** Encodes as OPEN has them. */
export function encodeMessages(encodes: readonly EncodeRequest[]): Pick<OpenMessage, 'encodes' | 'images'> {
  const images: Record<string, string> = {};
  const messages = encodes.map((request): EncodeMessage => {
    if (request.type !== 'video' || request.overlays === undefined) return request;
    const overlays = request.overlays.map(({ image, ...overlay }) => {
      images[overlay.imageId] ??= Buffer.from(image).toString('base64');
      return overlay;
    });
    return { ...request, overlays };
  });
  return { encodes: messages, images };
}

/** Undoes `encodeMessages`. */
export function encodeRequests({ encodes, images }: Pick<OpenMessage, 'encodes' | 'images'>): EncodeRequest[] {
  const read = new Map(Object.entries(images).map(([id, image]) => [id, new Uint8Array(Buffer.from(image, 'base64'))]));
  return encodes.map((message): EncodeRequest => {
    if (message.type !== 'video') return message;
    const { overlays, ...rest } = message;
    if (overlays === undefined) return rest;
    return { ...rest, overlays: overlays.flatMap((overlay) => imaged(overlay, read.get(overlay.imageId))) };
  });
}

function imaged(overlay: Omit<OverlayRequest, 'image'>, image: Uint8Array | undefined): OverlayRequest[] {
  return image === undefined ? [] : [{ ...overlay, image }];
}

/** An inbound track as the child sees it. */
export function sourceMessage(track: VideoTrack | AudioTrack): SourceMessage {
  const config = track.config === null ? null : Buffer.from(track.config).toString('base64');
  const { timebase } = track;
  return track.type === 'video'
    ? { type: 'video', codec: track.codec, width: track.width, height: track.height, framerate: track.framerateConf, timebase, config }
    : { type: 'audio', codec: track.codec, sampleRate: track.sampleRate, channels: track.channels, timebase, config };
}

/** Undoes the base64 of a `config`. */
export function configBytes(config: string | null): Uint8Array | null {
  return config === null ? null : new Uint8Array(Buffer.from(config, 'base64'));
}

/** A track of a file; `config` in base64. */
export type FileTrackMessage =
  | (Omit<SourceVideoTrack, 'config'> & { readonly config: string | null })
  | (Omit<SourceAudioTrack, 'config'> & { readonly config: string | null });

/** Maximum of video packets of one inbound track in flight to its decoder. */
export const VIDEO_WINDOW = 8;
/** Maximum of audio packets of one inbound track in flight to its decoder. */
export const AUDIO_WINDOW = 32;

/** Maximum of media that a file process sends ahead of the server's acknowledgements. */
export const READ_WINDOW = { packets: 256, bytes: 8 * 1024 * 1024 } as const;

/** FILE: contents of a media file. */
export interface FileMessage {
  /** By the library's name: `matroska,webm`. */
  readonly container: string;
  /** Time of the first frame of video, or of audio where there is none, seconds in the time of the packets. */
  readonly start: number;
  /** From there to the end, seconds; null when the file does not tell. */
  readonly length: number | null;
  readonly tracks: readonly FileTrackMessage[];
  /** Conversions of tracks that cannot be passed on unchanged, for the log. */
  readonly changed: readonly string[];
  /** Omitted tracks. */
  readonly omitted: readonly string[];
}
