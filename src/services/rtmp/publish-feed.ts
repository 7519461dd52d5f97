/** Turns the media messages of one publication into source tracks and packets. */
import { parseAudioTag } from '../../containers/flv/audio-tag.ts';
import { FlvSoundFormat } from '../../containers/flv/fourcc.ts';
import type { FlvMetadata } from '../../containers/flv/metadata.ts';
import { parseVideoTag } from '../../containers/flv/video-tag.ts';
import type { IngestStream, SourcePacket, SourceTrack } from '../../core/ingest.ts';
import { StreamStarter } from '../../ingest/stream-starter.ts';
import { VideoCodec } from '../../media/codec.ts';
import { ProtocolError } from '../../util/protocol-error.ts';
import type { RtmpLimits, RtmpTimeouts } from './rtmp-options.ts';
import { type AudioState, adopt, needsConfig, SourceTracks, type TrackState } from './source-tracks.ts';
import { TimestampUnwrapper } from './timestamp-unwrapper.ts';

const MIN_CONFIG = 2;
/** Limit of unsupported codecs that are logged for a publisher: more are deliberate. */
const MAX_TOLD_CODECS = 8;
/** Header of an AV1 temporal delimiter, which means nothing in a packet. */
const AV1_TEMPORAL_DELIMITER = 0x12;
const NONE: ReadonlySet<number> = new Set();
/** Flag in the first byte of an enhanced video tag (IsExHeader). */
const EX_VIDEO = 0x80;
/** Name of the feature in error texts about media that needs it while it is off. */
export const ENHANCED = 'Enhanced RTMP';

/** Counters of packets that were not passed on. */
export interface PublishFeedCounters {
  /** Audio and video messages, usable or not. */
  readonly messages: number;
  /** Truncated or malformed tags. */
  readonly malformed: number;
  /** Tags of unsupported codecs, and of tracks beyond the limit. */
  readonly unsupported: number;
  /** Frames of tracks whose sequence header had not come. */
  readonly undecodable: number;
  /** The first malformed or unsupported tag; null without one. */
  readonly firstFault: string | null;
}

/**
 * Reads the tags of one publication. A `StreamStarter` holds its packets until the parameters of all expected tracks are known. The core
 * closes the stream; the feed needs no closing.
 */
export class PublishFeed implements PublishFeedCounters {
  messages = 0;
  malformed = 0;
  unsupported = 0;
  firstFault: string | null = null;
  readonly #starter: StreamStarter;
  readonly #tracks: SourceTracks;
  readonly #time = new TimestampUnwrapper();
  /** Frames of tracks whose sequence header had not come. */
  #unready = 0;
  readonly #enhanced: boolean;
  readonly #onMalformed: (what: string) => void;
  readonly #onUnsupported: (what: 'video' | 'audio', codec: string) => void;
  readonly #toldCodecs = new Set<string>();

