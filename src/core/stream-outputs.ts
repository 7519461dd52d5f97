import type { OutputProfileConfig } from '../config/index.ts';
import type { Packet } from '../media/packet.ts';
import { MPEG_90K, rescale, toMilliseconds } from '../media/timebase.ts';
import { isMarker } from '../media/timed-event.ts';
import { isVideoTrack, type Track } from '../media/track.ts';
import type { Clock } from '../util/clock.ts';
import type { Logger } from '../util/logger.ts';
import type { Newcomer, Turns } from '../util/newcomer-turns.ts';
import { FramerateProbe } from './framerate-probe.ts';
import type { CloseReason } from './ingest.ts';
import { InheritedOutputs } from './inherited-outputs.ts';
import { OutboundMap } from './outbound-map.ts';
import type { OutboundStream } from './outbound-stream.ts';
import type { OutputPlan } from './output-plan.ts';
import { needsFramerate, planOutput, type SourceFigures } from './output-profile.ts';
import type { OverlayRule } from './overlay-files.ts';
import { overlaysFor } from './overlay-map.ts';
import { PacketHold } from './packet-hold.ts';
import type { Playlist } from './playlist.ts';
import type { StreamAddress } from './stream-address.ts';
import { StreamEpoch } from './stream-epoch.ts';
import { TranscodeJob } from './transcode-job.ts';
import type { Transcoder } from './transcoding.ts';
import { Urgency } from './urgency.ts';

/** A keyframe is more expensive for the encoder of the source than for ours. */
const SOURCE_REQUEST_INTERVAL_MS = 1000;

/** Dependencies of the outputs of one inbound stream. The transcoder is shared; the job opened in it belongs to the outputs. */
export interface StreamOutputsOptions extends StreamAddress, OutputPlan {
  /**
   * Called once the tracks are known, when another server decides about the output profiles. Packets are held until it resolves, or until
   * the signal says that the hold is full. Null: the source was refused, and the packets belong to another source.
   */
  readonly advise?: (signal: AbortSignal) => Promise<OutputPlan | null>;
  /** Null when this server cannot encode. */
  readonly transcoder: Transcoder | null;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Makes the outbound stream of a profile; null when it cannot be made. `requestKeyframe` asks for one of an outbound track. */
  readonly createOutput: (name: string, requestKeyframe: (trackId: number) => void) => OutboundStream | null;
  /** Asks for a keyframe of an inbound track. */
  readonly requestSourceKeyframe: (trackId: number) => void;
  readonly playlists: (stream: OutboundStream, profile: OutputProfileConfig, tracks: readonly Track[]) => Playlist[];
  /** Streams of the outputs before these; default: there are none. */
  readonly inherited?: InheritedOutputs;
  /** An inherited stream has ended that these outputs do not make. */
  readonly onDisinherited?: (stream: OutboundStream) => void;
  /** Shared by all streams. */
  readonly turns: Turns;
  readonly newcomer: Omit<Newcomer, 'enter'>;
}

/** An output profile that makes no stream. */
export interface LeftOutProfile {
  /** Name of the stream that it would have made. */
  readonly output: string;
  readonly profile: OutputProfileConfig;
  readonly sentence: string;
}

/** The outputs as an inbound stream sees them. */
export type Outputs = Pick<
  StreamOutputs,
  | 'streams'
  | 'leftOut'
  | 'urgency'
  | 'neededAt'
  | 'passesVideo'
  | 'setTracks'
  | 'renewPlaylists'
  | 'push'
  | 'pushAhead'
  | 'drain'
  | 'settle'
  | 'release'
  | 'close'
>;

