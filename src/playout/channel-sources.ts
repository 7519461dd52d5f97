import type { StreamAddress } from '../core/stream-address.ts';
import type { Clock } from '../util/clock.ts';
import type { Logger } from '../util/logger.ts';
import { VainAttempts } from '../util/vain-attempts.ts';
import { FileSource } from './file-source.ts';
import type { ItemOpening, ItemSource, ItemSources } from './item-source.ts';
import type { LiveStreams } from './live-source.ts';
import type { ForeignFiles } from './media-file.ts';
import type { MediaRoot } from './media-root.ts';

/** Dependencies for opening the items of a channel. */
export interface ChannelSourcesOptions {
  /** The channel, so that it does not play itself. */
  readonly channel: StreamAddress;
  /** Where files lie; null: it plays none. */
  readonly root: MediaRoot | null;
  /** Reads files that are neither MP4 nor MPEG-TS; null: such items fail. */
  readonly foreign: ForeignFiles | null;
  /** Languages of the application's subtitles; files of other languages are not looked for. Default: none. */
  readonly languages?: readonly string[];
  /** Of the whole server. */
  readonly live: LiveStreams;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Opens the items of a channel. Needs no closing. */
export class ChannelSources implements ItemSources {
  readonly #options: ChannelSourcesOptions;
  readonly #vain: VainAttempts;

  constructor(options: ChannelSourcesOptions) {
    this.#options = options;
    this.#vain = new VainAttempts(options.clock);
  }

  async open(url: string, opening: ItemOpening): Promise<ItemSource> {
    const { root, foreign, live, channel, logger, languages = [] } = this.#options;
    if (url.startsWith('stream://')) return live.open(url, channel);
    if (!url.startsWith('file://')) throw new Error(`${JSON.stringify(url)} is neither file:// nor stream://`);
    if (root === null) throw new Error('there is no folder for files (MediaRootDir)');
    return await FileSource.open(url, { root, foreign, logger, languages, vain: this.#vain, ...opening });
  }
}
