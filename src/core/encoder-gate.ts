import { ProtocolError } from '../util/protocol-error.ts';
import type { IngestStream, SourceCue, SourceEvent, SourcePacket, SourceTrack } from './ingest.ts';
import { MediaRouter } from './media-router.ts';
import type { Playlist } from './playlist.ts';
import { SourceWatch } from './source-watch.ts';
import type { GatedStream } from './stand-in.ts';
import type { Urgency } from './urgency.ts';

/** Packets kept behind a closed gate: some seconds of audio, and one burst of everything. */
const MAX_WAITING = 1000;
const MAX_WAITING_BYTES = 33_554_432;
/** Minimum interval between two requests for a keyframe to one encoder, ms. */
const ASK_MS = 1000;

/** Dependencies of a gate. */
export interface EncoderGateOptions {
  readonly stream: GatedStream;
  /** Monotonic, ms. */
  readonly now: () => number;
  /**
   * The waiting packets begin with a keyframe. The result false discards them, and the next keyframe is awaited. `open` may be called
   * within this call or later.
   */
  readonly onReady: () => boolean;
}

/**
 * Sits between the link of an encoder and its stream. Open, it passes everything; closed, it keeps the latest keyframe, with which the
 * encoder could go on air, and everything after it.
 */
export class EncoderGate implements Omit<IngestStream, 'close'> {
  readonly #stream: GatedStream;
  readonly #options: EncoderGateOptions;
  #announced: readonly [tracks: readonly SourceTrack[], playlists: readonly Playlist[]] | null = null;
  /** The video as the router would normalise it; null while the gate is open. */
  #probe: MediaRouter | null = null;
  #hasKeyframe = false;
  /** `#waiting` begins with a packet with which the stream can begin. */
  #ready = false;
  #due = false;
  #waiting: SourcePacket[] = [];
  #bytes = 0;
  #watch = new SourceWatch();
  #malformed = 0;
  #askedAt = Number.NEGATIVE_INFINITY;

  constructor(options: EncoderGateOptions) {
    this.#options = options;
    this.#stream = options.stream;
  }

  get vhost(): string {
    return this.#stream.vhost;
  }

  get name(): string {
    return this.#stream.name;
  }

  get closed(): boolean {
    return this.#stream.closed;
  }

  get urgency(): Urgency {
    return this.#stream.urgency;
  }

  /** The awaited keyframe may come at any time. */
  get neededAt(): number {
    return this.#probe === null ? this.#stream.neededAt : Number.NEGATIVE_INFINITY;
  }

  /** The gate is shut. */
  get isShut(): boolean {
    return this.#probe !== null;
  }

  countBytes(bytes: number): void {
    this.#stream.countBytes(bytes);
  }

