import type { Clock } from '../util/clock.ts';
import type { Logger } from '../util/logger.ts';
import type { CloseReason, IngestRequest } from './ingest.ts';
import { SilenceWatch } from './silence-watch.ts';
import { SourceLink, type SourceLinkOptions } from './source-link.ts';
import type { TrafficMeter } from './traffic-meter.ts';

/** The tools of a stream's source; the stream owns the meter. */
export interface StreamSourceOptions {
  /** The request of the first source. */
  readonly request: IngestRequest;
  /** How long to wait for another source, ms. */
  readonly keepMs: number;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly meter: TrafficMeter;
  /** The source has sent neither audio nor video for the permitted time, ms. */
  readonly onSilent: (limit: number) => void;
}

/** The present or last source of an inbound stream, with its link. Counts as an ingest while present. The stream closes it. */
export class StreamSource {
  /** Number of changes of the source. */
  changes = 0;
  readonly silenceWatch: SilenceWatch;
  readonly keepMs: number;
  readonly #clock: Clock;
  readonly #meter: TrafficMeter;
  #request: IngestRequest;
  #link: SourceLink | null = null;
  #present = true;
  #url: string;
  #lossTimer: NodeJS.Timeout | undefined;

  constructor({ request, keepMs, clock, logger, meter, onSilent }: StreamSourceOptions) {
    this.#request = request;
    this.#url = request.sourceUrl;
    this.keepMs = keepMs;
    this.#clock = clock;
    this.#meter = meter;
    this.silenceWatch = new SilenceWatch({ clock, logger, onSilent });
  }

  /** The request of the source. */
  get request(): IngestRequest {
    return this.#request;
  }

  /** The origin of its media. */
  get url(): string {
    return this.#url;
  }

  /** False between two sources, while the stream waits for the next one. */
  get present(): boolean {
    return this.#present;
  }

  /** The stream was pushed to us, so that another source may take it over. */
  get linked(): boolean {
    return this.#link !== null;
  }

  /** The media comes from another place now. */
  moveTo(url: string): void {
    this.#url = url;
  }

  /** A source begins. It has `silenceTimeoutMs` to send audio or video; 0: no limit. */
  begin(silenceTimeoutMs: number): void {
    this.#meter.ingestOpened(this.#request.provider);
    this.silenceWatch.start(silenceTimeoutMs);
  }

  /** Links the source to its stream. */
  link(options: Omit<SourceLinkOptions, 'clock'>): SourceLink {
    this.#link = new SourceLink({ ...options, clock: this.#clock });
    return this.#link;
  }

  /** Another source takes over. Returns the request of a source that was still present, which has to be notified. */
  replace(request: IngestRequest, silenceTimeoutMs: number): IngestRequest | null {
    const before = this.#present ? this.#request : null;
    if (before !== null) this.#meter.ingestClosed(before.provider);
    clearTimeout(this.#lossTimer);
    this.#link?.cut();
    this.#request = request;
    this.#url = request.sourceUrl;
    this.#present = true;
    this.begin(silenceTimeoutMs);
    return before;
  }

  /** The source is gone: packets that still arrive through its link are discarded. */
  leave(): void {
    this.#present = false;
    this.#link?.cut();
    this.silenceWatch.stop();
    this.#meter.ingestClosed(this.#request.provider);
  }

  /** Calls `giveUp` if no other source has come within `keepMs`. */
  awaitNext(giveUp: () => void): void {
    this.#lossTimer = setTimeout(giveUp, this.keepMs);
  }

  /** No other source can take over any more: a new source is a new stream. */
  unlink(): void {
    this.#link = null;
  }

  /** The stream has ended. */
  close(): void {
    this.silenceWatch.stop();
    clearTimeout(this.#lossTimer);
    if (this.#present) this.#meter.ingestClosed(this.#request.provider);
  }

  /** Tells the source that the server ends it. */
  tellClosed(reason: CloseReason): void {
    this.#request.onClose(reason);
  }
}
