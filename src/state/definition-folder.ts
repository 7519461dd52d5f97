/**
 * A folder of definition files, one for each object: people and the API write them, and the server follows their content while it runs.
 */
import { createHash } from 'node:crypto';
import { type BigIntStats, constants, type Dirent } from 'node:fs';
import { open, readdir, realpath, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import type { AllowedFolders } from '../util/allowed-folders.ts';
import { guarded } from '../util/guarded.ts';
import type { Logger } from '../util/logger.ts';
import { messageOf } from '../util/message-of.ts';
import { removeFileDurable, writeFileAtomic } from './atomic-file.ts';
import { FolderHints, type FolderWatch } from './folder-hints.ts';

const SCAN_MS = 1000;
/** A file replaced by a slow copy is missing for a moment. */
const MISSING_SCANS = 3;
const MAX_FILES = 1000;
/** Files checked per turn, besides those with a notice from the system; the others are checked in later turns. */
const MAX_LOOKS_AT_ONCE = 100;
/** Bytes of a definition file. */
export const MAX_DEFINITION_FILE_BYTES = 2 * 1024 * 1024;
/** File systems allow 255 bytes; the name of the temporary file appends 17. */
const MAX_FILE_NAME_BYTES = 238;
/** Files left by interrupted writes. */
const TEMPORARY = /\.[0-9a-f]{12}\.tmp$/;

/** Contents of a folder, and their observer. */
export interface DefinitionFolderOptions<Definition> {
  /** Absolute. */
  readonly folder: string;
  /** With the dot: `.sch`. The rest of a file's name is the name of its definition. */
  readonly extension: string;
  /** The kind of definition, for the log: `scheduled channel`. */
  readonly what: string;
  /** Folders in which files may be written. */
  readonly allowed: AllowedFolders;
  /** Files with other names are not read, and logged once. */
  readonly isName: (name: string) => boolean;
  /** Throws, or rejects with, an `Error` with the reason. Later files wait for it. */
  readonly parse: (text: string, name: string, file: string) => Definition | Promise<Definition>;
  readonly format: (definition: Definition) => string | Promise<string>;
  /** A definition is new or has changed. Exceptions are logged. */
  readonly changed: (name: string, definition: Definition) => void;
  /** Exceptions are logged. */
  readonly removed: (name: string) => void;
  readonly logger: Logger;
  /** Interval of checks, ms; default: every second. */
  readonly scanMs?: number;
  /** For tests; see `FolderHints`. */
  readonly watch?: FolderWatch;
}

/** A definition whose file would be too large to be read again. */
export class DefinitionTooLarge extends Error {
  override readonly name = 'DefinitionTooLarge';
}

/** A file that is about to be written. */
export interface DefinitionWrite {
  readonly text: string;
  readonly digest: string;
  /** Digest of the present content; null: there is no file. */
  readonly before: string | null;
}

/** Does something before or after `put`, which writes the file. Without calling `put` it prevents that. */
export type AroundWrite = (write: DefinitionWrite, put: () => Promise<void>) => Promise<void>;

interface KnownFile<Definition> {
  /** Changes when the file may have been written. */
  identity: string;
  /** Digest of the content read last. */
  digest: string;
  /** The last valid definition with the digest of its text; null if there was none. */
  inForce: { readonly definition: Definition; readonly digest: string } | null;
  /** Number of successive scans without the file. */
  missing: number;
}

/**
 * Follows definition files. Every second it checks up to a hundred files; if there are more, those with a notice from the system, and the
 * others in turns. Only a change of content is reported. An unreadable file is logged once per change and its previous definition stays in
 * force; a file missing in three successive scans counts as removed. A folder that cannot be listed changes nothing. Writes are atomic, on
 * disk before they resolve, and known at once. Operations run one after the other.
 */
export class DefinitionFolder<Definition> {
  readonly folder: string;
  readonly #options: DefinitionFolderOptions<Definition>;
  readonly #files = new Map<string, KnownFile<Definition>>();
  /** Logged faults by file; a different fault is logged again. */
  readonly #told = new Map<string, string>();
  readonly #hints: FolderHints;
  /** Known files in the order of their turns. */
  #waiting: string[] = [];
  #tail: Promise<unknown> = Promise.resolve();
  #timer: NodeJS.Timeout | null = null;
  #scanning = false;
  #closed = false;
  readonly #closing = Promise.withResolvers<null>();

  constructor(options: DefinitionFolderOptions<Definition>) {
    this.folder = options.folder;
    this.#options = options;
    this.#hints = new FolderHints(options.folder, options);
  }

  /** Creates the folder, reads its files, and then checks them every second. Never rejects: unusable files are logged. */
  async start(): Promise<void> {
    await this.#inOrder(async () => {
      await this.#makeFolder().catch((error: unknown) => this.#tell('', `the folder cannot be used: ${messageOf(error)}`));
      await this.#removeTemporaries();
      await this.#hints.follow();
      this.#hints.take();
      await this.#scan(null);
    });
    if (this.#closed) return;
    const tick = guarded(this.#options.logger, `the watch over ${this.folder}`, () => (this.#scanning ? undefined : this.turn()));
    this.#timer ??= setInterval(tick, this.#options.scanMs ?? SCAN_MS).unref();
  }

  /** Checks all files now. */
  async scan(): Promise<void> {
    await this.#inOrder(() => this.#scan(null));
  }

  /** One check, as every second: of the files whose turn it is or that have a notice. */
  async turn(): Promise<void> {
    this.#scanning = true;
    try {
      await this.#inOrder(async () => {
        await this.#hints.follow();
        await this.#scan(this.#hints.take());
      });
    } finally {
      this.#scanning = false;
    }
  }

  /** Valid definitions, sorted by name. */
  get definitions(): ReadonlyMap<string, Definition> {
    const usable = [...this.#files].flatMap(([name, { inForce }]) => (inForce === null ? [] : [[name, inForce.definition] as const]));
    return new Map(usable.sort(([a], [b]) => (a < b ? -1 : 1)));
  }

  /** The definition of a name. */
  get(name: string): Definition | undefined {
    return this.#files.get(name)?.inForce?.definition;
  }

  /** Digest of the content of a file as read or written last, be it valid or not; null: there is no file. */
  digestOf(name: string): string | null {
    return this.#files.get(name)?.digest ?? null;
  }

  /** The content of a file, with its digest. Rejects if there is none. */
  async read(name: string): Promise<{ readonly text: string; readonly digest: string }> {
    const text = (await this.#read(this.pathOf(name), null))?.text ?? '';
    return { text, digest: digestOfText(text) };
  }

  /** The file of a name, whether it exists or not. */
  pathOf(name: string): string {
    return join(this.folder, `${name}${this.#options.extension}`);
  }

  /** Whether a file can have this name. */
  canName(name: string): boolean {
    const { extension, isName } = this.#options;
    return isName(name) && dirname(this.pathOf(name)) === this.folder && Buffer.byteLength(`${name}${extension}`) <= MAX_FILE_NAME_BYTES;
  }

  /** Writes a definition, as `change` does. */
  save(name: string, definition: Definition): Promise<void> {
    return this.change(name, () => definition);
  }

  /**
   * Writes the result of `make` for the present definition (undefined: none) and takes it over before it resolves, without interruption.
   * Rejects with the file system's error, `PathRefused`, `DefinitionTooLarge`, an error about the name, or the exception of `make`; the old
   * file is still there then.
   */
  change(
    name: string,
    make: (current: Definition | undefined) => Definition | Promise<Definition>,
    around: AroundWrite = (_write, put) => put(),
  ): Promise<void> {
    return this.#inOrder(async () => {
      this.#requireName(name);
      const definition = await make(this.get(name));
      // Each of both may take as long as a turn of the event loop should.
      await setImmediate();
      await this.#write(name, await this.#options.format(definition), this.digestOf(name), { check: () => undefined, around });
    });
  }

  /** As `change`, with the text of a file as another server has it; looks at the present file first. `check` may refuse its definition. */
  put(name: string, text: string, check: (definition: Definition) => void, around: AroundWrite): Promise<void> {
    return this.#inOrder(async () => {
      this.#requireName(name);
      await this.#write(name, text, await this.#presentDigest(name), { check, around });
    });
  }

  /**
   * Removes a definition with its file, if `isWanted` agrees by the digest of its present content (null: there is no file). Rejects with the
   * file system's error if nothing has changed.
   */
  remove(name: string, isWanted?: (digest: string | null) => boolean): Promise<void> {
    return this.#inOrder(async () => {
      this.#requireName(name);
      if (isWanted !== undefined) {
        const digest = await this.#presentDigest(name);
        if (!isWanted(digest)) return;
      }
      await this.#options.allowed.checkLinks(this.folder);
      await removeFileDurable(this.pathOf(name));
      this.#forget(name);
    });
  }

  /** Ends all callbacks; files stay. Idempotent. Resolves when running writes have ended; nobody waits for a file that is being parsed. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#closing.resolve(null);
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#hints.close();
    await this.#tail.catch(() => undefined);
  }

  /** `before`: digest of the present content; null: there is no file. */
  async #write(
    name: string,
    text: string,
    before: string | null,
    { check, around }: { readonly check: (definition: Definition) => void; readonly around: AroundWrite },
  ): Promise<void> {
    const path = this.pathOf(name);
    const bytes = Buffer.byteLength(text);
    if (bytes > MAX_DEFINITION_FILE_BYTES) {
      throw new DefinitionTooLarge(`it takes ${bytes} bytes as a file, at most ${MAX_DEFINITION_FILE_BYTES} are taken`);
    }
    // The valid definition is the one that a restart would read.
    const written = await this.#options.parse(text, name, path);
    check(written);
    const known = this.#files.get(name);
    if (known === undefined && this.#files.size >= MAX_FILES) throw new Error(`the folder has ${MAX_FILES} files already`);
    await this.#makeFolder();
    const digest = digestOfText(text);
    await around({ text, digest, before }, async () => {
      await writeFileAtomic(path, text);
      // The next scan finds the same content, so it reports no change.
      this.#files.set(name, { identity: '', digest, inForce: { definition: written, digest }, missing: 0 });
      this.#told.delete(name);
      if (known?.inForce?.digest !== digest) this.#changed(name, written);
    });
  }

  /** Looks at a file now. Resolves with the digest of its content; null: there is none. */
  async #presentDigest(name: string): Promise<string | null> {
    return (await this.#look(name)) ? this.digestOf(name) : null;
  }

  /** `hinted`: the files with a notice; null: all of them. */
  async #scan(hinted: ReadonlySet<string> | null): Promise<void> {
    if (this.#closed) return;
    const names = await this.#list();
    if (names === null) return;
    const due = hinted === null ? null : this.#dueOf(names, hinted);
    const present = new Set<string>();
    for (const name of names) {
      if (due?.has(name) === false || (await this.#look(name))) present.add(name);
      if (this.#closed) return;
    }
    for (const [name, file] of this.#files) {
      if (present.has(name)) continue;
      file.missing += 1;
      if (file.missing >= MISSING_SCANS) this.#forget(name);
    }
    for (const name of this.#told.keys()) if (name !== '' && !present.has(name)) this.#told.delete(name);
  }

  /** New, missing and notified files, and the next ones of the rest. */
  #dueOf(names: readonly string[], hinted: ReadonlySet<string>): Set<string> {
    if (this.#waiting.length === 0) this.#waiting = [...names];
    const due = new Set(this.#waiting.splice(0, MAX_LOOKS_AT_ONCE));
    for (const name of names) if (hinted.has(name) || this.#files.get(name)?.missing !== 0) due.add(name);
    return due;
  }

  /** Names of the defined objects, in order; null: the folder cannot be listed. */
  async #list(): Promise<string[] | null> {
    const { extension, isName } = this.#options;
    let entries: Dirent[];
    try {
      await this.#options.allowed.checkLinks(this.folder);
      entries = await readdir(this.folder, { withFileTypes: true });
    } catch (error) {
      this.#tell('', `the folder cannot be read: ${messageOf(error)}`);
      return null;
    }
    const found = entries
      .filter((entry) => entry.name.endsWith(extension) && !entry.isDirectory())
      .map((entry) => entry.name.slice(0, -extension.length))
      .sort();
    const names = found.filter(isName);
    // If there are too many files, known ones keep their places.
    names.sort((a, b) => Number(this.#files.has(b)) - Number(this.#files.has(a)));
    const unsupported = found.find((name) => !isName(name));
    if (names.length > MAX_FILES) {
      this.#tell('', `more than ${MAX_FILES} files end in ${extension}: the others are left out`);
    } else if (unsupported !== undefined) {
      this.#tell('', `${JSON.stringify(unsupported)} cannot be a name of a ${this.#options.what}: its file is left out`);
    } else {
      this.#told.delete('');
    }
    return names.slice(0, MAX_FILES);
  }

  /** False for a file that is gone. */
  async #look(name: string): Promise<boolean> {
    const path = this.pathOf(name);
    try {
      const content = await this.#read(path, this.#files.get(name)?.identity ?? null);
      if (content !== null && !this.#closed) await this.#take(name, content);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
      this.#tell(name, this.#unusable(name, error));
    }
    const file = this.#files.get(name);
    if (file !== undefined) file.missing = 0;
    return true;
  }

  async #take(name: string, { identity, text }: { readonly identity: string; readonly text: string }): Promise<void> {
    const file: KnownFile<Definition> = this.#files.get(name) ?? { identity, digest: '', inForce: null, missing: 0 };
    this.#files.set(name, file);
    file.identity = identity;
    const digest = digestOfText(text);
    if (file.digest === digest) return;
    file.digest = digest;
    // Every result after a change is reported again.
    this.#told.delete(name);
    if (file.inForce?.digest === digest) return;
    try {
      const parsed = this.#options.parse(text, name, this.pathOf(name));
      const definition = parsed instanceof Promise ? await Promise.race([parsed, this.#closing.promise]) : parsed;
      if (definition === null || this.#closed) return;
      file.inForce = { definition, digest };
      this.#changed(name, definition);
    } catch (error) {
      this.#tell(name, this.#unusable(name, error));
    }
  }

  #unusable(name: string, error: unknown): string {
    const goesOn = this.#files.get(name)?.inForce == null ? 'it is left out' : 'what it said before goes on';
    return `${this.pathOf(name)} cannot be used, ${goesOn}: ${messageOf(error)}`;
  }

  /**
   * The content of a file; null if it still has this identity. Rejects for anything but a regular file of the folder, and for a file that
   * is too large.
   */
  async #read(path: string, identity: string | null): Promise<{ readonly identity: string; readonly text: string } | null> {
    // The usual case: every file is checked each second.
    if (identity !== null && identityOf(await stat(path, { bigint: true })) === identity) return null;
    const real = await realpath(path);
    // Containers get files as links within the folder.
    const root = await realpath(this.folder);
    if (!real.startsWith(root === '/' ? root : `${root}/`)) throw new Error('it is a symbolic link that leads out of the folder');
    const file = await open(real, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    try {
      const stats = await file.stat({ bigint: true });
      if (!stats.isFile()) throw new Error('it is not a file');
      if (stats.size > MAX_DEFINITION_FILE_BYTES) throw new Error(`it is larger than ${MAX_DEFINITION_FILE_BYTES} bytes`);
      const now = identityOf(stats);
      if (now === identity) return null;
      // One byte more, because the file may be growing.
      const { buffer, bytesRead } = await file.read(Buffer.alloc(Number(stats.size) + 1), 0, Number(stats.size) + 1, 0);
      return { identity: now, text: buffer.toString('utf8', 0, bytesRead) };
    } finally {
      await file.close();
    }
  }

  async #makeFolder(): Promise<void> {
    await this.#options.allowed.makeFolder(this.folder);
  }

  /** Temporary files of earlier runs; only this server writes such names here. */
  async #removeTemporaries(): Promise<void> {
    const names = await readdir(this.folder).catch(() => []);
    for (const name of names) {
      if (!TEMPORARY.test(name) || !name.replace(TEMPORARY, '').endsWith(this.#options.extension)) continue;
      await rm(join(this.folder, name), { force: true }).catch(() => undefined);
    }
  }

  #forget(name: string): void {
    const file = this.#files.get(name);
    this.#files.delete(name);
    this.#told.delete(name);
    if (file?.inForce == null || this.#closed) return;
    guarded(this.#options.logger, `the end of ${this.#options.what} '${name}'`, this.#options.removed)(name);
  }

  #changed(name: string, definition: Definition): void {
    if (this.#closed) return;
    guarded(this.#options.logger, `the change of ${this.#options.what} '${name}'`, this.#options.changed)(name, definition);
  }

  #requireName(name: string): void {
    if (!this.canName(name)) throw new Error(`${JSON.stringify(name)} cannot be the name of a ${this.#options.what}`);
  }

  #tell(name: string, message: string): void {
    if (this.#told.get(name) === message) return;
    this.#told.set(name, message);
    this.#options.logger.error({ folder: this.folder, ...(name !== '' && { name }) }, `${this.#options.what}: ${message}`);
  }

  #inOrder<T>(work: () => Promise<T>): Promise<T> {
    const next = this.#tail.then(work, work);
    this.#tail = next.catch(() => undefined);
    return next;
  }
}

function identityOf({ dev, ino, size, mtimeNs, ctimeNs }: BigIntStats): string {
  return [dev, ino, size, mtimeNs, ctimeNs].join(' ');
}

function digestOfText(text: string): string {
  return createHash('sha256').update(text).digest('base64');
}
