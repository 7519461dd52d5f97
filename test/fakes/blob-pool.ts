/** A delivery pool with shelf views, short limits, and options of the test. */

import type { CrossDomainRules, DeliveryFeed, Span } from '../../src/delivery/feed/messages.ts';
import { DEFAULT_DELIVERY_LIMITS } from '../../src/delivery/pool/delivery-limits.ts';
import { DeliveryPool } from '../../src/delivery/pool/delivery-pool.ts';
import type { DeliveryPoolOptions } from '../../src/delivery/pool/delivery-pool-options.ts';
import type { DeliveryLimits } from '../../src/delivery/thread-protocol.ts';
import { systemClock } from '../../src/util/clock.ts';
import type { BlobUpdate } from './blob-view.ts';
import { BLOB_VIEWS } from './blob-views.ts';
import { RecordingLogger } from './recording-logger.ts';

/** The packager's end of a feed of files: keeps their list, for threads that start later. */
export class BlobFeed {
  readonly feed: DeliveryFeed;
  /** Present viewers, with the bytes sent to them. */
  readonly viewers = new Map<string, { bytes: number; readonly terminate: () => void }>();
  bytes = 0;
  /** Number of times that a first viewer came. */
  comings = 0;
  readonly #items = new Map<string, BlobUpdate & { put: string }>();

  constructor(
    pool: DeliveryPool,
    stream: string,
    options: { vhost?: string; kind?: 'llhls' | 'hlsv3' | 'thumbnail'; crossDomains?: CrossDomainRules | null } = {},
  ) {
    this.feed = pool.openFeed({
      kind: options.kind ?? 'llhls',
      address: { vhost: options.vhost ?? 'default', app: 'app', stream },
      crossDomains: options.crossDomains ?? null,
      settings: {},
      bytesPerSecond: 0,
      snapshot: () => [...this.#items.values()],
      openSession: ({ id, onTerminate }) => {
        const viewer = { bytes: 0, terminate: () => onTerminate('the test wants it') };
        this.viewers.set(id, viewer);
        return {
          countBytes: (bytes) => {
            viewer.bytes += bytes;
          },
          close: () => this.viewers.delete(id),
        };
      },
      onWatched: () => {
        this.comings += 1;
      },
      onBytesSent: (bytes) => {
        this.bytes += bytes;
      },
    });
  }

  get sessions(): number {
    return this.viewers.size;
  }

  putText(name: string, text: string): void {
    this.#put({ put: name, text: [text] });
  }

  putFile(name: string, path: string): void {
    this.#put({ put: name, path });
  }

  putBytes(name: string, bytes: Uint8Array): readonly Span[] {
    const spans = this.feed.store([bytes]);
    this.#put({ put: name, spans });
    return spans;
  }

  drop(name: string): void {
    const item = this.#items.get(name);
    this.#items.delete(name);
    this.feed.update({ drop: name });
    if (item !== undefined && 'spans' in item) this.feed.release(item.spans);
  }

  #put(update: BlobUpdate & { put: string }): void {
    this.#items.set(update.put, update);
    this.feed.update(update);
  }
}

export interface BlobPool {
  readonly pool: DeliveryPool;
  readonly logger: RecordingLogger;
  /** Number of times that a first client came. */
  readonly comings: () => number;
}

/** `more`: options of the pool. */
export async function startBlobPool(
  threads: number,
  limits: Partial<DeliveryLimits> = {},
  more: Partial<DeliveryPoolOptions> = {},
): Promise<BlobPool> {
  const logger = new RecordingLogger();
  let comings = 0;
  const pool = new DeliveryPool({
    threads,
    views: BLOB_VIEWS,
    workerEntry: new URL('./blob-worker.ts', import.meta.url),
    onWatched: () => {
      comings += 1;
    },
    limits: { ...DEFAULT_DELIVERY_LIMITS, reportInterval: 20, stopGrace: 200, ...limits },
    clock: systemClock,
    logger,
    ...more,
  });
  await pool.start();
  pool.setHosts([
    { name: 'example', hostNames: ['*.example'] },
    { name: 'default', hostNames: ['127.0.0.1', 'localhost'] },
  ]);
  return { pool, logger, comings: () => comings };
}
