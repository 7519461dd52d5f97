import type { Clock } from '../util/clock.ts';
import type { CloseReason, IngestStream, SourceCue, SourceEvent, SourcePacket } from './ingest.ts';
import type { PullSink } from './pull.ts';
import { Urgency } from './urgency.ts';

/** Dependencies of a link, which never closes the stream. */
export interface SourceLinkOptions {
  readonly stream: Omit<IngestStream, 'close'>;
  readonly clock: Clock;
  /** The provider's part of the application's configuration. */
  readonly settings?: unknown;
  /** The source says that it has ended, or failed. Called at most once, and not after `cut`. */
  readonly onClose: (reason: CloseReason) => void;
}

/**
 * The handle of a source, pushed or pulled, on its stream. When the stream gets another source the link is cut; packets that still arrive
 * are discarded.
 */
export class SourceLink implements IngestStream, PullSink {
  /** Packets that have come. */
  packets = 0;
  readonly #stream: SourceLinkOptions['stream'];
  readonly #clock: Clock;
  readonly #onClose: (reason: CloseReason) => void;
  /** When media came last, or the link was made; monotonic ms. */
  #heardAt: number;
  #hasMedia = false;
  readonly settings: unknown;
  #cut = false;

  constructor({ stream, clock, settings, onClose }: SourceLinkOptions) {
    this.settings = settings;
    this.#stream = stream;
    this.#clock = clock;
    this.#onClose = onClose;
    this.#heardAt = clock.monotonic();
  }

  get vhost(): string {
    return this.#stream.vhost;
  }

  get name(): string {
    return this.#stream.name;
  }

  get closed(): boolean {
    return this.#cut || this.#stream.closed;
  }

  get urgency(): Urgency {
    return this.#cut ? Urgency.NONE : this.#stream.urgency;
  }

  get neededAt(): number {
    return this.#stream.neededAt;
  }

  /** When media came last, monotonic ms; null: none has come. */
  get heardAt(): number | null {
    return this.#hasMedia ? this.#heardAt : null;
  }

  /** Since media came last, or the link was made, ms. */
  get silence(): number {
    return this.#clock.monotonic() - this.#heardAt;
  }

  heard(): void {
    this.#hasMedia = true;
    this.#heardAt = this.#clock.monotonic();
  }

  setTracks(...announced: Parameters<IngestStream['setTracks']>): void {
    if (!this.#cut) this.#stream.setTracks(...announced);
  }

  push(packet: SourcePacket): void {
    if (this.#cut) return;
    this.packets += 1;
    this.heard();
    this.#stream.push(packet);
  }

  pushEvent(event: SourceEvent): boolean {
    return !this.#cut && this.#stream.pushEvent(event);
  }

  pushCue(language: string, cue: SourceCue): boolean {
    return !this.#cut && this.#stream.pushCue(language, cue);
  }

  countBytes(bytes: number): void {
    if (!this.#cut) this.#stream.countBytes(bytes);
  }

  close(reason: CloseReason): void {
    if (this.#cut) return;
    this.#cut = true;
    this.#onClose(reason);
  }

  /** From now on the stream has another source, or none. Idempotent. */
  cut(): void {
    this.#cut = true;
  }
}
