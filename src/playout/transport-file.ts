/** Plays MPEG-TS files. */

import { type AccessUnitReader, accessUnitReader } from '../core/access-unit.ts';
import type { SourcePacket, SourceTrack } from '../core/ingest.ts';
import { TransportFeed } from '../ingest/transport-feed.ts';
import { endOfMedia } from '../media/media-end.ts';
import { MPEG_90K } from '../media/timebase.ts';
import type { Logger } from '../util/logger.ts';
import { ProtocolError } from '../util/protocol-error.ts';
import { audioFrameSeconds } from './audio-frames.ts';
import type { FileBytes } from './file-bytes.ts';
import type { FileEvent, MediaFile } from './media-file.ts';

const CHUNK_BYTES = 65_536;
const SECOND = MPEG_90K.den;
/** The start time and the tracks must be found within this many bytes. */
const MAX_HEAD_BYTES = 16_777_216;
/** Number of first or last bytes of a file that are searched for playable media. */
const MAX_IDLE_BYTES = 67_108_864;
/** Read at first before a place to find the keyframe that it needs, and at the end to find the last frame; more if need be. */
const BACK_BYTES = 1_048_576;
/** Positions closer than this are reached by reading, not by searching. */
const SEARCH_BYTES = 262_144;
/** A frame is shown at most this much after one that is written later, ticks. */
const REORDERED = SECOND;
/** Audio of a place is written at most this much before its frames, ticks. */
const AUDIO_AHEAD = SECOND;
/** Positions are reported in whole milliseconds. */
const ROUNDING = 90;
/** For the rounds after the first, which have nothing new to say. */
const QUIET: Logger = {
  ...{ debug: nothing, info: nothing, warn: nothing, error: nothing, child: () => QUIET },
  get limited() {
    return QUIET;
  },
};

function nothing(): void {}

/** Reads a chunk at a time. The bytes stay the caller's, who closes them. Places are found by their times, which must grow with the file. */
export class TransportFile implements MediaFile {
  readonly #bytes: FileBytes;
  #feed: TransportFeed;
  /** At most the content of a chunk, and the packets that the feed holds until it knows the tracks. */
  #events: FileEvent[] = [];
  #next = 0;
  #at = 0;
  #ended = false;
  #startsAt: number | null = null;
  /** Where to join, ticks; earlier packets are discarded. Null after joining. */
  #joint: number | null = null;
  #tracks: readonly SourceTrack[] = [];
  /** Readers of the video tracks, by track id. */
  #readers: ReadonlyMap<number, AccessUnitReader> = new Map();

  constructor(bytes: FileBytes, logger: Logger) {
    this.#bytes = bytes;
    this.#feed = this.#createFeed(logger);
  }

  rewind(): void {
    this.#feed = this.#createFeed(QUIET);
    this.#events = [];
    this.#next = 0;
    this.#at = 0;
    this.#ended = false;
    this.#joint = null;
  }

  async next(): Promise<FileEvent | null> {
    for (;;) {
      const event = await this.#following();
      if (event === null || this.#joint === null || this.#joins(event)) return event;
    }
  }

  async start(): Promise<number> {
    this.#startsAt ??= (await this.#findStart()) / SECOND;
    return this.#startsAt;
  }

  async seek(position: number): Promise<void> {
    const target = Math.round(((await this.start()) + position) * SECOND) + ROUNDING;
    const near = await this.#search(target);
    for (let back = BACK_BYTES; ; back *= 4) {
      const from = Math.max(0, near - back);
      const joint = await this.#lastJoint(from, target);
      if (joint === null && from > 0) continue;
      await this.#open(from);
      this.#joint = joint;
      return;
    }
  }

  async length(): Promise<number | null> {
    const start = await this.start();
    for (let back = BACK_BYTES; ; back *= 4) {
      const from = Math.max(0, this.#bytes.size - back);
      await this.#open(from);
      const end = await this.#readEnd();
      if (!Number.isFinite(end) && from > 0 && back < MAX_IDLE_BYTES) continue;
      this.rewind();
      return Number.isFinite(end) ? Math.max(0, end - start) : null;
    }
  }

  async #following(): Promise<FileEvent | null> {
    for (;;) {
      const event = this.#events[this.#next];
      if (event !== undefined) {
        this.#next += 1;
        if (event.type === 'tracks') this.#adopt(event.tracks);
        return event;
      }
      this.#events = [];
      this.#next = 0;
      if (this.#ended) return null;
      await this.#readChunk();
    }
  }

  #adopt(tracks: readonly SourceTrack[]): void {
    this.#tracks = tracks;
    this.#readers = new Map(tracks.flatMap((track) => (track.type === 'video' ? [[track.id, accessUnitReader(track)] as const] : [])));
  }

  /** The event belongs to the media after this place. */
  #joins(event: FileEvent): boolean {
    if (event.type === 'tracks') return true;
    const { pts } = event.packet;
    const joint = this.#joint ?? 0;
    if (!this.#leads(event.packet)) return this.#readers.size > 0 && pts >= joint - AUDIO_AHEAD;
    if (pts < joint || !this.#isKeyframe(event.packet)) return false;
    this.#joint = null;
    return true;
  }

  /** It is of the kind that decides where a file begins and can be joined. */
  #leads({ trackId }: SourcePacket): boolean {
    return this.#readers.size > 0 ? this.#readers.has(trackId) : this.#tracks.some(({ id, type }) => id === trackId && type === 'audio');
  }

  #isKeyframe({ trackId, keyframe, data }: SourcePacket): boolean {
    const reader = this.#readers.get(trackId);
    return keyframe ?? (reader === undefined || reader.isKeyframe(reader.read(data)));
  }

