/** Pulls requested streams that are not being published, if the virtual host has an origin for them. */
import type { OriginsConfig } from '../config/index.ts';
import { AddressShares, type AddressSlot } from '../util/address-shares.ts';
import type { Clock } from '../util/clock.ts';
import type { Logger } from '../util/logger.ts';
import type { Application } from './application.ts';
import type { Drain } from './drain.ts';
import { IngestRefused } from './ingest.ts';
import { mappedPull, originPull, type SecretKeys, type WantedStream } from './origins.ts';
import { type PullDefinition, PullFailed } from './pull.ts';
import { streamKey, streamText } from './stream-address.ts';

/** Streams that are being pulled for viewers at once; requests for more are answered as if the stream did not exist. */
const MAX_PENDING = 200;
/** Limit for one address: its requests for missing streams must not keep other clients from existing streams. */
const MAX_PENDING_PER_ADDRESS = 64;
/** An origin that failed is not asked again for this long, ms. */
const FAILURE_MEMORY_MS = 1000;
const MAX_FAILURES = 1000;
/** A source that was reached gets this long to tell its tracks, ms. */
const PLAYABLE_MS = 5000;

const NO_SEAT: AddressSlot = { leave: () => undefined };

/** As publishers see it: whether a missing stream may come. */
export interface StreamFinder {
  /**
   * Null if no origin can be asked for the stream now, or it is there already; otherwise resolves with whether it is there now. Never
   * rejects.
   */
  find(wanted: WantedStream): Promise<boolean> | null;
  /** No viewer may begin: the server is being drained. Absent: never. */
  readonly draining?: boolean;
  /** Whether the stream might be at another server that cannot be asked at present. Absent: never. */
  isUnknown?(wanted: Omit<WantedStream, 'query'>): boolean;
}

/** Knows which server has a stream. */
export interface OriginLocator {
  /** Whether it can be asked; while it cannot, null from `locate` means nothing. */
  readonly reachable: boolean;
  /** Resolves with its URL; null if no server is known to have it. Never rejects. */
  locate(app: string, stream: string): Promise<string | null>;
}

/** How demands find their application, an origin, and the puller. */
export interface StreamDemandOptions {
  readonly application: (vhost: string, app: string) => Application | undefined;
  /** The application of that name, or one made for the occasion; asked only for streams that an origin has. */
  readonly applicationOnDemand: (vhost: string, app: string) => Application | undefined;
  readonly origins: (vhost: string) => Partial<OriginsConfig> | undefined;
  /** Query parameters with viewers' credentials, which origins must not see; absent: none. */
  readonly secrets?: (vhost: string, app: string) => SecretKeys;
  /** Asked for streams that no origin of the virtual host matches. */
  readonly originMap: (vhost: string) => OriginLocator | undefined;
  /** Rejects with `IngestRefused` or `PullFailed`. */
  readonly pull: (application: Application, definition: PullDefinition) => Promise<void>;
  /** True while nothing may be pulled; absent: never. */
  readonly drain?: Pick<Drain, 'active'>;
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * One for the server. Viewers who wait for the same stream share one pull, and a failed pull is not repeated at once. Needs no closing.
 */
export class StreamDemand implements StreamFinder {
  readonly #options: StreamDemandOptions;
  /** Pulls on their way, by `streamKey`. */
  readonly #pending = new Map<string, Promise<boolean>>();
  /** When a pull failed, monotonic ms; the oldest are forgotten first. */
  readonly #failures = new Map<string, number>();
  readonly #shares = new AddressShares({ perAddress: MAX_PENDING_PER_ADDRESS, total: MAX_PENDING });
  /** Demands that were refused because there were too many. */
  refused = 0;

  constructor(options: StreamDemandOptions) {
    this.#options = options;
  }

  /** Streams that are being pulled for viewers now. */
  get pending(): number {
    return this.#pending.size;
  }

  get draining(): boolean {
    return this.#options.drain?.active === true;
  }