  /**
   * `onMalformed` is called for each unreadable message, and may throw `ProtocolError` if there are too many; `onUnsupported` once for each
   * unsupported codec.
   */
  constructor(options: {
    stream: IngestStream;
    limits: RtmpLimits;
    timeouts: RtmpTimeouts;
    /** False: tags of Enhanced RTMP are left out, and `onUnsupported` is called with `ENHANCED`. */
    enhanced?: boolean;
    onStarted: (tracks: readonly SourceTrack[]) => void;
    onMalformed?: (what: string) => void;
    onUnsupported?: (what: 'video' | 'audio', codec: string) => void;
  }) {
    this.#enhanced = options.enhanced ?? true;
    this.#onMalformed = options.onMalformed ?? (() => undefined);
    this.#onUnsupported = options.onUnsupported ?? (() => undefined);
    const { heldPackets, heldBytes, tracks } = options.limits;
    const { trackWait } = options.timeouts;
    this.#starter = new StreamStarter({
      stream: options.stream,
      limits: { trackWait, heldPackets, heldBytes },
      onStarted: options.onStarted,
    });
    this.#tracks = new SourceTracks({ limit: tracks });
    this.#starter.expect(this.#tracks.expected, NONE);
  }

  /** True once the core knows the tracks. */
  get started(): boolean {
    return this.#starter.started;
  }

  get undecodable(): number {
    return this.#unready + this.#starter.undecodable;
  }

  /** A timestamp of the wire, continued past its wraps, ms. */
  timeOf(wireTimestamp: number): number {
    return this.#time.near(wireTimestamp);
  }

  /** A description of the stream; it does not change a running stream. */
  describe(metadata: FlvMetadata): void {
    this.#tracks.describe(metadata);
    this.#describeAgain();
  }

  /** One audio message. The payload passes to the core. */
  pushAudio(payload: Uint8Array, wireTimestamp: number): void {
    const timestamp = this.#time.unwrap(wireTimestamp);
    this.messages += 1;
    // An empty audio message announces silence.
    if (payload.length === 0) return;
    if (!this.#enhanced && (payload[0] ?? 0) >> 4 === FlvSoundFormat.EX_HEADER) {
      this.#countCodec('audio', ENHANCED);
      return;
    }
    try {
      this.#takeAudio(payload, timestamp);
    } catch (error) {
      this.#countMalformed(error);
    }
  }

  /** One video message. The payload passes to the core. */
  pushVideo(payload: Uint8Array, wireTimestamp: number): void {
    const timestamp = this.#time.unwrap(wireTimestamp);
    this.messages += 1;
    if (payload.length === 0) return;
    if (!this.#enhanced && ((payload[0] ?? 0) & EX_VIDEO) !== 0) {
      this.#countCodec('video', ENHANCED);
      return;
    }
    try {
      this.#takeVideo(payload, timestamp);
    } catch (error) {
      this.#countMalformed(error);
    }
  }

  /** Starts without missing tracks when the wait is over. `now`: monotonic, ms. */
  checkStart(now: number): void {
    try {
      this.#starter.checkStart(now);
    } catch (error) {
      this.#countMalformed(error);
    }
  }

  #takeAudio(payload: Uint8Array, timestamp: number): void {
    for (const unit of parseAudioTag(payload)) {
      if (unit.kind === 'other') continue;
      if (unit.kind === 'unsupported') {
        this.#countCodec('audio', unit.codec);
        continue;
      }
      const track = this.#tracks.audio(unit.trackId, unit.codec);
      if (track === null) this.#countUnsupported(`audio track ${unit.trackId}`);
      else if (unit.kind === 'channels') this.#takeChannels(track, unit.channels);
      else if (unit.kind === 'config') this.#takeConfig(track, unit.codec, unit.body);
      else this.#takeFrame(track, unit.codec, { trackId: track.id, pts: timestamp, dts: timestamp, keyframe: true, data: unit.body });
    }
  }

  #takeVideo(payload: Uint8Array, timestamp: number): void {
    for (const unit of parseVideoTag(payload)) {
      if (unit.kind === 'other') continue;
      if (unit.kind === 'unsupported') {
        this.#countCodec('video', unit.codec);
        continue;
      }
      const track = this.#tracks.video(unit.trackId, unit.codec);
      if (track === null) {
        this.#countUnsupported(`video track ${unit.trackId}`);
      } else if (unit.kind === 'config') {
        this.#takeConfig(track, unit.codec, unit.body);
      } else {
        const data = unit.codec === VideoCodec.AV1 ? withoutTemporalDelimiter(unit.body) : unit.body;
        this.#takeFrame(track, unit.codec, {
          trackId: track.id,
          pts: timestamp + unit.compositionTime,
          dts: timestamp,
          keyframe: unit.keyframe,
          data,
        });
      }
    }
  }

  #takeChannels(track: AudioState, channels: number): void {
    if (track.channels === channels) return;
    track.channels = channels;
    this.#describeAgain();
  }

  /** Updates the expected tracks and the descriptions of ready tracks; a running stream is left unchanged. */
  #describeAgain(): void {
    if (this.started) return;
    this.#starter.expect(this.#tracks.expected, NONE);
    for (const source of this.#tracks.list()) this.#starter.describe(source, { tell: false });
  }

  #takeConfig<State extends TrackState>(track: State, codec: State['codec'], body: Uint8Array): void {
    if (body.length < MIN_CONFIG) {
      if (needsConfig(codec)) throw new ProtocolError('FLV_CONFIG', `sequence header of ${body.length} bytes`);
      this.#makeReady(track, codec, null);
    } else {
      this.#makeReady(track, codec, body);
    }
  }

  #makeReady<State extends TrackState>(track: State, codec: State['codec'], config: Uint8Array | null): void {
    if (track.ready && track.codec === codec && isSame(track.config, config)) return;
    // Packets held under parameters that have changed since cannot be decoded.
    if (track.ready) this.#starter.forgetHeld(track.id);
    adopt(track, codec, config);
    this.#starter.expect(this.#tracks.expected, NONE);
    this.#starter.describe(this.#tracks.source(track), { tell: true });
  }

  #takeFrame<State extends TrackState>(track: State, codec: State['codec'], packet: SourcePacket): void {
    if (packet.data.length === 0) return;
    if (!track.ready || track.codec !== codec) {
      if (needsConfig(codec)) {
        this.#unready += 1;
        return;
      }
      this.#makeReady(track, codec, null);
    }
    this.#starter.push(packet);
  }

  #countCodec(what: 'video' | 'audio', codec: string): void {
    this.#countUnsupported(what === 'video' ? `video codec ${codec}` : `audio codec ${codec}`);
    const key = what + codec;
    if (this.#toldCodecs.has(key) || this.#toldCodecs.size >= MAX_TOLD_CODECS) return;
    this.#toldCodecs.add(key);
    this.#onUnsupported(what, codec);
  }

  #countUnsupported(what: string): void {
    this.unsupported += 1;
    this.firstFault ??= `unsupported ${what}`;
  }

  #countMalformed(error: unknown): void {
    if (!(error instanceof ProtocolError)) throw error;
    this.malformed += 1;
    const what = `${error.code}: ${error.message}`;
    this.firstFault ??= what;
    this.#onMalformed(what);
  }
}

function isSame(a: Uint8Array | null, b: Uint8Array | null): boolean {
  return a === b || (a !== null && b !== null && Buffer.compare(a, b) === 0);
}

function withoutTemporalDelimiter(body: Buffer): Buffer {
  return body[0] === AV1_TEMPORAL_DELIMITER && body[1] === 0 ? body.subarray(2) : body;
}
