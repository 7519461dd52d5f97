/** The tracks of one publication, from metadata and sequence headers. */
import { type AudioDescription, describeAudio } from '../../codecs/describe.ts';
import { buildOpusHead } from '../../codecs/opus/opus-head.ts';
import type { FlvMetadata } from '../../containers/flv/metadata.ts';
import type { SourceTrack } from '../../core/ingest.ts';
import { AudioCodec, BitstreamFormat, VideoCodec } from '../../media/codec.ts';
import { MILLISECONDS } from '../../media/timebase.ts';
import { ProtocolError } from '../../util/protocol-error.ts';

/** Ids of the tracks of every publisher; ids of the further tracks of a multitrack publisher follow the bases. */
const VIDEO_TRACK_ID = 0;
const AUDIO_TRACK_ID = 1;
const FURTHER_VIDEO_BASE = 100;
const FURTHER_AUDIO_BASE = 200;
const MAX_WIRE_ID = 99;
const DEFAULT_CHANNELS = 2;

interface VideoState {
  readonly type: 'video';
  readonly id: number;
  readonly wireId: number;
  codec: VideoCodec;
  config: Uint8Array | null;
  ready: boolean;
}

/** An audio track of the publication. */
export interface AudioState {
  readonly type: 'audio';
  readonly id: number;
  readonly wireId: number;
  codec: AudioCodec;
  config: Uint8Array | null;
  ready: boolean;
  /** From a multichannel message; 0 without one. */
  channels: number;
}

/** A track under its source id. `ready` once packets of it can be used. */
export type TrackState = VideoState | AudioState;

/** Keeps the state of each wire track, and knows the tracks to wait for. */
export class SourceTracks {
  readonly #limit: number;
  readonly #video = new Map<number, VideoState>();
  readonly #audio = new Map<number, AudioState>();
  #metadata: FlvMetadata | null = null;

  constructor(options: { limit: number }) {
    this.#limit = options.limit;
  }

  /** Takes the latest description. */
  describe(metadata: FlvMetadata): void {
    this.#metadata = metadata;
  }

  /**
   * Ids of the expected tracks, in order: announced tracks and usable tracks. Without an announcement one video and one audio track are
   * expected.
   */
  get expected(): number[] {
    const video = [...(this.#metadata?.video.keys() ?? [])].filter(isUsableWireId).map(videoId);
    const audio = [...(this.#metadata?.audio.keys() ?? [])].filter(isUsableWireId).map(audioId);
    const announced = video.length + audio.length === 0 ? [VIDEO_TRACK_ID, AUDIO_TRACK_ID] : [...video, ...audio];
    const ready = this.#readyStates().map(({ id }) => id);
    return [...new Set([...announced, ...ready])].sort((a, b) => a - b);
  }

  /** The track of a video unit, whatever its present codec; null if there is no room for it. */
  video(wireId: number, codec: VideoCodec): VideoState | null {
    const known = this.#video.get(wireId);
    if (known !== undefined) return known;
    if (!this.#hasRoom(wireId)) return null;
    const state: VideoState = { type: 'video', id: videoId(wireId), wireId, codec, config: null, ready: false };
    this.#video.set(wireId, state);
    return state;
  }

  /** The track of an audio unit, whatever its present codec; null if there is no room for it. */
  audio(wireId: number, codec: AudioCodec): AudioState | null {
    const known = this.#audio.get(wireId);
    if (known !== undefined) return known;
    if (!this.#hasRoom(wireId)) return null;
    const state: AudioState = { type: 'audio', id: audioId(wireId), wireId, codec, config: null, ready: false, channels: 0 };
    this.#audio.set(wireId, state);
    return state;
  }

  /** All usable tracks, in the form of the core. */
  list(): SourceTrack[] {
    return this.#readyStates().map((state) => this.source(state));
  }

  /** One track, in the form of the core. */
  source(state: TrackState): SourceTrack {
    return state.type === 'video' ? this.#videoTrack(state) : this.#audioTrack(state);
  }

  #readyStates(): TrackState[] {
    return [...this.#video.values(), ...this.#audio.values()].filter((state) => state.ready);
  }

  #hasRoom(wireId: number): boolean {
    return isUsableWireId(wireId) && this.#video.size + this.#audio.size < this.#limit;
  }

  #videoTrack(state: VideoState): SourceTrack {
    const told = this.#metadata?.video.get(state.wireId);
    return {
      type: 'video',
      id: state.id,
      timebase: MILLISECONDS,
      codec: state.codec,
      format: videoFormat(state.codec),
      config: state.config,
      bitrateConf: told?.bitrate ?? 0,
      framerateConf: told?.framerate ?? 0,
      width: told?.width ?? 0,
      height: told?.height ?? 0,
    };
  }

  #audioTrack(state: AudioState): SourceTrack {
    const told = this.#metadata?.audio.get(state.wireId);
    const config =
      state.codec === AudioCodec.OPUS
        ? (state.config ?? buildOpusHead({ channels: state.channels || told?.channels || DEFAULT_CHANNELS }))
        : state.config;
    const shape = config === null ? null : audioShape(state.codec, config);
    return {
      type: 'audio',
      id: state.id,
      timebase: MILLISECONDS,
      codec: state.codec,
      format: state.codec === AudioCodec.AAC ? BitstreamFormat.AAC_RAW : BitstreamFormat.RAW,
      config,
      bitrateConf: told?.bitrate ?? 0,
      sampleRate: shape?.sampleRate || told?.sampleRate || 0,
      channels: shape?.channels || state.channels || told?.channels || 0,
    };
  }
}

/** Codecs whose packets mean nothing before a sequence header came. */
export function needsConfig(codec: VideoCodec | AudioCodec): boolean {
  return codec === VideoCodec.H264 || codec === VideoCodec.H265 || codec === AudioCodec.AAC;
}

/** Makes a track usable with these parameters. */
export function adopt<State extends TrackState>(state: State, codec: State['codec'], config: Uint8Array | null): void {
  state.codec = codec;
  state.config = config;
  state.ready = true;
}

function videoId(wireId: number): number {
  return wireId === 0 ? VIDEO_TRACK_ID : FURTHER_VIDEO_BASE + wireId;
}

function audioId(wireId: number): number {
  return wireId === 0 ? AUDIO_TRACK_ID : FURTHER_AUDIO_BASE + wireId;
}

function isUsableWireId(wireId: number): boolean {
  return wireId <= MAX_WIRE_ID;
}

function videoFormat(codec: VideoCodec): BitstreamFormat {
  if (codec === VideoCodec.H264 || codec === VideoCodec.H265) return BitstreamFormat.LENGTH_PREFIXED;
  return codec === VideoCodec.AV1 ? BitstreamFormat.OBU : BitstreamFormat.RAW;
}

/** Null if the sequence header cannot be read: then the metadata counts, and the router judges the header. */
function audioShape(codec: AudioCodec, config: Uint8Array): AudioDescription | null {
  try {
    return describeAudio(codec, config);
  } catch (error) {
    if (error instanceof ProtocolError) return null;
    throw error;
  }
}
