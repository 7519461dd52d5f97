/** Posts the events of one inbound stream and its viewers. */
import type { Clock } from '../../util/clock.ts';
import type { CloseReason } from '../ingest.ts';
import type { StreamAddress } from '../stream-address.ts';
import { NO_NOTICES, type Notices } from './notice.ts';

/** The source of a stream's media. */
interface Source {
  readonly sourceType: string;
  readonly sourceUrl: string;
}

/** A viewer in notices. */
interface Viewer {
  readonly id: string;
  readonly kind: string;
  readonly createdAt: number;
  readonly out: { readonly total: number };
}

/** One for each stream. Streams that the API never lists are not posted. */
export class StreamNotices {
  readonly #notices: Notices;
  readonly #address: StreamAddress;
  readonly #clock: Clock;
  /** The URL in the last notice; null before the stream was listed. */
  #sourceUrl: string | null = null;
  #lost = false;
  readonly #ready = new Set<string>();

  constructor(notices: Notices | undefined, address: StreamAddress, clock: Clock) {
    this.#notices = notices ?? NO_NOTICES;
    this.#address = address;
    this.#clock = clock;
  }

  /** The API lists it from now on; later calls change nothing. */
  listed({ sourceType, sourceUrl }: Source): void {
    if (this.#sourceUrl !== null) return;
    this.#sourceUrl = sourceUrl;
    this.#notices.post({ type: 'stream.created', ...this.#address, sourceType, sourceUrl });
  }

  /** An output stream has its tracks. */
  ready(output: string): void {
    if (this.#ready.has(output)) return;
    this.#ready.add(output);
    this.#notices.post({ type: 'stream.ready', ...this.#address, output });
  }

  sourceLost({ code, detail }: CloseReason): void {
    if (this.#sourceUrl === null) return;
    this.#lost = true;
    this.#notices.post({ type: 'stream.sourceLost', ...this.#address, reason: code, detail });
  }

  /** A source has come; posted if it differs from the last source. */
  sourceCame({ sourceType, sourceUrl }: Source): void {
    if (this.#sourceUrl === null || (sourceUrl === this.#sourceUrl && !this.#lost)) return;
    this.#sourceUrl = sourceUrl;
    this.#lost = false;
    this.#notices.post({ type: 'stream.sourceChanged', ...this.#address, sourceType, sourceUrl });
  }

  ended({ code, detail }: CloseReason): void {
    if (this.#sourceUrl !== null) this.#notices.post({ type: 'stream.ended', ...this.#address, reason: code, detail });
  }

  sessionStarted({ id, kind }: Viewer): void {
    this.#notices.post({ type: 'session.started', ...this.#address, session: id, publisher: kind });
  }

  sessionEnded({ id, kind, createdAt, out }: Viewer, reason: string): void {
    const seconds = Math.max(0, Math.round((this.#clock.now() - createdAt) / 1000));
    this.#notices.post({ type: 'session.ended', ...this.#address, session: id, publisher: kind, reason, seconds, bytes: out.total });
  }
}
