/** Starts, lists and ends dumps of the streams of a publisher. */
import { randomBytes } from 'node:crypto';
import { open, rm } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { NO_NOTICES, type Notices } from '../../../core/notices/notice.ts';
import { type StreamAddress, streamKey } from '../../../core/stream-address.ts';
import type { AllowedFolders } from '../../../util/allowed-folders.ts';
import type { Clock } from '../../../util/clock.ts';
import { Conditions } from '../../../util/conditions.ts';
import type { Logger } from '../../../util/logger.ts';
import { messageOf } from '../../../util/message-of.ts';
import type { StreamFollower } from '../packager/packaging-publisher.ts';
import type { SegmentSource } from '../packager/segment-observer.ts';
import type { PackagingSettings } from '../wire/settings.ts';
import { Dump, type DumpOptions, type DumpRequest } from './dump.ts';
import type { DumpCounts } from './dump-metrics.ts';
import { FolderClaims } from './folder-claims.ts';
import { OpenDumps } from './open-dumps.ts';
import { type WantedDump, wantedDumps } from './wanted-dumps.ts';

/** Maximum of dumps of a stream, ended dumps included: the oldest ended dump makes room for a new one. */
export const MAX_DUMPS = 1000;
const NOTE_BYTES = 12;

/** Dumps of a stream by id; null while one is being prepared. */
type KnownDumps = Map<string, Dump | null>;

/** Why a dump cannot be started or stopped; `message` goes to the client. */
export class DumpRefused extends Error {
  override readonly name = 'DumpRefused';
}

/** Options of a dumper. With shared `claims`, no two dumpers write into one folder. */
export interface DumperOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  /** Relative paths start there. */
  readonly stateFolder: string;
  readonly allowed: AllowedFolders;
  /** Raised while a disk refuses writes. Default: none. */
  readonly conditions?: Conditions;
  /** Receives notices of dumps. Default: none. */
  readonly notices?: Notices;
  /** Shared with other dumpers; default: its own. */
  readonly claims?: FolderClaims;
  /** Counters shared with other dumpers; absent: none. */
  readonly counts?: DumpCounts;
}

/** One for each publisher. The server calls `load` before the first stream, `recover` when it runs and `close` at its end. */
export class Dumper implements StreamFollower {
  readonly #options: DumperOptions;
  readonly #streams = new Map<string, SegmentSource>();
  readonly #dumps = new WeakMap<SegmentSource, KnownDumps>();
  /** Dumps whose files may not be complete yet, with promises of their ends. */
  readonly #active = new Map<Dump, Promise<void>>();
  readonly #claims: FolderClaims;
  readonly #open: OpenDumps;
  #recovering: Promise<void> | null = null;

  constructor(options: DumperOptions) {
    this.#options = options;
    this.#claims = options.claims ?? new FolderClaims();
    this.#open = new OpenDumps(options.stateFolder, options.logger);
  }

  /** Reads the notes of the last run. Call before the first stream. */
  load(): Promise<void> {
    return this.#open.load();
  }

  /** Finishes the dumps of the last run in the background. Call once, after `load`, when the start can no longer fail. */
  recover(): void {
    this.#recovering = this.#open.recover();
  }

  /** The outbound stream of this name as the publisher has it, or undefined when it has none. */
  find(address: StreamAddress): SegmentSource | undefined {
    return this.#streams.get(streamKey(address));
  }

  /** Dumps whose files may not be complete yet. */
  get active(): number {
    return this.#active.size;
  }

