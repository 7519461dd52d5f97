/** Plays MPEG-TS files. */

import { TransportFeed } from '../ingest/transport-feed.ts';
import { MPEG_90K } from '../media/timebase.ts';
import type { Logger } from '../util/logger.ts';
import type { FileBytes } from './file-bytes.ts';
import type { FileEvent, MediaFile } from './media-file.ts';

const CHUNK_BYTES = 65_536;
/** For the rounds after the first, which have nothing new to say. */
const QUIET: Logger = {
  ...{ debug: nothing, info: nothing, warn: nothing, error: nothing, child: () => QUIET },
  get limited() {
    return QUIET;
  },
};

function nothing(): void {}

/** Reads a chunk at a time. The bytes stay the caller's, who closes them. */
export class TransportFile implements MediaFile {
  readonly #bytes: FileBytes;
  #feed: TransportFeed;
  /** At most what a chunk holds, and what the feed holds back until it knows the tracks. */
  #events: FileEvent[] = [];
  #next = 0;
  #at = 0;
  #ended = false;

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
  }

  async next(): Promise<FileEvent | null> {
    for (;;) {
      const event = this.#events[this.#next];
      if (event !== undefined) {
        this.#next += 1;
        return event;
      }
      this.#events = [];
      this.#next = 0;
      if (this.#ended) return null;
      await this.#readChunk();
    }
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
        // Splices of a file are those of the broadcast that it was taken from.
        pushEvent: () => false,
      },
      logger,
    });
  }
}
