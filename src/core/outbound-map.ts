import type { OutputProfileConfig } from '../config/index.ts';
import type { Packet } from '../media/packet.ts';
import { EventFormat } from '../media/timed-event.ts';
import type { Track, VideoTrack } from '../media/track.ts';
import type { Logger } from '../util/logger.ts';
import { EncodeLag } from './encode-lag.ts';
import type { LeftOut, OutboundStream } from './outbound-stream.ts';
import type { PlannedEncode, PlannedTrack } from './output-profile.ts';
import { PacketHold } from './packet-hold.ts';
import { SeiInsertion } from './sei-insertion.ts';
import type { EncodedPacket, EncodeFault, EncodeFaultFacts } from './transcoding.ts';

/** Held packets passed on in one turn of the event loop. */
const MAX_PACKETS_PER_TURN = 256;

/** Why an encode cannot be made or has stopped. */
interface EncodeFailure {
  readonly reason: string;
  readonly fault: EncodeFault;
  readonly facts?: EncodeFaultFacts | undefined;
}

/** One track of an outbound stream. */
interface Slot {
  /** Outbound track id. */
  readonly id: number;
  planned: PlannedTrack;
  /** Null until the transcoder has announced the parameters. */
  track: Track | null;
  /** Why the track will never come; null: it exists or may come. */
  failure: EncodeFailure | null;
}

/**
 * Carries packets of an inbound stream to one outbound stream, under the outbound tracks' identity.
 * The outbound stream begins when all its tracks are known: until then packets are held, so that bypassed and encoded tracks begin
 * together. Bypassed packets stay behind encoded packets until the encodes have caught up with the held packets. A full hold begins without
 * the missing tracks; they join later.
 */
export class OutboundMap {
  readonly profile: OutputProfileConfig;
  readonly stream: OutboundStream;
  readonly #logger: Logger;
  readonly #announce: (tracks: readonly Track[]) => void;
  readonly #hold = new PacketHold();
  readonly #sei = new SeiInsertion();
  #slots = new Map<string, Slot>();
  #routes = new Map<number, Slot[]>();
  #announced: readonly Track[] | null = null;
  /** Tracks from before this map whose ids have not been given again. */
  readonly #vacant: Track[];
  #nextId: number;
  #releasing = false;
  /** Null once encodes are not waited for any longer. */
  #lag: EncodeLag | null = new EncodeLag();
  #turnIsDue = false;
  #closed = false;

  constructor(options: {
    profile: OutputProfileConfig;
    stream: OutboundStream;
    logger: Logger;
    /** Announces the tracks of the outbound stream to the publishers. */
    announce: (tracks: readonly Track[]) => void;
  }) {
    this.profile = options.profile;
    this.stream = options.stream;
    this.#logger = options.logger;
    this.#announce = options.announce;
    this.#vacant = [...this.stream.tracks];
    this.#nextId = Math.max(-1, ...this.#vacant.map(({ id }) => id)) + 1;
  }

  /** The outbound stream has its tracks and takes packets. */
  get begun(): boolean {
    return this.#announced !== null;
  }