  find(wanted: WantedStream): Promise<boolean> | null {
    if (this.draining) return null;
    const { vhost, app, stream } = wanted;
    const existing = this.#options.application(vhost, app);
    if (existing?.isPlayable(stream) === true) return null;
    const origins = this.#options.origins(vhost);
    const definition = originPull(origins, wanted, this.#options.secrets?.(vhost, app));
    const map = definition === null ? this.#options.originMap(vhost) : undefined;
    if (definition === null && map === undefined) return null;
    const key = streamKey(wanted);
    const pending = this.#pending.get(key);
    if (pending !== undefined) return pending;
    if (this.#options.clock.monotonic() - (this.#failures.get(key) ?? Number.NEGATIVE_INFINITY) < FAILURE_MEMORY_MS) return null;
    const slot = this.#pending.size >= MAX_PENDING ? null : this.#slotOf(wanted);
    if (slot === null) {
      this.refused += 1;
      return null;
    }
    const pull = map === undefined ? this.#pull(wanted, definition, key) : this.#locateAndPull(wanted, map, key);
    if (pull === null) {
      slot.leave();
      return null;
    }
    const settled = pull.finally(() => {
      slot.leave();
      this.#pending.delete(key);
    });
    this.#pending.set(key, settled);
    return settled;
  }

  isUnknown(wanted: Omit<WantedStream, 'query'>): boolean {
    const { vhost, app, stream } = wanted;
    const existing = this.#options.application(vhost, app);
    if (existing?.isPlayable(stream) === true || existing?.hasStream(stream) === true) return false;
    if (this.#options.originMap(vhost)?.reachable !== false) return false;
    return originPull(this.#options.origins(vhost), { ...wanted, query: '' }) === null;
  }

  #slotOf({ client }: WantedStream): AddressSlot | null {
    return client === undefined ? NO_SEAT : this.#shares.enter(client);
  }

  /** An existing stream, whatever its source, is not looked up. */
  async #locateAndPull(wanted: WantedStream, map: OriginLocator, key: string): Promise<boolean> {
    const { vhost, app, stream } = wanted;
    const isThere = (): boolean => this.#options.application(vhost, app)?.hasStream(stream) === true;
    const url = isThere() ? null : await map.locate(app, stream);
    const successor = (): Promise<string | null> => map.locate(app, stream);
    const definition = url === null ? null : mappedPull(this.#options.origins(vhost), wanted, { url, successor });
    // It may have come meanwhile.
    const pull = definition === null && !isThere() ? null : this.#pull(wanted, definition, key);
    if (pull !== null) return await pull;
    if (map.reachable) this.#remember(key);
    return false;
  }

  /** Null if there is no application for it. Without a definition the stream is only waited for. */
  #pull({ vhost, app, stream }: WantedStream, definition: PullDefinition | null, key: string): Promise<boolean> | null {
    const application = this.#options.application(vhost, app) ?? this.#options.applicationOnDemand(vhost, app);
    return application === undefined ? null : this.#await(application, stream, definition, key);
  }

  async #await(application: Application, name: string, definition: PullDefinition | null, key: string): Promise<boolean> {
    const where = streamText({ vhost: application.vhost, app: application.name, stream: name });
    try {
      // An existing stream, whatever its source, is used as it is.
      if (definition !== null && !application.hasStream(name)) await this.#options.pull(application, definition);
      if (await application.awaitPlayable(name, PLAYABLE_MS)) return true;
      this.#options.logger.info({ stream: where }, `origin stream '${where}' has no output stream of that name yet`);
    } catch (error) {
      if (!(error instanceof PullFailed) && !(error instanceof IngestRefused)) {
        this.#options.logger.error({ stream: where, err: error }, `origin stream '${where}' could not be pulled`);
      } else this.#options.logger.info({ stream: where }, `origin stream '${where}' could not be pulled: ${error.message}`);
    }
    this.#remember(key);
    return false;
  }

  #remember(key: string): void {
    this.#failures.delete(key);
    this.#failures.set(key, this.#options.clock.monotonic());
    for (const oldest of this.#failures.keys()) {
      if (this.#failures.size <= MAX_FAILURES) break;
      this.#failures.delete(oldest);
    }
  }
}