  /** Ticks of the first frame that can be shown. */
  async #findStart(): Promise<number> {
    this.rewind();
    let first: number | null = null;
    while (!this.#feed.started && !this.#ended) {
      await this.#readChunk();
      if (this.#at < MAX_IDLE_BYTES || this.#feed.started) continue;
      throw new ProtocolError('TS_IDLE', `nothing that can be played begins in the first ${MAX_IDLE_BYTES} bytes`);
    }
    if (!this.#feed.started) throw new ProtocolError('TS_IDLE', 'there is nothing in it that can be played');
    this.rewind();
    for (let event = await this.#following(); event !== null && this.#at < MAX_HEAD_BYTES; event = await this.#following()) {
      if (event.type === 'tracks') continue;
      first ??= event.packet.pts;
      if (!this.#leads(event.packet) || !this.#isKeyframe(event.packet)) continue;
      first = event.packet.pts;
      break;
    }
    this.rewind();
    return first ?? 0;
  }

  /** A byte before which everything up to `target` has been written, and not much more. */
  async #search(target: number): Promise<number> {
    let low = 0;
    let high = this.#bytes.size;
    while (high - low > SEARCH_BYTES) {
      const middle = Math.floor((low + high) / 2);
      await this.#open(middle);
      let pts: number | null = null;
      while (pts === null) {
        const event = await this.#following();
        if (event === null) break;
        if (event.type === 'packet' && this.#leads(event.packet)) ({ pts } = event.packet);
      }
      if (pts === null || pts > target) high = middle;
      else low = middle;
    }
    return high;
  }

  /** The last frame behind byte `from` to join at that is shown at `target` or before. */
  async #lastJoint(from: number, target: number): Promise<number | null> {
    await this.#open(from);
    let joint: number | null = null;
    for (let event = await this.#following(); event !== null; event = await this.#following()) {
      if (event.type === 'tracks' || !this.#leads(event.packet)) continue;
      const { pts } = event.packet;
      if (pts > target + REORDERED) break;
      if (pts <= target && this.#isKeyframe(event.packet)) joint = Math.max(joint ?? pts, pts);
    }
    return joint;
  }

  /** Second at which the following media ends. */
  async #readEnd(): Promise<number> {
    const times = { video: new Set<number>(), audio: Number.NEGATIVE_INFINITY };
    for (let event = await this.#following(); event !== null; event = await this.#following()) {
      if (event.type === 'tracks') continue;
      const { trackId, pts, data } = event.packet;
      const track = this.#tracks.find(({ id }) => id === trackId);
      if (track?.type === 'video') times.video.add(pts);
      else if (track?.type === 'audio') times.audio = Math.max(times.audio, pts + audioFrameSeconds(track, data) * SECOND);
    }
    const frames = [...times.video].sort((a, b) => a - b);
    const last = frames.at(-1) ?? Number.NEGATIVE_INFINITY;
    const frame = frames.length > 1 ? last - (frames.at(-2) ?? last) : 0;
    return endOfMedia((last + frame) / SECOND, times.audio / SECOND);
  }

  /** Continues at byte `from`, with the tables from the beginning of the file. */
  async #open(from: number): Promise<void> {
    this.rewind();
    if (from === 0) return;
    while (!this.#feed.started && !this.#ended && this.#at < Math.min(MAX_HEAD_BYTES, this.#bytes.size)) await this.#readChunk();
    this.#events = this.#events.filter(({ type }) => type === 'tracks');
    this.#at = from;
  }

  async #readChunk(): Promise<void> {
    const length = Math.min(CHUNK_BYTES, this.#bytes.size - this.#at);
    if (length > 0) {
      const chunk = await this.#bytes.read(this.#at, length);
      this.#at += length;
      this.#feed.push(chunk);
      return;
    }
    this.#feed.end();
    // A track that has not told its parameters by now never will.
    this.#feed.checkStart(0);
    this.#feed.checkStart(Number.POSITIVE_INFINITY);
    this.#ended = true;
  }

  #createFeed(logger: Logger): TransportFeed {
    return new TransportFeed({
      stream: {
        setTracks: (tracks) => this.#events.push({ type: 'tracks', tracks }),
        push: (packet) => this.#events.push({ type: 'packet', packet, timebase: MPEG_90K, duration: 0 }),
        // Splices in a file belong to the broadcast from which it was recorded.
        pushEvent: () => false,
      },
      logger,
    });
  }
}
