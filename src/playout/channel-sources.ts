import type { Logger } from '../util/logger.ts';
import { FileSource } from './file-source.ts';
import type { ItemSource, ItemSources } from './item-source.ts';
import type { MediaRoot } from './media-root.ts';

/** What the items of a channel are opened with. */
export interface ChannelSourcesOptions {
  readonly root: MediaRoot;
  readonly logger: Logger;
}

/** Opens the items of a channel. Needs no closing. */
export class ChannelSources implements ItemSources {
  readonly #options: ChannelSourcesOptions;

  constructor(options: ChannelSourcesOptions) {
    this.#options = options;
  }

  async open(url: string, { position, signal }: { readonly position: number; readonly signal: AbortSignal }): Promise<ItemSource> {
    const { root, logger } = this.#options;
    if (url.startsWith('file://')) return await FileSource.open(url, { root, position, signal, logger });
    throw new Error(`${JSON.stringify(url)} is neither file:// nor stream://`);
  }
}