  /** Planned tracks that need a transcoder. */
  get encodes(): PlannedEncode[] {
    return Array.from(this.#slots.values(), (slot) => slot.planned).filter((planned) => planned.kind !== 'bypass');
  }

  /** Inbound video tracks that are bypassed. */
  get bypassedVideos(): number[] {
    return Array.from(this.#slots.values(), ({ planned }) => planned).flatMap(({ kind, source }) =>
      kind === 'bypass' && source.type === 'video' ? [source.id] : [],
    );
  }

  /** Takes a new plan; tracks that existed before keep their ids. Call `settle` afterwards. */
  follow(plan: readonly PlannedTrack[]): void {
    const before = this.#slots;
    this.#slots = new Map();
    this.#routes = new Map();
    for (const planned of plan) {
      const slot = this.#slotFor(planned, before.get(planned.key));
      this.#slots.set(planned.key, slot);
      if (planned.kind !== 'bypass') continue;
      const routes = this.#routes.get(planned.source.id);
      if (routes === undefined) this.#routes.set(planned.source.id, [slot]);
      else routes.push(slot);
    }
  }

  /** Begins when all tracks are known; later calls announce changes to the publishers. */
  settle(): void {
    this.stream.failures = [...this.#slots.values()].flatMap((slot) => this.#leftOut(slot));
    const slots = [...this.#slots.values()].filter((slot) => slot.failure === null);
    if (this.#announced === null && slots.some((slot) => slot.track === null) && !this.#hold.full) return;
    const tracks = slots.flatMap((slot) => slot.track ?? []);
    if (this.#announced !== null && sameItems(this.#announced, tracks)) return;
    const begins = this.#announced === null;
    if (begins) this.#logBeginning(slots);
    else this.#releaseAll();
    this.#announced = tracks;
    this.#announce(tracks);
    if (!begins) return;
    const known = slots.filter(({ track }) => track !== null);
    this.#lag?.begin(
      known.map(({ planned }) => planned),
      this.#hold.seconds,
    );
    this.#hold.sort();
    this.#releasing = true;
    this.#turn();
  }

  /** Announces the same tracks again, because other properties have changed. */
  announceAgain(): void {
    if (this.#announced !== null) this.#announce(this.#announced);
  }

  /** Routes a packet of the inbound stream to the tracks that bypass it. */
  route(packet: Packet): void {
    this.#lag?.heard(packet);
    const routes = this.#routes.get(packet.track.id);
    if (routes === undefined) return;
    if (packet.event?.format === EventFormat.SEI) {
      this.#sei.add(packet, this.#announced ?? []);
      return;
    }
    for (const { track } of routes) {
      if (track === null) continue;
      const { pts, dts, duration, keyframe, data, event, mark } = packet;
      const routed = { track, pts, dts, duration, keyframe, data };
      // Media packets seldom have these members; without them all packet objects have the same shape.
      if (event === undefined && mark === undefined) this.#push(routed);
      else this.#push({ ...routed, ...(event !== undefined && { event }), ...(mark !== undefined && { mark }) });
    }
  }

  /**
   * The transcoder has announced the parameters of an encoded track, or has changed them. The outbound track keeps its own id and names.
   */
  setEncoded(key: string, encoded: Track): void {
    const slot = this.#slots.get(key);
    if (slot === undefined || slot.planned.kind === 'bypass') return;
    const { source, variantName } = slot.planned;
    const publicName = encoded.type === 'audio' ? `${source.publicName}_${slot.id}` : source.publicName;
    const { language, characteristics } = source;
    const identity = { id: slot.id, variantName, publicName, language, characteristics, bypass: false };
    slot.track =
      encoded.type === 'video' ? { ...encoded, ...identity, ...keyframesOf(slot.planned, encoded) } : { ...encoded, ...identity };
    slot.failure = null;
    this.settle();
  }

  pushEncoded(key: string, packet: EncodedPacket): void {
    const track = this.#slots.get(key)?.track;
    if (track === undefined || track === null) return;
    const { pts, dts, duration, keyframe, data } = packet;
    const made = { track, pts, dts, duration, keyframe, data };
    this.#lag?.made(key, made);
    this.#push(made);
  }

  /** An encode cannot be made: the stream continues without its track, and the stream information gives the reason. */
  fail(key: string, failure: EncodeFailure): void {
    const slot = this.#slots.get(key);
    if (slot === undefined || slot.planned.kind === 'bypass') return;
    slot.failure = failure;
    slot.track = null;
    this.settle();
  }

  /** Name of the encode behind `key`. */
  variantName(key: string): string {
    return this.#slots.get(key)?.planned.variantName ?? '';
  }

  /** Id of the outbound track behind `key`; undefined when there is none. */
  trackId(key: string): number | undefined {
    return this.#slots.get(key)?.id;
  }

  /** How an outbound track is made. */
  plannedTrack(trackId: number): PlannedTrack | undefined {
    for (const slot of this.#slots.values()) if (slot.id === trackId) return slot.planned;
    return undefined;
  }

  /** Discards held packets. Idempotent. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    if (this.begun) this.#releaseAll();
    this.#hold.clear();
  }

  #leftOut({ id, planned, failure }: Slot): LeftOut[] {
    if (failure === null) return [];
    const { reason, fault, facts = {} } = failure;
    const sentence = `the encode '${planned.variantName}' is left out: ${reason}`;
    return [{ sentence, fault, facts, trackId: id, sourceTrackId: planned.source.id, profile: this.profile, kind: planned.kind }];
  }

  #slotFor(planned: PlannedTrack, before: Slot | undefined): Slot {
    const { source, variantName } = planned;
    let slot = before;
    if (slot === undefined) {
      slot = { id: this.#idFor(planned), planned, track: null, failure: null };
    }
    const known = slot.track;
    if (planned.kind === 'bypass') {
      if (known === null || slot.planned.kind !== 'bypass' || slot.planned.source !== source) {
        slot.track = { ...source, id: slot.id, variantName, bypass: true };
      }
      slot.failure = null;
    }
    // A track that becomes encoded keeps its parameters until the transcoder announces the new ones.
    slot.planned = planned;
    return slot;
  }

  /** The id of an earlier track of the stream with the same kind and name, which then continues for viewers. Otherwise an unused id. */
  #idFor({ kind, source, variantName }: PlannedTrack): number {
    const type = kind === 'audio' || kind === 'bypass' ? source.type : 'video';
    const index = this.#vacant.findIndex((track) => track.type === type && (track.variantName ?? '') === variantName);
    const [heir] = index < 0 ? [] : this.#vacant.splice(index, 1);
    if (heir !== undefined) return heir.id;
    this.#nextId += 1;
    return this.#nextId - 1;
  }

  #logBeginning(slots: readonly Slot[]): void {
    const names = (list: readonly Slot[]): string[] => list.map(({ planned }) => planned.variantName || 'data');
    const tracks = names(slots.filter(({ track }) => track !== null));
    const missing = names(slots.filter(({ track }) => track === null));
    const fields = { output: this.stream.name, tracks, held: this.#hold.size };
    if (missing.length === 0) {
      this.#logger.info(fields, `output stream '${this.stream.name}' begins: ${tracks.join(', ')}`);
    } else {
      const lacking = missing.join(', ');
      this.#logger.warn({ ...fields, missing }, `output stream '${this.stream.name}' begins without ${lacking}: the transcoder is late`);
    }
  }

  #push(plain: Packet): void {
    const packet = this.#sei.size === 0 ? plain : this.#sei.apply(plain);
    if (this.#announced !== null && !this.#releasing) {
      this.stream.push(packet);
      return;
    }
    this.#hold.push(packet);
    if (this.#announced !== null) this.#turnSoon();
    else if (this.#hold.full) this.settle();
  }

  #turnSoon(): void {
    if (this.#turnIsDue) return;
    this.#turnIsDue = true;
    setImmediate(this.#turn);
  }

  readonly #turn = (): void => {
    this.#turnIsDue = false;
    if (!this.#releasing || this.#closed) return;
    let isMore = false;
    try {
      isMore = this.#release(MAX_PACKETS_PER_TURN, this.#limit());
    } catch (error) {
      this.#logger.error({ err: error, output: this.stream.name }, 'the beginning of an output stream failed inside the server');
    }
    if (isMore || (this.#releasing && this.#lag === null)) this.#turnSoon();
  };

  /** Media time, seconds, that the slowest encode has reached: packets after it stay in the hold. */
  #limit(): number {
    const lag = this.#lag;
    if (lag === null) return Number.POSITIVE_INFINITY;
    this.#hold.sort();
    if (!lag.over && !this.#hold.full) return lag.until;
    this.#lag = null;
    return Number.POSITIVE_INFINITY;
  }

  #releaseAll(): void {
    this.#lag = null;
    this.#release(Number.POSITIVE_INFINITY);
  }

  /** Releases at most `limit` held packets. True if it stopped at `limit`, so that packets from before `before`, seconds, may be left. */
  #release(limit: number, before = Number.POSITIVE_INFINITY): boolean {
    let count = 0;
    for (; count < limit; count += 1) {
      const packet = this.#hold.shift(before);
      if (packet === undefined) break;
      this.stream.push(packet);
    }
    this.stream.drain();
    this.#releasing = this.#hold.size > 0 || this.#lag !== null;
    return count === limit;
  }
}

/** The distance of keyframes that the encode asks for, in frames; one second when it does not say. */
function keyframesOf(planned: PlannedEncode, { framerateConf }: VideoTrack): Pick<VideoTrack, 'keyFrameIntervalConf'> {
  if (planned.kind !== 'video') return {};
  const { keyFrameInterval, keyFrameIntervalType } = planned.encode;
  if (keyFrameIntervalType === 'frame' && keyFrameInterval > 0) return { keyFrameIntervalConf: keyFrameInterval };
  return { keyFrameIntervalConf: keyFrameInterval > 0 ? (keyFrameInterval * framerateConf) / 1000 : framerateConf };
}

function sameItems<T>(a: readonly T[], b: readonly T[]): boolean {
  return a.length === b.length && a.every((item, index) => item === b[index]);
}