  setTracks(tracks: readonly SourceTrack[], playlists: readonly Playlist[] = []): void {
    if (this.#probe === null) this.#stream.setTracks(tracks, playlists);
    else {
      this.#stream.heardTracks(tracks);
      this.#probe.setTracks(tracks);
      this.#forgetWaiting();
      const wrong = this.#watch.change([], this.#options.now());
      if (wrong !== null) this.#stream.dismiss(wrong);
    }
    this.#announced = [tracks, playlists];
  }

  push(packet: SourcePacket): void {
    if (this.#probe === null) this.#stream.push(packet);
    else {
      this.#stream.heard(packet);
      this.#take(packet, this.#probe);
    }
  }

  /** Events of an encoder that is not on air belong to media that is not shown. */
  pushEvent(event: SourceEvent): boolean {
    return this.#probe === null && this.#stream.pushEvent(event);
  }

  /** As `pushEvent`. */
  pushCue(language: string, cue: SourceCue): boolean {
    return this.#probe === null && this.#stream.pushCue(language, cue);
  }

  /** From now on the encoder's packets wait. Idempotent. */
  shut(): void {
    if (this.#probe !== null) return;
    this.#watch = new SourceWatch();
    this.#probe = this.#freshProbe();
  }

  /** Passes everything, waiting packets first; announce the source to the stream before. */
  open(): void {
    if (this.#probe === null) return;
    this.#probe = null;
    this.#due = false;
    const waiting = this.#ready ? this.#waiting : [];
    this.#forgetWaiting();
    if (this.#announced === null) return;
    try {
      this.#stream.setTracks(...this.#announced);
    } catch (error) {
      // The encoder announced the tracks long ago, so the error cannot reach it through this call.
      if (!(error instanceof ProtocolError)) throw error;
      this.#stream.dismiss(error.message);
      return;
    }
    for (const packet of waiting) this.#stream.push(packet);
  }

  #take(packet: SourcePacket, probe: MediaRouter): void {
    const type = this.#typeOf(packet.trackId);
    if (type === 'video') this.#takeVideo(packet, probe);
    else if (type === 'audio') {
      this.#keep(packet);
      if (!this.#hasVideo) this.#ready = true;
    } else if (type === 'data' && this.#ready) this.#keep(packet);
    if (this.#ready) this.#tell();
  }

  #takeVideo(packet: SourcePacket, probe: MediaRouter): void {
    this.#hasKeyframe = false;
    probe.push(packet);
    const { malformed, firstFault } = probe.counters;
    if (malformed > this.#malformed) {
      this.#malformed = malformed;
      const wrong = this.#watch.fault(firstFault ?? 'unknown', this.#options.now());
      if (wrong !== null) this.#stream.dismiss(wrong);
    }
    if (this.#hasKeyframe) {
      // The keyframe goes before the audio that came earlier. In a burst only the last keyframe counts.
      const audio = this.#waiting.filter(({ trackId }) => this.#typeOf(trackId) === 'audio');
      this.#forgetWaiting();
      this.#keep(packet);
      this.#ready = true;
      for (const each of audio.slice(-MAX_WAITING / 2)) this.#keep(each);
      return;
    }
    if (this.#ready) this.#keep(packet);
    else this.#ask(packet.trackId);
  }

  #keep(packet: SourcePacket): void {
    this.#waiting.push(packet);
    this.#bytes += packet.data.length;
    while (this.#waiting.length > MAX_WAITING || this.#bytes > MAX_WAITING_BYTES) {
      // Without the first packet the rest cannot be decoded.
      if (this.#ready && this.#hasVideo) this.#forgetWaiting();
      else this.#bytes -= this.#waiting.shift()?.data.length ?? 0;
    }
  }

  /** Calls `onReady` after everything from the same read has been taken. */
  #tell(): void {
    if (this.#due) return;
    this.#due = true;
    setImmediate(() => {
      if (!this.#due || this.#probe === null || this.#stream.closed) return;
      this.#due = false;
      if (!this.#ready || this.#options.onReady()) return;
      this.#forgetWaiting();
      this.#probe = this.#freshProbe();
    });
  }

  #ask(trackId: number): void {
    const now = this.#options.now();
    if (now - this.#askedAt < ASK_MS) return;
    this.#askedAt = now;
    this.#stream.askKeyframe(trackId);
  }

  #freshProbe(): MediaRouter {
    this.#malformed = 0;
    const probe = new MediaRouter({
      onTracks: () => undefined,
      onPacket: ({ track, keyframe }) => {
        if (track.type === 'video' && keyframe) this.#hasKeyframe = true;
      },
    });
    // The tracks were valid when they were announced, so this cannot throw.
    if (this.#announced !== null) probe.setTracks(this.#announced[0]);
    return probe;
  }

  #forgetWaiting(): void {
    this.#waiting = [];
    this.#bytes = 0;
    this.#ready = false;
  }

  #typeOf(trackId: number): SourceTrack['type'] | undefined {
    return this.#announced?.[0].find(({ id }) => id === trackId)?.type;
  }

  get #hasVideo(): boolean {
    return this.#announced?.[0].some(({ type }) => type === 'video') === true;
  }
}
