/** Starts, lists and ends dumps of LL-HLS streams. */
import { randomBytes } from 'node:crypto';
import { open, rm } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import type { AllowedFolders } from '../../../../util/allowed-folders.ts';
import type { Clock } from '../../../../util/clock.ts';
import { Conditions } from '../../../../util/conditions.ts';
import type { Logger } from '../../../../util/logger.ts';
import type { StreamFollower } from '../../packager/fmp4/llhls-publisher.ts';
import type { LlhlsStream } from '../../packager/fmp4/llhls-stream.ts';
import type { LlhlsSettings } from '../../wire/fmp4/settings.ts';
import { type FolderClaim, FolderClaims } from '../folder-claims.ts';
import { type StreamAddress, type WantedDump, wantedDumps } from '../wanted-dumps.ts';
import { type DumpRequest, HlsDump, type HlsDumpOptions } from './hls-dump.ts';
import { OpenDumps } from './open-dumps.ts';

/** Dumps of one stream that are known, with their ids taken: the oldest that has ended makes room for another. */
export const MOST_DUMPS = 1000;
const NOTE_BYTES = 12;

/** Why a dump cannot be started or stopped; `message` goes to the client. */
export class DumpRefused extends Error {
  override readonly name = 'DumpRefused';
}

/** Where dumps may go. With `claims` shared, no two dumpers write into one folder. */
export interface HlsDumperOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  /** Relative paths start there. */
  readonly stateFolder: string;
  readonly allowed: AllowedFolders;
  /** Is told while a disk refuses files. Default: nobody looks. */
  readonly conditions?: Conditions;
  /** Shared with other dumpers; default: its own. */
  readonly claims?: FolderClaims;
}

/** One for the server, which calls `recover` before streams come and `close` at its end. */
export class HlsDumper implements StreamFollower {
  readonly #options: HlsDumperOptions;
  readonly #streams = new Map<string, LlhlsStream>();
  readonly #dumps = new WeakMap<LlhlsStream, Map<string, HlsDump | null>>();
  /** Dumps whose files may not be complete yet, with when they are. */
  readonly #active = new Map<HlsDump, Promise<void>>();
  readonly #claims: FolderClaims;
  readonly #open: OpenDumps;

  constructor(options: HlsDumperOptions) {
    this.#options = options;
    this.#claims = options.claims ?? new FolderClaims();
    this.#open = new OpenDumps(options.stateFolder, options.logger);
  }

  /** Settles what the last run left. Call before streams come. */
  recover(): Promise<void> {
    return this.#open.recover();
  }

  /** The outbound stream of this name as LL-HLS, or undefined when it is not served so. */
  find(address: StreamAddress): LlhlsStream | undefined {
    return this.#streams.get(keyOf(address));
  }

