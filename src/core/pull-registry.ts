import { isDeepStrictEqual } from 'node:util';
import { secretsOf } from '../config/index.ts';
import type { Clock } from '../util/clock.ts';
import { guarded } from '../util/guarded.ts';
import type { KnownSecrets } from '../util/known-secrets.ts';
import type { Logger } from '../util/logger.ts';
import type { Application } from './application.ts';
import { ControlError } from './definition.ts';
import { type CloseReason, IngestRefused } from './ingest.ts';
import type { SourceType } from './kinds.ts';
import { type PullDefinition, PullFailed, type PullSource, schemeOf, shownUrl } from './pull.ts';
import { PulledStream } from './pulled-stream.ts';
import { OWN_WORK, type SharedWork, type Work, type WorkSharing, type WorkState } from './shared-work.ts';
import { type ApplicationAddress, addressOf, streamKey, streamText } from './stream-address.ts';

/** A persistent stream as it is kept on disk. */
export interface PullDocument extends PullDefinition, ApplicationAddress {}

type PullName = Pick<PullDocument, 'vhost' | 'app' | 'name'>;

/** Where persistent streams are kept. */
export interface PullStore {
  save(document: PullDocument): Promise<void>;
  remove(document: PullName): Promise<void>;
}

/** Sources are found by the scheme of a URL. `application` looks one up each time, as applications come and go. */
export interface PullRegistryOptions {
  readonly sources: readonly PullSource[];
  readonly store: PullStore;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly application: (vhost: string, app: string) => Application | undefined;
  /** Learns the credentials for the sources, to hide them; absent: they are not registered. */
  readonly secrets?: KnownSecrets;
  /** Assigns persistent streams to nodes, and tells other nodes of them; default: all are this node's alone. */
  readonly work?: SharedWork & WorkSharing;
}

/** Interval of checks whether ended streams can return: viewers may wait for a stream that another node pulled. */
const RETURN_EVERY_MS = 250;
/** Maximum wait for the assignment of a new persistent stream to a node, ms. */
const TOLD_MS = 1500;

interface Entry {
  readonly pull: PulledStream;
  readonly document: PullDocument;
  /** False until the document is on disk. */
  saved: boolean;
  /** Reason of the end of the stream; null while it runs. */
  ended: CloseReason | null;
}

/** A persistent stream that waits for its return, as shown by the API. */
export interface WaitingStream {
  readonly vhost: string;
  readonly app: string;
  readonly name: string;
  /** Since when it waits; wall clock, ms since the epoch. */
  readonly createdAt: number;
  readonly sourceType: SourceType;
  /** Without user and password. */
  readonly sourceUrl: string;
}

interface Dormant {
  readonly document: PullDocument;
  readonly waiting: WaitingStream;
}

/** Owns the pulled streams of the server and keeps the persistent ones over restarts. */
export class PullRegistry {
  readonly #options: PullRegistryOptions;
  /** Pulls with a stream, by `streamKey`. */
  readonly #entries = new Map<string, Entry>();
  /** Pulls on disk, with or without a stream. */
  readonly #stored = new Map<string, PullDocument>();
  /**
   * Persistent pulls that ended without being deleted: their provider was switched off, another stream has their name, or another node
   * pulls them.
   */
  readonly #dormant = new Map<string, Dormant>();
  /** Pulls that leave the disk together with their application. */
  readonly #leaving = new Set<PullDocument>();
  /** Tail of the deletions of applications, which run one after the other. */
  #deletions: Promise<unknown> = Promise.resolve();
  #returning: NodeJS.Timeout | undefined;
  #shutDown = false;

  constructor(options: PullRegistryOptions) {
    this.#options = options;
  }

  /** Number of persistent streams that wait for their return. */
  get waiting(): number {
    return this.#dormant.size;
  }

  /** Pulls of an application, except those whose name is used by another stream meanwhile. */
  waitingIn(application: Application): WaitingStream[] {
    return Array.from(this.#dormant.values(), ({ waiting }) => waiting).filter(
      ({ vhost, app, name }) => vhost === application.vhost && app === application.name && !application.hasStream(name),
    );
  }

  /**
   * Removes the persistent streams of an application, or of a whole virtual host, from disk and then runs `change`, which deletes it, so
   * that a later one of the name does not inherit them. Rejects with the error of `change`, or with `ControlError` if the disk refuses;
   * then they are kept.
   */
  deleteAll(vhost: string, app: string | null, change: () => Promise<void>): Promise<void> {
    const deletion = this.#deletions.then(() => this.#deleteAll(vhost, app, change));
    this.#deletions = deletion.catch(() => undefined);
    return deletion;
  }