/** All outbound streams of one inbound stream: one for each output profile. */
export class StreamOutputs {
  readonly #options: StreamOutputsOptions;
  readonly #maps: OutboundMap[] = [];
  readonly #leftOut: LeftOutProfile[] = [];
  readonly #inherited: InheritedOutputs;
  #job: TranscodeJob | null = null;
  #plans: OutputPlan;
  /** Packets from before the plans, or of the first turn. */
  readonly #early = new PacketHold();
  /** By inbound track; empty when no profile asks for frame rates. */
  readonly #probes = new Map<number, FramerateProbe>();
  #probing: boolean;
  readonly #figures: SourceFigures = {
    framerate: ({ id, framerateConf }) => this.#probes.get(id)?.rate(framerateConf) ?? framerateConf,
  };
  #complete = false;
  /** No advice is outstanding. */
  #advised: boolean;
  /** While advice is being requested. */
  #advising: AbortController | null = null;
  /** While it waits for its turn. */
  #waiting: Newcomer | null = null;
  #planned = false;
  #tracks: readonly Track[] = [];
  readonly #epoch = new StreamEpoch();
  /** By inbound track. */
  readonly #sourceAskedAt = new Map<number, number>();
  /** A turn with packets has ended: the wall clock of media time 0 is known. */
  #playing = false;
  #scheduled = false;
  #closed = false;

  constructor(options: StreamOutputsOptions) {
    this.#options = options;
    this.#plans = options;
    this.#inherited = options.inherited ?? new InheritedOutputs();
    this.#advised = options.advise === undefined;
    // The advice may contain profiles that depend on the frame rate.
    this.#probing = !this.#advised || options.profiles.some(needsFramerate);
  }

  /** In order of the profiles; inherited streams come first. */
  get streams(): readonly OutboundStream[] {
    return [...this.#inherited.streams, ...this.#maps.map((map) => map.stream)];
  }

  /** Profiles that have made no stream. */
  get leftOut(): readonly LeftOutProfile[] {
    return this.#leftOut;
  }

  /** How soon publishers and the transcoder need packets. The wall clock of media time 0 needs the first ones at once, which tell it. */
  get urgency(): Urgency {
    if (!this.#planned || !this.#playing) return Urgency.REAL_TIME;
    let most: Urgency = this.#job?.active === true ? Urgency.LOW_LATENCY : Urgency.NONE;
    for (const { stream } of this.#maps) {
      const { urgency } = stream;
      if (urgency > most) most = urgency;
    }
    return most;
  }

  /** When publishers and the transcoder need packets, as the wall clock says it, ms: see `IngestStream`. */
  get neededAt(): number {
    let first = Number.POSITIVE_INFINITY;
    if (!this.#planned || !this.#playing || this.#job?.active === true) first = Number.NEGATIVE_INFINITY;
    for (const { stream } of this.#maps) first = Math.min(first, stream.neededAt);
    return first;
  }

  /** Frames of the source reach viewers as they are. */
  get passesVideo(): boolean {
    return this.#maps.some(({ bypassedVideos }) => bypassedVideos.length > 0);
  }

  /**
   * The present tracks of the inbound stream. While `complete` is false, some are missing, and outbound streams wait for them as long as
   * packets can be held. They also wait for frame rates, if a profile needs them.
   */
  setTracks(tracks: readonly Track[], complete: boolean): void {
    // Earlier packets belong to the previous tracks.
    if (this.#planned && !this.#playing) this.drain();
    this.#tracks = tracks;
    this.#complete ||= complete;
    if (this.#planned) this.#plan();
    else if (!this.#advised) this.#seekAdvice();
    else if (this.#ready) this.#await();
  }

  /** The source has announced other playlists. */
  renewPlaylists(): void {
    for (const map of this.#maps) map.announceAgain();
  }

  /** `arrivedAt`: wall clock, ms, of when the packet came. */
  push(packet: Packet, arrivedAt = this.#options.clock.now()): void {
    // Events carry the time of media that has come before, so they say nothing about the wall clock.
    const isMedia = packet.event === undefined;
    if (isMedia && this.#epoch.observe(toMilliseconds(packet.dts, packet.track.timebase), arrivedAt)) this.#tellEpoch();
    if (this.#planned && this.#playing) {
      this.#route(packet);
      return;
    }
    this.#early.push(packet);
    if (this.#planned) return;
    if (this.#probing) this.#probe(packet);
    if (!this.#advised) {
      this.#seekAdvice();
      return;
    }
    // While the stream waits for its turn, the source's times do not shorten the wait.
    if (this.#waiting !== null && this.#early.heavy) this.#begin();
    else if (this.#early.full || (this.#probing && this.#ready)) this.#await();
  }

  /** Takes an urgent event, which passes all waiting packets; no packets wait here. */
  pushAhead(packet: Packet): void {
    this.push(packet);
  }

  /**
   * All packets of this turn have been pushed. The first packets are held until this call: together they determine the wall clock of media
   * time 0, which publishers read with their first packet.
   */
  drain(): void {
    if (!this.#playing && Number.isFinite(this.#epoch.value)) {
      this.#playing = true;
      this.#epoch.settle();
      this.#tellEpoch();
      if (this.#planned) this.#routeEarly();
    }
    for (const map of this.#maps) map.stream.drain();
  }

  /** Its source has left for this reason: true if the held packets take a while to be passed on; `done` is called afterwards. */
  settle(_reason: CloseReason, _done: () => void): boolean {
    return false;
  }

  /** Ends, and leaves the outbound streams to other outputs of the same inbound stream. */
  release(): InheritedOutputs {
    const { streams } = this;
    this.#end();
    return new InheritedOutputs(streams);
  }

  /** Ends all outbound streams. Idempotent. */
  close(reason: CloseReason): void {
    if (this.#closed) return;
    const { streams } = this;
    this.#end();
    for (const stream of streams) stream.close(reason);
  }

  #end(): void {
    this.#closed = true;
    this.#leave();
    this.#advising?.abort();
    this.#job?.close();
    this.#early.clear();
    for (const map of this.#maps) map.close();
  }

  /** Asks once, when the tracks are known or the hold is full; a late answer is ignored. */
  #seekAdvice(): void {
    const { advise, newcomer } = this.#options;
    if (this.#advising !== null) {
      if (this.#early.heavy) this.#advising.abort();
      return;
    }
    if (advise === undefined || !(this.#complete || this.#early.full)) return;
    const advising = new AbortController();
    this.#advising = advising;
    advise(advising.signal)
      .then((plan) => this.#follow(advising, plan))
      .catch(newcomer.failed);
  }

  #follow(advising: AbortController, plan: OutputPlan | null): void {
    if (this.#advising !== advising || this.#closed) return;
    this.#advising = null;
    if (plan === null) {
      this.#early.clear();
      return;
    }
    this.#advised = true;
    this.#plans = plan;
    this.#probing = plan.profiles.some(needsFramerate);
    if (!this.#ready && !this.#early.full) return;
    this.#await();
    this.drain();
  }

  /** Everything that plans depend on is known. */
  get #ready(): boolean {
    if (!this.#complete) return false;
    return !this.#probing || this.#tracks.every((track) => !isVideoTrack(track) || this.#probes.get(track.id)?.settled === true);
  }

  #probe(packet: Packet): void {
    const { track } = packet;
    if (!isVideoTrack(track)) return;
    let probe = this.#probes.get(track.id);
    if (probe === undefined) {
      probe = new FramerateProbe();
      this.#probes.set(track.id, probe);
    }
    probe.count(packet);
  }

  #tellEpoch(): void {
    for (const { stream } of this.#maps) stream.startedAt = this.#epoch.value;
  }

  /** Begins when it is the turn of this stream: now, where there is no flood. */
  #await(): void {
    if (this.#waiting !== null) return;
    let isLate = false;
    const enter = (): void => {
      this.#begin();
      // Passing on the first packets costs as much as the start, so it belongs to the same turn.
      if (isLate) this.drain();
    };
    this.#waiting = { ...this.#options.newcomer, enter };
    this.#options.turns.take(this.#waiting);
    isLate = true;
  }

  #leave(): void {
    if (this.#waiting !== null) this.#options.turns.leave(this.#waiting);
    this.#waiting = null;
  }

  #begin(): void {
    if (this.#planned || this.#closed) return;
    this.#leave();
    this.#planned = true;
    const { vhost, app, stream, transcoder, clock, logger } = this.#options;
    const { decodes, overlays = [] } = this.#plans;
    const shared = { vhost, app, stream, decodes, overlays, clock, logger };
    this.#job = transcoder === null ? null : new TranscodeJob({ ...shared, transcoder, onOutput: () => this.#drainSoon() });
    this.#warn();
    for (const profile of this.#plans.profiles) {
      const map = this.#createMap(profile);
      if (map !== null) this.#maps.push(map);
    }
    const reason = { code: 'replaced', detail: 'its source changed, and no output profile makes it now' } as const;
    for (const gone of this.#inherited.close(reason)) this.#options.onDisinherited?.(gone);
    this.#plan();
    for (const map of this.#maps) this.#warnOfUncovered(map, overlays);
    if (this.#playing) this.#routeEarly();
    if (this.#maps.length > 0) this.#drainSoon();
  }

  #route(packet: Packet): void {
    if (packet.event === undefined) this.#job?.push(packet);
    else if (isMarker(packet.event)) this.#job?.forceKeyframes(rescale(packet.pts, packet.track.timebase, MPEG_90K));
    for (const map of this.#maps) map.route(packet);
  }

  #routeEarly(): void {
    for (let packet = this.#early.shift(); packet !== undefined; packet = this.#early.shift()) this.#route(packet);
  }

  #createMap(profile: OutputProfileConfig): OutboundMap | null {
    const { stream: inbound, createOutput, playlists } = this.#options;
    const name = profile.outputStreamName.replaceAll('${OriginStreamName}', inbound);
    const requestKeyframe = (trackId: number): void => this.#requestKeyframe(profile, trackId);
    const inherited = this.#inherited.take(name);
    if (inherited !== null) inherited.requestKeyframe = requestKeyframe;
    const stream = inherited ?? createOutput(name, requestKeyframe);
    if (stream === null) {
      const sentence = `the output profile '${profile.name}' makes no stream: there is one of the name '${name}' already`;
      this.#leftOut.push({ output: name, profile, sentence });
      return null;
    }
    if (this.#playing) stream.startedAt = this.#epoch.value;
    stream.estimatedStart = () => this.#epoch.estimate;
    const announce = (tracks: readonly Track[]): void => stream.setTracks(tracks, playlists(stream, profile, tracks));
    return new OutboundMap({ profile, stream, logger: this.#options.logger, announce });
  }

  #requestKeyframe(profile: OutputProfileConfig, trackId: number): void {
    const map = this.#maps.find((candidate) => candidate.profile === profile);
    const planned = map?.plannedTrack(trackId);
    if (map !== undefined && planned?.kind === 'video') this.#job?.requestKeyframe(map, planned.key);
    else if (planned?.kind === 'bypass' && planned.source.type === 'video') this.#requestSourceKeyframe(planned.source.id);
  }

  #requestSourceKeyframe(trackId: number): void {
    const now = this.#options.clock.monotonic();
    if (now - (this.#sourceAskedAt.get(trackId) ?? Number.NEGATIVE_INFINITY) < SOURCE_REQUEST_INTERVAL_MS) return;
    this.#sourceAskedAt.set(trackId, now);
    this.#options.requestSourceKeyframe(trackId);
  }

  #plan(): void {
    for (const map of this.#maps) map.follow(this.#planOf(map.profile));
    this.#job?.follow(this.#maps, this.#tracks);
    for (const map of this.#maps) map.settle();
  }

  /** Without a transcoder encodes are left out. */
  #planOf(profile: OutputProfileConfig) {
    const plan = planOutput(profile, this.#tracks, this.#figures);
    return this.#job === null ? plan.filter(({ kind }) => kind === 'bypass') : plan;
  }

  /** Describes the tracks that viewers will miss. */
  #warn(): void {
    const { logger } = this.#options;
    const { profiles } = this.#plans;
    if (profiles.length === 0) logger.warn({}, 'application has no output profile: the stream cannot be watched');
    for (const profile of profiles) {
      const { videos, audios, images } = profile.encodes;
      if (videos.length + audios.length + images.length === 0) {
        logger.warn({ profile: profile.name }, `output profile '${profile.name}' has no encodes: its stream carries no media`);
      }
      const names = planOutput(profile, this.#tracks, this.#figures).flatMap(({ kind, variantName }) =>
        kind === 'bypass' ? [] : [variantName],
      );
      if (this.#job !== null || names.length === 0) continue;
      logger.warn(
        { profile: profile.name, encodes: names },
        `output profile '${profile.name}' asks for encoding, but this server has no transcoder: left out ${names.join(', ')}`,
      );
    }
  }

  /** Warns of overlays on bypassed video: frames that are not decoded cannot get an image. */
  #warnOfUncovered({ profile, stream }: OutboundMap, overlays: readonly OverlayRule[]): void {
    const names = planOutput(profile, this.#tracks, this.#figures).flatMap(({ kind, source, variantName }) =>
      kind === 'bypass' && source.type === 'video' && overlaysFor(overlays, stream, variantName).length > 0 ? [variantName] : [],
    );
    if (names.length === 0) return;
    const { logger } = this.#options;
    logger.warn({ output: stream.name, encodes: names }, `no overlay lies over ${names.join(', ')}: the video passes as it is`);
  }

  #drainSoon(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      try {
        if (!this.#closed) this.drain();
      } catch (error) {
        this.#options.logger.error({ err: error }, 'the output streams failed inside the server');
      }
    });
  }
}
