/** An ingest gate that records all calls of a provider, for tests without a server. */
import {
  type CloseReason,
  type IngestGate,
  IngestRefused,
  type IngestRequest,
  type IngestStream,
  type SourceCue,
  type SourceEvent,
  type SourcePacket,
  type SourceTrack,
} from '../../src/core/ingest.ts';
import { Urgency } from '../../src/core/urgency.ts';
import { Changes } from './changes.ts';

export class FakeIngestStream implements IngestStream {
  readonly vhost = 'default';
  readonly target: { host: string; app: string };
  readonly request: IngestRequest;
  /** Every `setTracks` call. */
  readonly trackSets: (readonly SourceTrack[])[] = [];
  readonly packets: SourcePacket[] = [];
  readonly events: SourceEvent[] = [];
  readonly cues: (SourceCue & { readonly language: string })[] = [];
  bytes = 0;
  urgency: Urgency = Urgency.REAL_TIME;
  neededAt = Number.NEGATIVE_INFINITY;
  closeReason: CloseReason | null = null;
  /** Thrown by `setTracks`. */
  fault: Error | null = null;
  settings: unknown;
  readonly #changes = new Changes();

  constructor(target: { host: string; app: string }, request: IngestRequest) {
    this.target = target;
    this.request = request;
  }

  get name(): string {
    return this.request.streamName;
  }

  get closed(): boolean {
    return this.closeReason !== null;
  }

  /** The tracks of the last announcement. */
  get tracks(): readonly SourceTrack[] {
    return this.trackSets.at(-1) ?? [];
  }

  setTracks(tracks: readonly SourceTrack[]): void {
    if (this.fault !== null) throw this.fault;
    this.trackSets.push(tracks);
    this.#changes.notify();
  }

  push(packet: SourcePacket): void {
    this.packets.push(packet);
    this.#changes.notify();
  }

  pushEvent(event: SourceEvent): boolean {
    this.events.push(event);
    this.#changes.notify();
    return true;
  }

  pushCue(language: string, cue: SourceCue): boolean {
    this.cues.push({ language, ...cue });
    this.#changes.notify();
    return true;
  }

  countBytes(bytes: number): void {
    this.bytes += bytes;
  }

  close(reason: CloseReason): void {
    this.closeReason ??= reason;
    this.#changes.notify();
  }

  until(predicate: (stream: this) => boolean): Promise<void> {
    return this.#changes.until(() => predicate(this));
  }
}

export class FakeIngestGate implements IngestGate {
  readonly streams: FakeIngestStream[] = [];
  /** When set, every ingest is refused with this code. */
  refusal: IngestRefused['code'] | null = null;
  /** `fault` of streams opened from now on. */
  fault: Error | null = null;
  settings: unknown;
  readonly #changes = new Changes();

  checkIngest(): void {
    if (this.refusal !== null) throw new IngestRefused(this.refusal, `refused by the test: ${this.refusal}`);
  }

  openIngest(target: { host: string; app: string }, request: IngestRequest): IngestStream {
    this.checkIngest();
    const stream = new FakeIngestStream(target, request);
    stream.fault = this.fault;
    stream.settings = this.settings;
    this.streams.push(stream);
    this.#changes.notify();
    return stream;
  }

  /** Resolves with the `index`-th ingest once it is open. */
  async stream(index = 0): Promise<FakeIngestStream> {
    await this.#changes.until(() => this.streams.length > index);
    return this.streams[index]!;
  }
}
