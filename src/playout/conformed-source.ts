import type { SourcePacket, SourceTrack } from '../core/ingest.ts';
import { MediaRouter } from '../core/media-router.ts';
import type { StreamAddress } from '../core/stream-address.ts';
import type { EncodedPacket, Transcoder, TranscodeSession } from '../core/transcoding.ts';
import type { Packet } from '../media/packet.ts';
import { type Timebase, toSeconds } from '../media/timebase.ts';
import type { Track } from '../media/track.ts';
import { messageOf } from '../util/message-of.ts';
import type { Conversion } from './conversion.ts';
import type { ItemSideData } from './item-side-data.ts';
import type { ItemSource } from './item-source.ts';
import type { FileEvent } from './media-file.ts';
import type { ItemSubtitles } from './sidecars.ts';
import { isOfSource, sourceTrackOf } from './source-track.ts';

/** Media that may be on its way through decoder and encoder: seconds, and packets of one track, which is less than the queue to the decoder holds. */
const MAX_AHEAD_S = 2;
const MAX_UNDER_WAY = 100;
/** Limit of packets of one track that wait for those of others: stopped times end nothing. */
const MAX_WAITING = 4000;
/** Packets that are repeated behind the end, so that decoder and encoder release their delayed frames. */
const FLUSHING = 40;
const USUAL_STEP_S = 0.04;
const ROUNDING_S = 0.001;
/** The timelines of routers and encoders begin at 0, and films decode before that: in between everything is so much later, seconds. */
const LATER_S = 10;

type PacketEvent = Extract<FileEvent, { type: 'packet' }>;

/** How the tracks of a source are treated. */
export interface ConformedSourceOptions {
  readonly source: ItemSource;
  /** Called whenever the source announces its tracks. */
  readonly conversions: (tracks: readonly SourceTrack[]) => readonly Conversion[];
  /** Null: nothing is converted here, and items that would have to be fail. */
  readonly transcoder: Transcoder | null;
  /** The channel. */
  readonly address: StreamAddress;
  /** A process has to start for it. */
  readonly onSlow: () => void;
}

/** A track that is converted. */
interface Converted {
  readonly conversion: Conversion;
  /** The encoded track; null until the encoder has announced it. */
  track: Track | null;
  /** Decoding time of the packets in progress, seconds. */
  readonly under: number[];
  /** Time of the newest output packet, seconds. */
  made: number;
  /** The last keyframe passed to the encoder. */
  last: Packet | null;
  /** How long a packet lasts, and when the last of them is shown, seconds. */
  step: number;
  end: number;
}

/**
 * Converts tracks of a source into other codecs, by a job of the transcoder, and keeps all of its tracks in step: its reader sees a source
 * that has these codecs already. Without conversions it passes everything through.
 */
export class ConformedSource implements ItemSource {
  readonly #options: ConformedSourceOptions;
  readonly #source: ItemSource;
  #session: TranscodeSession | null = null;
  #router: MediaRouter | null = null;
  readonly #converted = new Map<number, Converted>();
  /** Tracks as the source has told them. */
  #tracks: readonly SourceTrack[] = [];
  /** Packets by track, in the order of decoding. */
  readonly #queues = new Map<number, PacketEvent[]>();
  /** Must be called before the next packet. */
  #tracksChanged = false;
  /** The source has ended: no more packets follow. */
  #sourceEnded = false;
  /** A change of tracks within the source, held until the packets before it have left. */
  #held: FileEvent | null = null;
  /** When the first and the newest packet of the source are decoded, seconds. */
  #first = 0;
  #newest = Number.NEGATIVE_INFINITY;
  #fault: Error | null = null;
  #reading = false;
  #wake: (() => void) | null = null;
  #closed = false;

  constructor(options: ConformedSourceOptions) {
    this.#options = options;
    this.#source = options.source;
  }

  get live(): boolean {
    return this.#source.live;
  }

  get start(): number {
    return this.#source.start;
  }

  get subtitles(): readonly ItemSubtitles[] {
    return this.#source.subtitles ?? [];
  }

  get sideData(): ItemSideData | undefined {
    return this.#source.sideData;
  }

