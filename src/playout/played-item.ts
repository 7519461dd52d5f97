import { isDeepStrictEqual } from 'node:util';
import { type AccessUnitReader, accessUnitReader } from '../core/access-unit.ts';
import type { SourceAudioTrack, SourceTrack } from '../core/ingest.ts';
import { endOfMedia } from '../media/media-end.ts';
import { toMilliseconds } from '../media/timebase.ts';
import { messageOf } from '../util/message-of.ts';
import { ProtocolError } from '../util/protocol-error.ts';
import { audioFrameSeconds, constantFrameSeconds } from './audio-frames.ts';
import type { Arrangement, ChannelSlot } from './channel-slots.ts';
import type { ItemSideData } from './item-side-data.ts';
import type { ItemOpening, ItemSource } from './item-source.ts';
import type { FileEvent } from './media-file.ts';
import type { CuedItem } from './playout.ts';
import type { ItemSubtitles } from './sidecars.ts';

/** Media is read until this much of it waits, ms, and again when less than that does. */
const READ_AHEAD_MS = 2500;
const READ_AGAIN_MS = 1800;
/** Further limit of waiting media. A frame may be larger than the rest of it. */
const MAX_WAITING_BYTES = 67_108_864;
const MAX_WAITING_FRAMES = 4000;
/** Limit of consecutive unplayable packets: minutes of a film. */
const MAX_USELESS = 100_000;
/** Audio that lies this much behind the first frame, ms, is not waited for. */
const READY_MS = 300;
/** The duration of a frame of a transport stream, ms, before two frames have told it. */
const USUAL_FRAME_MS = 40;

/** A packet of an item on its way to a track of the channel; times in ms of the item. */
export interface ItemFrame {
  readonly slot: ChannelSlot;
  readonly pts: number;
  readonly dts: number;
  readonly duration: number;
  readonly keyframe: boolean;
  readonly data: Uint8Array;
}

/** Media under one set of tracks. */
interface Chapter {
  readonly arrangement: Arrangement;
  readonly hasVideo: boolean;
  readonly queues: Map<ChannelSlot, ItemFrame[]>;
}

interface TrackReading {
  readonly source: SourceTrack;
  readonly reader: AccessUnitReader | null;
  lastDts: number;
  frameMs: number;
  /** Duration of every audio frame; null: each frame has its own. */
  readonly audioMs: number | null;
}

/** Dependencies of reading an item. */
export interface PlayedItemOptions {
  readonly cued: CuedItem;
  /** Monotonic, ms. */
  readonly now: () => number;
  /** Opens it where it is to be joined. */
  readonly open: (opening: Omit<ItemOpening, 'position'>) => Promise<ItemSource>;
  /** Arranges its tracks in the channel. Throws for an item that lacks some. */
  readonly arrange: (tracks: readonly SourceTrack[]) => Arrangement;
  /** It is ready, has more to play, has ended or failed. */
  readonly onChange: () => void;
}

/** One item from its cue to its end: reads ahead, within bounds. Its maker closes it. */
export class PlayedItem {
  readonly cued: CuedItem;
  /** Where it is to be on air, wall clock, ms: where it was cued, unless that has changed. */
  at: number;
  /** A process has to start for it. */
  slow = false;
  /** When something came last; monotonic, ms. */
  heardAt = Number.NEGATIVE_INFINITY;
  /** Why reading failed; null: it has not. Media read before the failure is still played. */
  failure: string | null = null;
  /** All has been read. */
  ended = false;
  /** Offset from the times of the item to those of the channel, ms. Set when it goes on air. */
  offset = 0;
  /** Additional offset by audio track, ms, which makes its frames follow the previous ones without a gap. Null: not decided yet. */
  readonly shifts = new Map<ChannelSlot, number>();
  readonly #options: PlayedItemOptions;
  readonly #closing = new AbortController();
  #source: ItemSource | null = null;
  #live = false;
  #tracks: readonly SourceTrack[] = [];
  #readings = new Map<number, TrackReading>();
  #chapters: Chapter[] = [];
  #bytes = 0;
  #frames = 0;
  /** Packets since the last playable packet. */
  #useless = 0;
  /** Decoding time of the newest frame that was read, and of the newest that was taken, ms. */
  #newest = Number.NEGATIVE_INFINITY;
  #taken = Number.NEGATIVE_INFINITY;
  #joint: number | null = null;
  #firstDts = 0;
  #videoEnd = Number.NEGATIVE_INFINITY;
  #audioEnd = Number.NEGATIVE_INFINITY;
  #room: (() => void) | null = null;

