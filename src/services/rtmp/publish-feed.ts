/** Turns the media messages of one publication into source tracks and packets. */
import { parseAudioTag } from '../../containers/flv/audio-tag.ts';
import type { FlvMetadata } from '../../containers/flv/metadata.ts';
import { parseVideoTag } from '../../containers/flv/video-tag.ts';
import type { IngestStream, SourcePacket, SourceTrack } from '../../core/ingest.ts';
import { VideoCodec } from '../../media/codec.ts';
import { ProtocolError } from '../../util/protocol-error.ts';
import type { RtmpLimits, RtmpTimeouts } from './rtmp-options.ts';
import { adopt, needsConfig, SourceTracks, type TrackState } from './source-tracks.ts';
import { TimestampUnwrapper } from './timestamp-unwrapper.ts';

const SHORTEST_CONFIG = 2;
/** Codecs that cannot be carried of which a publisher is told: more are no mistake. */
const MAX_TOLD_CODECS = 8;
/** An AV1 temporal delimiter with its size byte: it says nothing between packets. */
const AV1_TEMPORAL_DELIMITER = 0x12;

/** What came and was not handed on. */
export interface FeedCounters {
  /** Audio and video messages, usable or not. */
  readonly messages: number;
  /** Cut off or malformed tags. */
  readonly malformed: number;
  /** Tags of codecs this server does not take, and of tracks beyond the limit. */
  readonly unsupported: number;
  /** Frames of tracks whose sequence header had not come. */
  readonly undecodable: number;
  /** What the first malformed or unsupported tag was; null when there was none. */
  readonly firstFault: string | null;
}

/**
 * Holds packets back until the tracks are known, then starts the stream and hands everything on in
 * the order it came. The stream starts with the first frame after the last announced track became
 * usable, when one track filled its share of the buffer, or when the wait is over (`checkStart`).
 */
export class PublishFeed implements FeedCounters {
  messages = 0;
  malformed = 0;
  unsupported = 0;
  undecodable = 0;
  firstFault: string | null = null;
  readonly #stream: IngestStream;
  readonly #limits: RtmpLimits;
  readonly #trackWait: number;
  readonly #onStarted: (tracks: readonly SourceTrack[]) => void;
  readonly #tracks: SourceTracks;
  readonly #time = new TimestampUnwrapper();
  readonly #heldByTrack = new Map<number, number>();
  #held: SourcePacket[] = [];
  #heldBytes = 0;
  #started = false;
  #readySince: number | null = null;
  readonly #onMalformed: (what: string) => void;
  readonly #onUnsupported: (what: 'video' | 'audio', codec: string) => void;
  readonly #toldCodecs = new Set<string>();

  /**
   * `onMalformed` is told of each message that cannot be read, and may throw `ProtocolError` when these are too many;
   * `onUnsupported` once of each codec that cannot be carried.
   */
  constructor(options: {
    stream: IngestStream;
    limits: RtmpLimits;
    timeouts: RtmpTimeouts;
    onStarted: (tracks: readonly SourceTrack[]) => void;
    onMalformed?: (what: string) => void;
    onUnsupported?: (what: 'video' | 'audio', codec: string) => void;
  }) {
    this.#onMalformed = options.onMalformed ?? (() => undefined);
    this.#onUnsupported = options.onUnsupported ?? (() => undefined);
    this.#stream = options.stream;
    this.#limits = options.limits;
    this.#trackWait = options.timeouts.trackWait;
    this.#onStarted = options.onStarted;
    this.#tracks = new SourceTracks({ limit: options.limits.tracks });
  }

  /** True once the core knows the tracks. */
  get started(): boolean {
    return this.#started;
  }

  /** A description of the stream. One that comes while the stream runs does not change it. */
  describe(metadata: FlvMetadata): void {
    this.#tracks.describe(metadata);
  }

  /** One audio message. The payload passes to the core. */
  pushAudio(payload: Uint8Array, wireTimestamp: number): void {
    const timestamp = this.#time.unwrap(wireTimestamp);
    this.messages += 1;
    // An empty audio message announces silence.
    if (payload.length === 0) return;
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
    try {
      this.#takeVideo(payload, timestamp);
    } catch (error) {
      this.#countMalformed(error);
    }
  }

  /** Starts without the missing tracks when they let wait too long. `now` is monotonic, milliseconds. */
  checkStart(now: number): void {
    if (this.#started || !this.#tracks.anyReady) return;
    this.#readySince ??= now;
    if (now - this.#readySince < this.#trackWait) return;
    try {
      this.#start();
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
      else if (unit.kind === 'channels') track.channels = unit.channels;
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

  #takeConfig<State extends TrackState>(track: State, codec: State['codec'], body: Uint8Array): void {
    if (body.length < SHORTEST_CONFIG) {
      if (needsConfig(codec)) throw new ProtocolError('FLV_CONFIG', `sequence header of ${body.length} bytes`);
      this.#makeReady(track, codec, null);
    } else {
      this.#makeReady(track, codec, body);
    }
  }

  #makeReady<State extends TrackState>(track: State, codec: State['codec'], config: Uint8Array | null): void {
    if (track.ready && track.codec === codec && isSame(track.config, config)) return;
    if (track.ready && !this.#started) this.#forgetHeld(track.id);
    adopt(track, codec, config);
    if (this.#started) this.#stream.setTracks(this.#tracks.list());
  }

  #takeFrame<State extends TrackState>(track: State, codec: State['codec'], packet: SourcePacket): void {
    if (packet.data.length === 0) return;
    if (!track.ready || track.codec !== codec) {
      if (needsConfig(codec)) {
        this.undecodable += 1;
        return;
      }
      this.#makeReady(track, codec, null);
    }
    if (!this.#started && this.#tracks.complete) this.#start();
    if (this.#started) this.#stream.push(packet);
    else this.#hold(packet);
  }

  #hold(packet: SourcePacket): void {
    const count = (this.#heldByTrack.get(packet.trackId) ?? 0) + 1;
    this.#heldByTrack.set(packet.trackId, count);
    this.#held.push(packet);
    this.#heldBytes += packet.data.length;
    if (count >= this.#limits.heldPackets || this.#heldBytes >= this.#limits.heldBytes) this.#start();
  }

  /** Packets held under parameters that have changed since cannot be decoded. */
  #forgetHeld(trackId: number): void {
    this.undecodable += this.#heldByTrack.get(trackId) ?? 0;
    this.#heldByTrack.delete(trackId);
    this.#held = this.#held.filter((packet) => packet.trackId !== trackId);
    this.#heldBytes = this.#held.reduce((sum, packet) => sum + packet.data.length, 0);
  }

  /** Throws `ProtocolError` when no track can be read: then the stream has not started, and what was held is gone. */
  #start(): void {
    const tracks = this.#tracks.list();
    const held = this.#held;
    this.#held = [];
    this.#heldBytes = 0;
    this.#heldByTrack.clear();
    this.#stream.setTracks(tracks);
    this.#started = true;
    for (const packet of held) this.#stream.push(packet);
    this.#onStarted(tracks);
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