  /** Starts the dumps that the configuration wants of the stream. */
  streamStarted(stream: LlhlsStream, address: StreamAddress, settings: LlhlsSettings): void {
    this.#streams.set(keyOf(address), stream);
    for (const dump of wantedDumps(settings.dumps, address, this.#options.clock.now())) void this.#startConfigured(stream, dump);
  }

  streamClosed(stream: LlhlsStream, address: StreamAddress): void {
    if (this.#streams.get(keyOf(address)) === stream) this.#streams.delete(keyOf(address));
  }

  /** Resolves when the first files are there. Throws `DumpRefused`, and `PathRefused` for a folder that is not allowed. */
  async start(stream: LlhlsStream, request: DumpRequest): Promise<void> {
    const { allowed, clock, conditions = new Conditions(), logger, stateFolder } = this.#options;
    const folder = resolve(stateFolder, request.outputPath);
    const infoPath = request.infoFile === '' ? null : resolve(folder, request.infoFile);
    // As it was written: resolving would hide the way up.
    for (const path of [request.outputPath, request.infoFile]) allowed.check(path.startsWith('/') ? path : `${folder}/${path}`);
    const dumps = this.#dumps.get(stream) ?? new Map<string, HlsDump | null>();
    this.#dumps.set(stream, dumps);
    if (dumps.has(request.id)) throw new DumpRefused('Duplicate ID');
    const unknown = request.playlists.find((name) => !stream.playlistNames.includes(name));
    if (unknown !== undefined) throw new DumpRefused('Could not dump master playlist');
    if (dumps.size >= MOST_DUMPS) this.#makeRoom(dumps);
    // The id is taken before anything is awaited, and free again when the start fails.
    dumps.set(request.id, null);
    let dump: HlsDump | null = null;
    try {
      const claim = await this.#claims.claim(folder).catch((error: unknown) => {
        throw new DumpRefused(messageOf(error), { cause: error });
      });
      await this.#prepare(folder, infoPath).catch((error: unknown) => {
        claim.release();
        throw error;
      });
      const note = infoPath === null ? null : randomBytes(NOTE_BYTES).toString('hex');
      if (infoPath !== null && note !== null) await this.#open.add(note, infoPath);
      dump = this.#make({ request, stream, folder, infoPath, clock, conditions, logger }, claim, note);
      dumps.set(request.id, dump);
      await dump.start().catch((error: unknown) => {
        throw new DumpRefused(`Could not dump segment: ${messageOf(error)}`, { cause: error });
      });
    } catch (error) {
      dumps.delete(request.id);
      // Whoever tries again must not find it taken.
      if (dump !== null && infoPath !== null) await rm(infoPath, { force: true }).catch(() => undefined);
      throw error;
    }
  }

  /** Throws `DumpRefused` when all dumps still run. */
  #makeRoom(dumps: Map<string, HlsDump | null>): void {
    for (const [id, dump] of dumps) {
      if (dump === null || dump.enabled) continue;
      dumps.delete(id);
      return;
    }
    throw new DumpRefused(`The stream has ${MOST_DUMPS} dumps`);
  }

  #make(options: HlsDumpOptions, claim: FolderClaim, note: string | null): HlsDump {
    const dump = new HlsDump(options);
    claim.keep(dump);
    const over = dump.over.then(() => this.#forget(dump, note));
    this.#active.set(dump, over);
    return dump;
  }

  /** Ends the dump `id`, or all of the stream; resolves at once. Throws `DumpRefused` when there is none of that id. */
  stop(stream: LlhlsStream, id: string | null): void {
    const dumps = this.list(stream);
    const wanted = id === null ? dumps : dumps.filter(({ request }) => request.id === id);
    if (id !== null && wanted.length === 0) throw new DumpRefused('Could not find dump info');
    for (const dump of wanted) void dump.stop();
  }

  /** Dumps of the stream, those that ended included, in the order they were started. */
  list(stream: LlhlsStream): HlsDump[] {
    return [...(this.#dumps.get(stream)?.values() ?? [])].filter((dump) => dump !== null);
  }

  /** Ends all dumps and resolves when their files are complete. */
  async close(): Promise<void> {
    const active = [...this.#active];
    for (const [dump] of active) void dump.stop();
    await Promise.all(active.map(([, over]) => over));
  }

  async #forget(dump: HlsDump, note: string | null): Promise<void> {
    if (note !== null) await this.#open.remove(note);
    this.#active.delete(dump);
  }

  /** Makes the folders and the information file. */
  async #prepare(folder: string, infoPath: string | null): Promise<void> {
    const { allowed, logger } = this.#options;
    try {
      await allowed.makeFolder(folder);
      if (infoPath === null) return;
      await allowed.makeFolder(dirname(infoPath));
      await (await open(infoPath, 'wx')).close();
    } catch (error) {
      const { code, name } = error as NodeJS.ErrnoException;
      if (name === 'PathRefused') throw error;
      if (code === 'EEXIST') throw new DumpRefused('Duplicate info file', { cause: error });
      logger.error({ err: error, folder }, `dump cannot be started: ${messageOf(error)}`);
      throw new DumpRefused(`Could not dump init segment: ${messageOf(error)}`, { cause: error });
    }
  }

  async #startConfigured(stream: LlhlsStream, wanted: WantedDump): Promise<void> {
    try {
      await this.start(stream, { ...wanted, infoFile: '', userData: '' });
    } catch (error) {
      const reason = messageOf(error);
      const about = { err: error, stream: stream.path, folder: wanted.outputPath };
      this.#options.logger.error(about, `dump of the configuration cannot be started: ${reason}`);
    }
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function keyOf({ vhost, app, name }: StreamAddress): string {
  return JSON.stringify([vhost, app, name]);
}