  constructor(options: PlayedItemOptions) {
    this.cued = options.cued;
    this.at = options.cued.at;
    this.#options = options;
    void this.#read();
  }

  /** It can go on air. */
  get ready(): boolean {
    if (this.#joint === null) return false;
    return this.ended || this.#live || this.#full || this.#newest - this.#joint >= READY_MS;
  }

  get live(): boolean {
    return this.#live;
  }

  /** Its subtitles. */
  get subtitles(): readonly ItemSubtitles[] {
    return this.#source?.subtitles ?? [];
  }

  /** Its events and cues; undefined: it has none. */
  get sideData(): ItemSideData | undefined {
    return this.#source?.sideData;
  }

  /** Where it is joined, ms: the keyframe that is shown first. Null before that has come. */
  get joint(): number | null {
    return this.#joint;
  }

  /** How long before it is shown its first frame has to be there, ms. */
  get lead(): number {
    return this.#joint === null ? 0 : Math.max(0, this.#joint - this.#firstDts);
  }

  /** How long its first frame of video is shown, ms. */
  get frameMs(): number {
    for (const queue of this.#chapters[0]?.queues.values() ?? []) {
      const [frame] = queue;
      if (frame?.slot.type === 'video' && frame.duration > 0) return frame.duration;
    }
    return USUAL_FRAME_MS;
  }

  /** Where its media ends, ms; null while that is not known. */
  get end(): number | null {
    return this.ended && this.#joint !== null ? endOfMedia(this.#videoEnd / 1000, this.#audioEnd / 1000) * 1000 : null;
  }

  /** The tracks of the packets taken next. */
  get arrangement(): Arrangement | null {
    return this.#chapters[0]?.arrangement ?? null;
  }

  /** No packet of the present tracks is left, and others follow. */
  get turns(): boolean {
    const [chapter, following] = this.#chapters;
    return chapter !== undefined && following !== undefined && isEmpty(chapter);
  }

  /** Continues with the following tracks. */
  turn(): void {
    this.#chapters.shift();
    for (const slot of this.shifts.keys()) this.shifts.delete(slot);
  }

  /** The frame that is decoded next; null when none has been read. */
  peek(): ItemFrame | null {
    let first: ItemFrame | null = null;
    const chapter = this.#chapters[0];
    if (chapter === undefined) return null;
    for (const [frame] of chapter.queues.values()) if (frame !== undefined && (first === null || frame.dts < first.dts)) first = frame;
    return first;
  }

  /** Removes the frame that `peek` gave. */
  take(frame: ItemFrame): void {
    this.#chapters[0]?.queues.get(frame.slot)?.shift();
    this.#forget(frame);
    this.#taken = Math.max(this.#taken, frame.dts);
    if (this.#room !== null && !this.#full && this.#newest - this.#taken < READ_AGAIN_MS) this.#room();
  }

  /** A frame behind the next one of its track is shown before `pts`, ms, or may be: of live streams nothing is read ahead. */
  isNeededBefore(slot: ChannelSlot, pts: number): boolean {
    const queue = this.#chapters[0]?.queues.get(slot) ?? [];
    for (let index = 1; index < queue.length; index += 1) {
      const frame = queue[index];
      if (frame === undefined || frame.dts >= pts) return false;
      if (frame.pts < pts) return true;
    }
    return !this.ended && this.failure === null && this.#chapters.length === 1;
  }

  /** Idempotent. */
  close(): void {
    if (this.#closing.signal.aborted) return;
    this.#closing.abort();
    this.#source?.close();
    this.#chapters = [];
    this.#room?.();
  }

  get #full(): boolean {
    if (this.#live) return false;
    if (this.#bytes >= MAX_WAITING_BYTES || this.#frames >= MAX_WAITING_FRAMES) return true;
    const from = Math.max(this.#taken, this.#joint ?? Number.NEGATIVE_INFINITY);
    return Number.isFinite(from) && this.#newest - from >= READ_AHEAD_MS;
  }

  async #read(): Promise<void> {
    const { signal } = this.#closing;
    try {
      const source = await this.#options.open({ signal, onSlow: () => (this.slow = true) });
      if (signal.aborted) {
        source.close();
        return;
      }
      this.#source = source;
      this.#live = source.live;
      for (;;) {
        // Only audio waits: it is not taken before there is a frame.
        if (this.#full && this.#joint === null) throw new Error('no keyframe arrived to begin with');
        if (this.#full) await this.#untilRoom();
        if (signal.aborted) return;
        const event = await source.next();
        if (signal.aborted) return;
        if (event === null) break;
        if (source.live) this.heardAt = this.#options.now();
        this.#take(event, source.start);
      }
      if (this.#joint === null) throw new Error('it has no playable media');
      this.ended = true;
    } catch (error) {
      if (signal.aborted) return;
      this.failure = messageOf(error);
      this.#source?.close();
    }
    this.#options.onChange();
  }

  async #untilRoom(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#room = resolve;
    });
    this.#room = null;
  }

  #take(event: FileEvent, start: number): void {
    if (event.type === 'tracks') {
      this.#follow(event.tracks);
      return;
    }
    this.#useless += 1;
    if (this.#useless > MAX_USELESS) throw new Error(`of ${MAX_USELESS} packets in a row none can be played`);
    const reading = this.#readings.get(event.packet.trackId);
    const slots = this.#chapters.at(-1)?.arrangement.routes.get(event.packet.trackId);
    if (reading === undefined || slots === undefined) return;
    const { packet, timebase, duration } = event;
    const dts = toMilliseconds(packet.dts, timebase) - start * 1000;
    const pts = toMilliseconds(packet.pts, timebase) - start * 1000;
    const known = duration > 0 ? toMilliseconds(duration, timebase) : null;
    const { source } = reading;
    if (source.type === 'video') this.#takeVideo(reading, { slots, dts, pts, known, keyframe: packet.keyframe, data: packet.data });
    else if (source.type === 'data') this.#add(slots, { pts, dts, duration: 0, keyframe: true, data: packet.data });
    else {
      const length = reading.audioMs ?? audioMs(source, packet.data, known ?? 0);
      if (length === null) return;
      this.#audioEnd = Math.max(this.#audioEnd, pts + (known ?? length));
      if (this.#joint === null && this.#chapters.at(-1)?.hasVideo === false) this.#join(pts, dts);
      this.#add(slots, { pts, dts, duration: length, keyframe: true, data: packet.data });
    }
  }

  #takeVideo(
    reading: TrackReading,
    frame: {
      readonly slots: readonly ChannelSlot[];
      readonly dts: number;
      readonly pts: number;
      readonly known: number | null;
      readonly keyframe: boolean | null;
      readonly data: Uint8Array;
    },
  ): void {
    const { slots, dts, pts, known } = frame;
    let data: Uint8Array;
    let keyframe: boolean;
    try {
      data = reading.reader?.read(frame.data) ?? frame.data;
      keyframe = frame.keyframe ?? reading.reader?.isKeyframe(data) ?? false;
    } catch (error) {
      // The router also drops broken packets; a source that stays unreadable fails there.
      if (error instanceof ProtocolError) return;
      throw error;
    }
    const step = dts - reading.lastDts;
    if (step > 0 && step < 1000) reading.frameMs = step;
    reading.lastDts = dts;
    const duration = known ?? reading.frameMs;
    if (keyframe && (this.#joint === null || this.#isFresher)) this.#join(pts, dts);
    // Frames that need data from before the keyframe at which it was joined.
    if (this.#joint === null || pts < this.#joint) return;
    this.#videoEnd = Math.max(this.#videoEnd, pts + duration);
    this.#add(slots, { pts, dts, duration, keyframe, data });
  }

  /** A waiting live stream is played from its newest frames. */
  get #isFresher(): boolean {
    return this.#live && this.#taken === Number.NEGATIVE_INFINITY;
  }

  #join(pts: number, dts: number): void {
    const again = this.#joint !== null;
    this.#joint = pts;
    this.#firstDts = dts;
    if (!again) return;
    // Only the packets of the new keyframe stay.
    const passed = this.#chapters.splice(0, this.#chapters.length - 1);
    for (const { queues } of passed) for (const queue of queues.values()) for (const frame of queue) this.#forget(frame);
    for (const queue of this.#chapters[0]?.queues.values() ?? []) {
      const rest = queue.filter((frame) => frame.slot.type !== 'video' && frame.pts + frame.duration > pts);
      for (const frame of queue) if (!rest.includes(frame)) this.#forget(frame);
      queue.splice(0, queue.length, ...rest);
    }
  }

  #add(slots: readonly ChannelSlot[], frame: Omit<ItemFrame, 'slot'>): void {
    const wasEmpty = this.#frames === 0;
    const wasReady = this.ready;
    this.#useless = 0;
    const queues = this.#chapters.at(-1)?.queues;
    for (const slot of slots) {
      queues?.get(slot)?.push({ slot, ...frame });
      this.#bytes += frame.data.length;
      this.#frames += 1;
    }
    this.#newest = Math.max(this.#newest, frame.dts);
    if (this.#live && (this.#bytes > MAX_WAITING_BYTES || this.#frames > MAX_WAITING_FRAMES)) {
      throw new Error('its keyframes are too far apart, or its frames too large, to wait with it');
    }
    if (wasEmpty || (!wasReady && this.ready)) this.#options.onChange();
  }

  #forget(frame: ItemFrame): void {
    this.#bytes -= frame.data.length;
    this.#frames -= 1;
  }

  #follow(tracks: readonly SourceTrack[]): void {
    if (isDeepStrictEqual(tracks, this.#tracks)) return;
    this.#tracks = tracks;
    const arrangement = this.#options.arrange(tracks);
    this.#readings = new Map(
      tracks.map((source) => {
        const reader = source.type === 'video' ? accessUnitReader(source) : null;
        const { lastDts = Number.NaN, frameMs = USUAL_FRAME_MS } = this.#readings.get(source.id) ?? {};
        const seconds = source.type === 'audio' ? constantFrameSeconds(source) : null;
        return [source.id, { source, reader, lastDts, frameMs, audioMs: seconds === null ? null : seconds * 1000 }];
      }),
    );
    const slots = new Set([...arrangement.routes.values()].flat());
    const hasVideo = [...slots].some(({ type }) => type === 'video');
    this.#chapters.push({ arrangement, hasVideo, queues: new Map([...slots].map((slot) => [slot, []])) });
    this.#options.onChange();
  }
}

/** Duration by the codec: files shorten the last frame to its audible part, but decoders output all of it. */
function audioMs(track: SourceAudioTrack, data: Uint8Array, told: number): number | null {
  try {
    return audioFrameSeconds(track, data) * 1000;
  } catch (error) {
    if (error instanceof ProtocolError) return told > 0 ? told : null;
    throw error;
  }
}

function isEmpty({ queues }: Chapter): boolean {
  for (const queue of queues.values()) if (queue.length > 0) return false;
  return true;
}
