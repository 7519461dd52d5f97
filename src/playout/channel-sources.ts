import type { StreamAddress } from '../core/stream-address.ts';
import type { Clock } from '../util/clock.ts';
import { FailedAttempts } from '../util/failed-attempts.ts';
import type { Logger } from '../util/logger.ts';
import { FileSource } from './file-source.ts';
import type { ItemOpening, ItemSource, ItemSources } from './item-source.ts';
import type { LiveStreams } from './live-source.ts';
import type { FfmpegFiles } from './media-file.ts';
import type { MediaRoot } from './media-root.ts';

/** Dependencies for opening the items of a channel. */
export interface ChannelSourcesOptions {
  /** The channel, so that it does not play itself. */
  readonly channel: StreamAddress;
  /** Where files lie; null: it plays none. */
  readonly root: MediaRoot | null;
  /** Reads files that are neither MP4 nor MPEG-TS; null: such items fail. */
  readonly foreign: FfmpegFiles | null;
  /** Languages of the application's subtitles; files of other languages are ignored. Default: none. */
  readonly languages?: readonly string[];
  /** The live streams of the whole server. */
  readonly live: LiveStreams;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Opens the items of a channel. Needs no closing. */
export class ChannelSources implements ItemSources {
  readonly #options: ChannelSourcesOptions;
  readonly #attempts: FailedAttempts;

  constructor(options: ChannelSourcesOptions) {
    this.#options = options;
    this.#attempts = new FailedAttempts(options.clock);
  }

  async open(url: string, opening: ItemOpening): Promise<ItemSource> {
    const { root, foreign, live, channel, logger, languages = [] } = this.#options;
    if (url.startsWith('stream://')) return live.open(url, channel);
    if (!url.startsWith('file://')) throw new Error(`${JSON.stringify(url)} is neither file:// nor stream://`);
    if (root === null) throw new Error('there is no folder for files (MediaRootDir)');
    return await FileSource.open(url, { root, foreign, logger, languages, attempts: this.#attempts, ...opening });
  }
}