  /** Starts the dumps that the configuration wants of the stream. */
  streamStarted(stream: SegmentSource, address: StreamAddress, settings: PackagingSettings): void {
    this.#streams.set(streamKey(address), stream);
    for (const wanted of wantedDumps(settings.dumps, address, this.#options.clock.now())) this.#startConfigured(stream, wanted);
  }

  streamClosed(stream: SegmentSource, address: StreamAddress): void {
    if (this.#streams.get(streamKey(address)) === stream) this.#streams.delete(streamKey(address));
  }

  /** Resolves when the first files are there. Throws `DumpRefused`, and `PathRefused` for a folder that is not allowed. */
  async start(stream: SegmentSource, request: DumpRequest): Promise<void> {
    const folder = this.#folderOf(request);
    const infoPath = request.infoFile === '' ? null : resolve(folder, request.infoFile);
    const dumps = this.#takeId(stream, request);
    let dump: Dump | null = null;
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
      dump = this.#make({ request, stream, folder, infoPath }, dumps, note);
      claim.keep(dump);
      await dump.start().catch((error: unknown) => {
        throw new DumpRefused(`Could not dump segment: ${messageOf(error)}`, { cause: error });
      });
    } catch (error) {
      dumps.delete(request.id);
      // A retry needs the file name.
      if (dump !== null && infoPath !== null) await rm(infoPath, { force: true }).catch(() => undefined);
      throw error;
    }
  }

  /** The dump has the stream from its first segment on, however long the folder takes. Failures are logged. */
  #startConfigured(stream: SegmentSource, wanted: WantedDump): void {
    const { allowed, logger } = this.#options;
    const request = { ...wanted, infoFile: '', userData: '' };
    try {
      const folder = this.#folderOf(request);
      const unknown = unknownPlaylist(stream, request);
      if (unknown !== undefined) throw new DumpRefused(`the stream has no playlist ${unknown}`);
      const prepare = async (made: Dump): Promise<void> => {
        const claim = await this.#claims.claim(folder);
        claim.keep(made);
        await allowed.makeFolder(folder);
      };
      const dumps = this.#takeId(stream, request);
      const dump = this.#make({ request, stream, folder, infoPath: null, prepare }, dumps, null);
      // The dump logs the failure itself.
      void dump.start().catch(() => dumps.delete(request.id));
    } catch (error) {
      const about = { err: error, dump: wanted.id, stream: stream.path, folder: wanted.outputPath };
      logger.error(about, `dump of the configuration cannot be started: ${messageOf(error)}`);
    }
  }

  /** Absolute. Throws `PathRefused` when the folder or the information file is not allowed. */
  #folderOf({ outputPath, infoFile }: DumpRequest): string {
    const { allowed, stateFolder } = this.#options;
    const folder = resolve(stateFolder, outputPath);
    // Checked as written: `resolve` would remove each `..`.
    for (const path of [outputPath, infoFile]) allowed.check(path.startsWith('/') ? path : `${folder}/${path}`);
    return folder;
  }

  /** Takes the id before anything is awaited; the caller frees it if the start fails. Throws `DumpRefused`. */
  #takeId(stream: SegmentSource, request: DumpRequest): KnownDumps {
    const { id } = request;
    const dumps: KnownDumps = this.#dumps.get(stream) ?? new Map();
    this.#dumps.set(stream, dumps);
    if (dumps.has(id)) throw new DumpRefused('Duplicate ID');
    if (unknownPlaylist(stream, request) !== undefined) throw new DumpRefused('Could not dump master playlist');
    if (dumps.size >= MAX_DUMPS) this.#makeRoom(dumps);
    dumps.set(id, null);
    return dumps;
  }

  /** Throws `DumpRefused` when all dumps still run. */
  #makeRoom(dumps: KnownDumps): void {
    for (const [id, dump] of dumps) {
      if (dump === null || dump.enabled) continue;
      dumps.delete(id);
      return;
    }
    throw new DumpRefused(`The stream has ${MAX_DUMPS} dumps`);
  }

  #make(what: Omit<DumpOptions, 'clock' | 'conditions' | 'notices' | 'logger' | 'counts'>, dumps: KnownDumps, note: string | null): Dump {
    const { clock, conditions = new Conditions(), notices = NO_NOTICES, logger, counts } = this.#options;
    const dump = new Dump({ ...what, clock, conditions, notices, logger, ...(counts !== undefined && { counts }) });
    dumps.set(what.request.id, dump);
    const over = dump.over.then(() => this.#forget(dump, note));
    this.#active.set(dump, over);
    return dump;
  }

  /** Ends the dump `id`, or all dumps of the stream, without waiting for their files. Throws `DumpRefused` if there is no dump `id`. */
  stop(stream: SegmentSource, id: string | null): void {
    const dumps = this.list(stream);
    const wanted = id === null ? dumps : dumps.filter(({ request }) => request.id === id);
    if (id !== null && wanted.length === 0) throw new DumpRefused('Could not find dump info');
    for (const dump of wanted) void dump.stop();
  }

  /** Dumps of the stream, including ended ones, in the order of their start. */
  list(stream: SegmentSource): Dump[] {
    return [...(this.#dumps.get(stream)?.values() ?? [])].filter((dump) => dump !== null);
  }

  /** Ends all dumps and resolves when their files are complete. */
  async close(): Promise<void> {
    const active = [...this.#active];
    for (const [dump] of active) void dump.stop();
    await Promise.all([...active.map(([, over]) => over), this.#recovering]);
  }

  async #forget(dump: Dump, note: string | null): Promise<void> {
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
}

function unknownPlaylist(stream: SegmentSource, { playlists }: DumpRequest): string | undefined {
  return playlists.find((name) => !stream.playlistNames.includes(name));
}