  /**
   * Pulls a stream; resolves when it plays and, if persistent, is on disk. A stream that another node pulls is only stored, and waits.
   * Rejects with `IngestRefused` (name taken or not addressable, provider not enabled), `PullFailed`, or the error of the disk; then there
   * is no stream.
   */
  create(application: Application, definition: PullDefinition): Promise<void> {
    const document = { vhost: application.vhost, app: application.name, ...definition };
    if (!isDurable(document)) return this.#create(application, document);
    return this.#work.change(workOf(document), async (tell) => {
      await this.#create(application, document);
      if (this.#isStored(document)) tell(document);
    });
  }

  async #create(application: Application, document: PullDocument): Promise<void> {
    if (isDurable(document) && this.#stateOf(document) !== 'ours' && (await this.#isOthers(document))) {
      await this.#options.store.save(document);
      this.#stored.set(keyOf(document), document);
      this.#lull(document);
      return;
    }
    if (application.hasStream(document.name)) {
      throw new IngestRefused('duplicate-name', `stream '${document.name}' exists already in application '${application.name}'`);
    }
    let entry: Entry;
    try {
      entry = this.#open(document);
      await entry.pull.start();
    } catch (error) {
      this.#tellRefusal(document, error);
      throw error;
    }
    const { pull } = entry;
    if (!isDurable(document)) return;
    try {
      await this.#options.store.save(document);
      entry.saved = true;
      this.#stored.set(keyOf(document), document);
      this.#wake(keyOf(document));
    } catch (error) {
      pull.end({ code: 'deleted', detail: 'the persistent stream could not be saved' });
      throw error;
    }
    // The stream ended while its document was being written.
    this.#watch();
    if (entry.ended?.code === 'deleted') await this.#remove(document);
    else if (entry.ended !== null && !this.#shutDown) this.#lull(document);
  }

  /**
   * Restores a persistent stream, or starts one of the configuration; its source may be absent. Throws `IngestRefused` or `PullFailed`;
   * after `IngestRefused` a persistent one returns as soon as possible.
   */
  restore(document: PullDocument): void {
    const isKept = isDurable(document);
    if (isKept) this.#stored.set(keyOf(document), document);
    if (isKept && this.#stateOf(document) !== 'ours') {
      this.#lull(document);
      return;
    }
    try {
      this.#resume(document);
    } catch (error) {
      if (isKept && error instanceof IngestRefused) this.#lull(document);
      throw error;
    }
  }

  /**
   * Ends a pulled stream for good; resolves when a restart would not bring it back, nor an earlier persistent stream of this name. Other
   * streams are not touched.
   */
  delete(stream: PullName, reason: CloseReason): Promise<void> {
    return this.#work.change(workOf(stream), async (tell) => {
      if (await this.#delete(stream, reason)) tell(null);
    });
  }

  /** Persistent streams of a virtual host, running or waiting. */
  storedIn(vhost: string): PullDocument[] {
    return [...this.#stored.values()].filter((document) => document.vhost === vhost);
  }

  /** Whether there is such a persistent stream, running or waiting. */
  stores(stream: PullName): boolean {
    return this.#stored.has(keyOf(stream));
  }

  /**
   * Keeps a persistent stream of another node, in place of one of its name; it waits until it is this node's to pull. Rejects with
   * `PullFailed` for a URL that cannot be pulled here, or the error of the disk.
   */
  async adopt(document: PullDocument): Promise<void> {
    const key = keyOf(document);
    if (isDeepStrictEqual(this.#stored.get(key), document)) return;
    const { vhost, app } = document;
    const { provider } = this.#sourceOf(document);
    if (this.#options.application(vhost, app)?.providerSettings(provider) === undefined) {
      throw new PullFailed(`the provider ${provider} is not enabled in application '${vhost}/${app}'`);
    }
    await this.#options.store.save(document);
    this.#stored.set(key, document);
    const entry = this.#entries.get(key);
    if (entry !== undefined && isDurable(entry.document)) entry.pull.end({ code: 'replaced', detail: 'another node has defined it anew' });
    this.#lull(document);
  }

  /** Ends and forgets a persistent stream that was deleted at another node. Rejects with the error of the disk. */
  async drop(stream: PullName): Promise<void> {
    await this.#delete(stream, { code: 'deleted', detail: 'deleted at another node' });
  }

  /** Resolves with whether there was a persistent stream. */
  async #delete(stream: PullName, reason: CloseReason): Promise<boolean> {
    const key = keyOf(stream);
    const entry = this.#entries.get(key);
    const wasKept = this.#stored.has(key) || (entry !== undefined && isDurable(entry.document));
    if (wasKept) await this.#remove(stream);
    // A waiting stream may have returned while the disk was busy.
    (entry ?? this.#entries.get(key))?.pull.end(reason);
    return wasKept;
  }

  /** Ends all streams; persistent ones return with the next start. Idempotent. */
  close(reason: CloseReason): void {
    this.#shutDown = true;
    clearInterval(this.#returning);
    this.#dormant.clear();
    for (const { pull } of [...this.#entries.values()]) pull.end(reason);
  }

  get #work(): SharedWork & WorkSharing {
    return this.#options.work ?? OWN_WORK;
  }

  #stateOf(document: PullDocument): WorkState {
    return this.#work.stateOf(workOf(document));
  }

  /** Waits briefly for the assignment. Without one the stream is not pulled yet. */
  async #isOthers(document: PullDocument): Promise<boolean> {
    const { clock, work = OWN_WORK } = this.#options;
    const until = clock.monotonic() + TOLD_MS;
    // The state is unknown again if the virtual host gets another origin map meanwhile.
    for (let left = TOLD_MS; left > 0 && this.#stateOf(document) === 'unknown'; left = until - clock.monotonic()) {
      await work.decided(workOf(document), left);
    }
    return this.#stateOf(document) === 'others';
  }

  #resume(document: PullDocument): void {
    const entry = this.#open(document);
    entry.saved = true;
    if (isDurable(document)) this.#watch();
    entry.pull.resume();
  }

  #open(document: PullDocument): Entry {
    const { clock, logger, application, secrets } = this.#options;
    const { vhost, app, name } = document;
    // The secrets of configured and requested streams are known from the configuration; learning them again could push out others.
    if (document.configured !== true) secrets?.learn(secretsOf(document));
    const source = this.#sourceOf(document);
    const key = keyOf(document);
    const pull: PulledStream = new PulledStream({
      definition: document,
      address: { vhost, app, stream: name },
      source,
      clock,
      logger: logger.limited.child({ vhost, app, stream: name }),
      settings: () => application(vhost, app)?.providerSettings(source.provider),
      register: (request) => {
        const target = application(vhost, app);
        if (target === undefined || this.#shutDown) throw new IngestRefused('no-application', `there is no application '${vhost}/${app}'`);
        const stream = target.openPulled(request);
        this.#entries.set(key, entry);
        return stream;
      },
      onEnd: (reason) => this.#ended(key, entry, reason),
      isAwaited: () => this.#dormant.has(key) && document.fromOriginMap === true,
    });
    const entry: Entry = { pull, document, saved: false, ended: null };
    return entry;
  }

  /** Logs why a stream of the API or the state folder cannot be pulled. Callers report refused requests of viewers themselves. */
  #tellRefusal({ vhost, app, name, urls, configured = false }: PullDocument, error: unknown): void {
    if (configured || !(error instanceof IngestRefused || error instanceof PullFailed)) return;
    const fields = { vhost, app, stream: name, url: shownUrl(urls[0] ?? '') };
    this.#options.logger.limited.warn(fields, `stream '${name}' cannot be pulled: ${error.message}`);
  }

  /** Throws `PullFailed`. */
  #sourceOf({ urls }: PullDocument): PullSource {
    const scheme = schemeOf(urls[0] ?? '');
    const source = this.#options.sources.find(({ schemes }) => schemes.includes(scheme));
    if (source === undefined) throw new PullFailed(`scheme '${scheme}' cannot be pulled`);
    return source;
  }

  #ended(key: string, entry: Entry, reason: CloseReason): void {
    if (this.#entries.get(key) === entry) this.#entries.delete(key);
    entry.ended = reason;
    const { document } = entry;
    // The call that saves or removes a document handles its end.
    if (!isDurable(document) || this.#shutDown || !entry.saved || !this.#stored.has(key)) return;
    const { vhost, app, name } = document;
    if (reason.code !== 'deleted') {
      const fields = { vhost, app, stream: name, ...reason };
      this.#options.logger.warn(
        fields,
        `persistent stream '${streamText(addressOf(document))}' ended; it is pulled again as soon as possible`,
      );
      this.#lull(document);
      return;
    }
    if (!this.#leaving.has(document)) void this.#forget(document);
  }

  /** Removes unneeded documents. */
  async #forget(document: PullDocument): Promise<void> {
    try {
      await this.#remove(document);
    } catch (error) {
      this.#options.logger.error({ err: error, stream: document.name }, 'a deleted persistent stream could not be removed from disk');
    }
  }

  #lull(document: PullDocument): void {
    const { vhost, app, name, urls } = document;
    const sourceUrl = shownUrl(urls[0] ?? '');
    const waiting = { vhost, app, name, createdAt: this.#options.clock.now(), sourceType: this.#sourceOf(document).sourceType, sourceUrl };
    this.#dormant.set(keyOf(document), { document, waiting });
    this.#watch();
  }

  /** Checks waiting streams, and streams that another node may have begun. */
  #watch(): void {
    if (this.#shutDown) return;
    const look = guarded(this.#options.logger, 'the return of persistent streams', () => {
      this.#yield();
      this.#return();
    });
    this.#returning ??= setInterval(look, RETURN_EVERY_MS);
  }

  /** Ends streams that now belong to another node; they wait then. */
  #yield(): void {
    for (const { pull, document, saved } of [...this.#entries.values()]) {
      if (saved && isDurable(document) && this.#stateOf(document) === 'others')
        pull.end({ code: 'replaced', detail: 'another node pulls it' });
    }
  }

  #wake(key: string): void {
    this.#dormant.delete(key);
    if (this.#dormant.size > 0 || this.#stored.size > 0) return;
    clearInterval(this.#returning);
    this.#returning = undefined;
  }

  #return(): void {
    for (const [key, { document }] of this.#dormant) {
      const { vhost, app, name } = document;
      if (this.#stateOf(document) !== 'ours') continue;
      // An occupied name is checked here, because `#resume` would log a refusal each time.
      const isRelayed = this.#entries.get(key)?.document.fromOriginMap === true;
      if (!isRelayed && this.#options.application(vhost, app)?.hasStream(name) !== false) continue;
      try {
        this.#resume(document);
      } catch (error) {
        if (error instanceof IngestRefused) continue;
        this.#options.logger.error(
          { vhost, app, stream: name, err: error },
          `persistent stream '${streamText(addressOf(document))}' cannot return before the next start`,
        );
        this.#wake(key);
        continue;
      }
      this.#wake(key);
      this.#options.logger.info({ vhost, app, stream: name }, `persistent stream '${streamText(addressOf(document))}' has returned`);
    }
  }

  async #deleteAll(vhost: string, app: string | null, change: () => Promise<void>): Promise<void> {
    const taken: PullDocument[] = [];
    try {
      for (const document of [...this.#stored.values()]) {
        if (document.vhost !== vhost || (app !== null && document.app !== app) || !this.#isStored(document)) continue;
        taken.push(document);
        this.#leaving.add(document);
        await this.#takeOff(document);
      }
      await change();
      for (const document of taken.filter((one) => this.#isStored(one))) {
        this.#stored.delete(keyOf(document));
        this.#wake(keyOf(document));
      }
    } catch (error) {
      for (const document of taken) await this.#putBack(document);
      throw error;
    } finally {
      for (const document of taken) this.#leaving.delete(document);
    }
  }

  async #takeOff(document: PullDocument): Promise<void> {
    try {
      await this.#options.store.remove(document);
    } catch (error) {
      const { vhost, app, name } = document;
      const refused = `persistent stream '${streamText(addressOf(document))}' could not be removed from disk`;
      this.#options.logger.error({ vhost, app, stream: name, err: error }, `${refused}, nothing was deleted`);
      throw new ControlError('not-durable', refused, { cause: error });
    }
  }

  /** Saves the document again, unless it was deleted or its name is in use now. */
  async #putBack(document: PullDocument): Promise<void> {
    if (!this.#isStored(document)) return;
    try {
      await this.#options.store.save(document);
    } catch (error) {
      const { vhost, app, name } = document;
      const fields = { vhost, app, stream: name, err: error };
      this.#options.logger.error(
        fields,
        `persistent stream '${streamText(addressOf(document))}' is kept, but may be missing after a restart`,
      );
    }
  }

  #isStored(document: PullDocument): boolean {
    return this.#stored.get(keyOf(document)) === document;
  }

  async #remove(document: PullName): Promise<void> {
    await this.#options.store.remove(document);
    this.#stored.delete(keyOf(document));
    this.#wake(keyOf(document));
  }
}

function isDurable({ properties, configured = false }: PullDefinition): boolean {
  return properties.persistent && !configured;
}

function workOf({ vhost, app, name }: PullName): Work {
  return { kind: 'pull', vhost, app, name };
}

function keyOf(document: PullName): string {
  return streamKey(addressOf(document));
}