  async next(): Promise<FileEvent | null> {
    if (this.#converted.size === 0) {
      const event = this.#held ?? (await this.#source.next());
      this.#held = null;
      if (event?.type !== 'tracks' || !this.#begin(event.tracks)) return event;
    }
    for (;;) {
      if (this.#closed) return null;
      if (this.#fault !== null) throw this.#fault;
      const event = this.#take();
      if (event !== null) return event;
      if (this.#drained) {
        if (this.#held === null) return null;
        this.#end();
        return await this.next();
      }
      this.#readOn();
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#session?.close();
    this.#source.close();
    this.#stir();
  }

  /** False when the tracks pass as they are. */
  #begin(tracks: readonly SourceTrack[]): boolean {
    const { conversions, transcoder, address, onSlow } = this.#options;
    const wanted = conversions(tracks);
    const [first] = wanted;
    if (first === undefined) return false;
    if (transcoder === null) {
      const source = tracks.find(({ id }) => id === first.sourceId);
      const has = source === undefined || source.type === 'data' ? '' : source.codec;
      throw new Error(
        `its ${first.type} is ${has}, the channel has ${(first.encode.codec ?? '').toUpperCase()}, and nothing is transcoded here`,
      );
    }
    onSlow();
    this.#tracks = tracks;
    this.#tracksChanged = true;
    for (const conversion of wanted) {
      const fresh = {
        track: null,
        under: [],
        made: Number.NEGATIVE_INFINITY,
        last: null,
        step: USUAL_STEP_S,
        end: Number.NEGATIVE_INFINITY,
      };
      this.#converted.set(conversion.sourceId, { conversion, ...fresh });
    }
    for (const { id } of tracks) this.#queues.set(id, []);
    this.#session = transcoder.open(
      { ...address, encodes: wanted, decoderThreads: 2, onlyKeyframes: false, readAhead: !this.live },
      {
        onTrack: (id, track) => this.#onTrack(id, track),
        onPacket: (packet) => this.#onEncoded(packet),
        onEncodeFailed: (_id, reason) => this.#fail(new Error(`it cannot be converted: ${reason}`)),
      },
    );
    this.#router = new MediaRouter(
      { onTracks: (routed) => this.#session?.setTracks(routed), onPacket: (packet) => this.#feed(packet) },
      { keepSourceTime: true },
    );
    this.#router.setTracks(tracks.filter(({ id }) => this.#converted.has(id)));
    return true;
  }

  /** Everything of these tracks has gone out: others follow. */
  #end(): void {
    this.#session?.close();
    this.#session = null;
    this.#router = null;
    this.#converted.clear();
    this.#queues.clear();
    this.#sourceEnded = false;
    this.#newest = Number.NEGATIVE_INFINITY;
  }

  /** The packet that is decoded first, once it is certain that none comes before it. */
  #take(): FileEvent | null {
    let certain = Number.POSITIVE_INFINITY;
    for (const [id, { track, made, end }] of this.#converted) {
      if (track === null) return null;
      const isDone = this.#sourceEnded && isFlushed(made, end);
      if (!isDone && this.#queues.get(id)?.length === 0) certain = Math.min(certain, made);
    }
    if (this.#tracksChanged) {
      this.#tracksChanged = false;
      return { type: 'tracks', tracks: this.#tracks.map((track) => this.#told(track)) };
    }
    let first: PacketEvent[] | null = null;
    let firstAt = Number.POSITIVE_INFINITY;
    for (const queue of this.#queues.values()) {
      const [event] = queue;
      const at = event === undefined ? Number.POSITIVE_INFINITY : toSeconds(event.packet.dts, event.timebase);
      if (at >= firstAt) continue;
      first = queue;
      firstAt = at;
    }
    if (first === null || firstAt > certain) return null;
    const event = first.shift() ?? null;
    this.#readOn();
    return event;
  }

  #told(source: SourceTrack): SourceTrack {
    const track = this.#converted.get(source.id)?.track;
    if (track === undefined || track === null || !isOfSource(track)) return source;
    const { language, characteristics } = source;
    const labels = { ...(language !== undefined && { language }), ...(characteristics !== undefined && { characteristics }) };
    return { ...sourceTrackOf(track), ...labels, id: source.id };
  }

  get #drained(): boolean {
    if (!this.#sourceEnded) return false;
    for (const queue of this.#queues.values()) if (queue.length > 0) return false;
    for (const { made, end } of this.#converted.values()) if (!isFlushed(made, end)) return false;
    return true;
  }

  /** Reads the source until enough is under way. One at a time. */
  #readOn(): void {
    if (this.#reading || this.#sourceEnded || this.#closed || this.#isAhead) return;
    this.#reading = true;
    this.#source
      .next()
      .then((event) => {
        this.#reading = false;
        if (this.#closed) return;
        this.#put(event);
        this.#readOn();
      })
      .catch((error: unknown) => this.#fail(error instanceof Error ? error : new Error(messageOf(error))));
  }

  get #isAhead(): boolean {
    if (this.live) return false;
    let oldest = this.#newest;
    for (const { under, made } of this.#converted.values()) {
      if (under.length >= MAX_UNDER_WAY) return true;
      oldest = Math.min(oldest, Number.isFinite(made) ? made : this.#first);
    }
    for (const queue of this.#queues.values()) {
      if (queue.length >= MAX_WAITING) return true;
      const [event] = queue;
      if (event !== undefined) oldest = Math.min(oldest, toSeconds(event.packet.dts, event.timebase));
    }
    return this.#newest - oldest > MAX_AHEAD_S;
  }

  #put(event: FileEvent | null): void {
    if (event === null || event.type === 'tracks') {
      this.#held = event;
      this.#sourceEnded = true;
      for (const converted of this.#converted.values()) this.#flush(converted);
      this.#stir();
      return;
    }
    const { packet, timebase } = event;
    const at = toSeconds(packet.dts, timebase);
    if (!Number.isFinite(this.#newest)) this.#first = at;
    this.#newest = Math.max(this.#newest, at);
    if (this.#converted.has(packet.trackId)) this.#router?.push(moved(packet, timebase, LATER_S));
    else {
      this.#queues.get(packet.trackId)?.push(event);
      this.#stir();
    }
  }

  #feed(packet: Packet): void {
    const converted = this.#converted.get(packet.track.id);
    if (converted === undefined) return;
    const { timebase } = packet.track;
    converted.under.push(toSeconds(packet.dts, timebase) - LATER_S);
    if (packet.keyframe) converted.last = packet;
    converted.step = toSeconds(packet.duration, timebase) || converted.step;
    converted.end = Math.max(converted.end, toSeconds(packet.pts, timebase) - LATER_S);
    this.#session?.push(packet);
  }

  /** Flushes decoder and encoder: the last keyframe goes in again after the end. */
  #flush(converted: Converted): void {
    const { last, step, end } = converted;
    if (last === null) {
      converted.end = Number.NEGATIVE_INFINITY;
      return;
    }
    const { num, den } = last.track.timebase;
    // Another track, for the transcoder: the previous decoder releases all its frames.
    const track = { ...last.track };
    for (let count = 1; count <= FLUSHING; count += 1) {
      const ticks = Math.round(((LATER_S + end + step * count) * den) / num);
      this.#session?.push({ ...last, track, pts: ticks, dts: ticks });
    }
  }

  #onTrack(id: number, track: Track): void {
    const converted = this.#converted.get(id);
    if (converted === undefined) return;
    converted.track = track;
    this.#tracksChanged = true;
    this.#stir();
  }

  #onEncoded({ encodeId, pts, dts, duration, keyframe, data }: EncodedPacket): void {
    const converted = this.#converted.get(encodeId);
    if (converted?.track === undefined || converted.track === null) return;
    const { timebase } = converted.track;
    const packet = moved({ trackId: encodeId, pts, dts, keyframe, data }, timebase, -LATER_S);
    converted.made = Math.max(converted.made, toSeconds(packet.dts, timebase));
    while ((converted.under[0] ?? Number.POSITIVE_INFINITY) <= converted.made) converted.under.shift();
    const isBehind = this.#sourceEnded && toSeconds(packet.pts, timebase) > converted.end + converted.step / 2;
    if (!isBehind) this.#queues.get(encodeId)?.push({ type: 'packet', packet, timebase, duration });
    this.#stir();
    this.#readOn();
  }

  #fail(error: Error): void {
    this.#fault ??= error;
    this.#session?.close();
    this.#stir();
  }

  #stir(): void {
    const wake = this.#wake;
    this.#wake = null;
    wake?.();
  }
}

function moved(packet: SourcePacket, { num, den }: Timebase, seconds: number): SourcePacket {
  const ticks = Math.round((seconds * den) / num);
  return { ...packet, pts: packet.pts + ticks, dts: packet.dts + ticks };
}

/** All that went in has come out. */
function isFlushed(made: number, end: number): boolean {
  return made >= end - ROUNDING_S;
}
