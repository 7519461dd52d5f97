/** The contract of a transcoder: it makes the encodes of an inbound stream in a process that may crash. */
import type { EncodeAudioConfig, EncodeImageConfig, EncodeVideoConfig } from '../config/index.ts';
import type { Packet } from '../media/packet.ts';
import type { Track } from '../media/track.ts';
import type { StreamAddress } from './stream-address.ts';

/** Where an image lies on a frame: sums over `overlayNames`, pixels from the upper left. */
export interface OverlayPlace {
  readonly left: string;
  readonly top: string;
  readonly width: string;
  readonly height: string;
  /** From 0, which is not to be seen, to 1. */
  readonly opacity: number;
}

/** A PNG or JPEG over the frames of an encode. */
export interface OverlayRequest extends OverlayPlace {
  /** For the log. */
  readonly url: string;
  readonly image: Uint8Array;
  /** Equal for equal images. */
  readonly imageId: string;
}

/** A size in pixels. */
export interface PixelSize {
  readonly width: number;
  readonly height: number;
}

/** The names in the sums of an `OverlayPlace`: of the frame, and of the image as it is (for its size) or as it will be (for its place). */
export function overlayNames(frame: PixelSize, image: PixelSize): Record<string, number> {
  return { MAIN_W: frame.width, MAIN_H: frame.height, OVERLAY_W: image.width, OVERLAY_H: image.height };
}

/** One encode to make of one inbound track. */
export type EncodeRequest = {
  /** Number of the encode, unique within its job; packets and tracks come back under it. */
  readonly id: number;
  /** Id of its inbound track. */
  readonly sourceId: number;
  /** Id of the first outbound track made of the encode; names its queue. Default: `id`. */
  readonly trackId?: number;
} & (
  | {
      readonly type: 'video';
      readonly encode: EncodeVideoConfig;
      /** From below to above; none when absent. */
      readonly overlays?: readonly OverlayRequest[];
    }
  | { readonly type: 'audio'; readonly encode: EncodeAudioConfig }
  | { readonly type: 'image'; readonly encode: EncodeImageConfig }
);

/** An encoded packet; timestamps lie on the timeline of the inbound stream. */
export interface EncodedPacket {
  readonly encodeId: number;
  readonly pts: number;
  readonly dts: number;
  readonly duration: number;
  readonly keyframe: boolean;
  readonly data: Uint8Array;
}

/** The failing stage of an encode: before it began (`decoder` …), or under way (`decoding` …). */
export type EncodeFault = 'decoder' | 'filter' | 'encoder' | 'decoding' | 'filtering' | 'encoding';

/** Errors in a row, and the time from the first to the last of them. */
export interface EncodeErrors {
  readonly count: number;
  readonly withinMs: number;
}

/** Details of a fault, for programs. */
export interface EncodeFaultFacts {
  /** The codec module that was at work, or was tried last, by the name that profiles have for it; absent where none was. */
  readonly module?: string;
  /** Absent where nothing was counted. */
  readonly errors?: EncodeErrors;
}

/** Notified of the state of a job's encodes, until its session is closed. */
export interface TranscodeListener {
  /**
   * The parameters of an encode are known, or have changed (input size changed, encoder restarted with
   * another configuration). Called before the first packet that needs them. `id` of the track is the
   * encode's id, `bypass` is false, `variantName` the encode's name.
   */
  onTrack(encodeId: number, track: Track): void;
  onPacket(packet: EncodedPacket): void;
  /**
   * An encode cannot be made at all (no encoder, parameters refused); the others continue. `reason` is for the log, `fault` for programs.
   */
  onEncodeFailed(encodeId: number, reason: string, fault: EncodeFault, facts?: EncodeFaultFacts): void;
}

/** The encodes of one inbound stream, wherever they run. */
export interface TranscodeSession {
  /** Tracks of the inbound stream as they are now; before the first packet, and whenever parameters change. */
  setTracks(tracks: readonly Track[]): void;
  /** Takes a packet of an inbound track. Never blocks and never throws: when the transcoder is late, packets are dropped to the next keyframe and counted. */
  push(packet: Packet): void;
  /** Asks for a keyframe of a video encode: as soon as possible, or at `pts` (1/90000 s of the inbound stream). */
  requestKeyframe(encodeId: number, pts?: number): void;
  /** Ends all encodes. Idempotent. */
  close(): void;
}

/** Opens jobs; the caller closes the sessions. A process that dies under a job is started again behind this interface. */
export interface Transcoder {
  open(
    job: StreamAddress & {
      readonly encodes: readonly EncodeRequest[];
      /** `outputProfiles.decodes`; 0 lets the decoder choose. */
      readonly decoderThreads: number;
      readonly onlyKeyframes: boolean;
      /** The source is a file, whose reader waits for the output: no packet is dropped for its age. Default: false. */
      readonly readAhead?: boolean;
      /**
       * Inbound video tracks that are also bypassed to viewers: their encodes have keyframes wherever the source has one, so that viewers
       * can be switched between all of them. None when absent.
       */
      readonly bypassedSources?: readonly number[];
      /** Hardware encoders, off when absent; `modules` are tried in order; empty: all modules of the machine. */
      readonly hardware?: { readonly enable: boolean; readonly modules: string };
      /** The same for decoders. */
      readonly hardwareDecoding?: { readonly enable: boolean; readonly modules: string };
    },
    listener: TranscodeListener,
  ): TranscodeSession;
}
