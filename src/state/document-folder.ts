/** Small JSON documents in a folder, each replaced atomically and on disk before a write resolves. */
import { readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from '../util/logger.ts';
import { removeFileDurable, writeFileAtomic, writeFileSoon } from './atomic-file.ts';
import { makeFolder, setAside } from './set-aside.ts';

const FORMAT = 'millrace-state';
const VERSION = 1;
const SUFFIX = '.json';
/** Tasks hold stream keys and passphrases. */
const MODE = 0o600;

/** A document with its key. */
export interface StoredDocument {
  readonly key: string;
  readonly value: unknown;
}

/** Documents of one kind. Keys are chosen by the owner: letters, digits, `-` and `_`. */
export class DocumentFolder {
  readonly #folder: string;
  readonly #kind: string;
  readonly #logger: Logger;
  readonly #writes = new Map<string, Promise<void>>();

  constructor(folder: string, kind: string, logger: Logger) {
    this.#folder = folder;
    this.#kind = kind;
    this.#logger = logger;
  }

  /** Every document that can be read; others are renamed to `<file>.broken-<time>` and named in the log. Makes the folder. */
  async load(): Promise<StoredDocument[]> {
    await makeFolder(this.#folder, this.#logger);
    const documents: StoredDocument[] = [];
    const entries = await readdir(this.#folder, { withFileTypes: true });
    for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
      const { name } = entry;
      // Writes that were cut off; a folder is somebody else's.
      if (name.endsWith('.tmp') && entry.isFile()) await rm(join(this.#folder, name), { force: true });
      if (!name.endsWith(SUFFIX)) continue;
      try {
        documents.push({ key: name.slice(0, -SUFFIX.length), value: this.#parse(await readFile(join(this.#folder, name), 'utf8')) });
      } catch (error) {
        await this.setAside(name.slice(0, -SUFFIX.length), error instanceof Error ? error.message : String(error));
      }
    }
    return documents;
  }

  /** Resolves when the document is on disk. Rejects with the file system's error, and the old one is still there. */
  save(key: string, value: object): Promise<void> {
    return this.#inOrder(key, () => writeFileAtomic(this.#pathOf(key), this.#textOf(value), MODE));
  }

  /** Like `save`, but resolves when the document survives this process; against a loss of power it is brought to the disk afterwards. */
  saveSoon(key: string, value: object): Promise<void> {
    const written = Promise.withResolvers<void>();
    const durable = this.#inOrder(key, async () => {
      const { durable } = await writeFileSoon(this.#pathOf(key), this.#textOf(value), MODE);
      written.resolve();
      await durable;
    });
    durable.catch((error: unknown) => {
      written.reject(error);
      this.#logger.warn({ err: error, key }, 'state file could not be brought to the disk');
    });
    return written.promise;
  }

  /** Resolves when the document is gone from disk. */
  remove(key: string): Promise<void> {
    return this.#inOrder(key, () => removeFileDurable(this.#pathOf(key)));
  }

  /** Takes a document away whose content turned out to be unusable. */
  async setAside(key: string, why: string): Promise<void> {
    await setAside(this.#pathOf(key), why, this.#logger);
  }

  /** Resolves when every write under way has ended, well or not. */
  async settle(): Promise<void> {
    await Promise.allSettled(this.#writes.values());
  }

  #textOf(value: object): string {
    return `${JSON.stringify({ format: FORMAT, version: VERSION, kind: this.#kind, value }, null, 2)}\n`;
  }

  #parse(text: string): unknown {
    const document: unknown = JSON.parse(text);
    if (typeof document !== 'object' || document === null) throw new Error('it is not a JSON object');
    const { format, version, kind, value } = document as Record<string, unknown>;
    if (format !== FORMAT || kind !== this.#kind) throw new Error(`it is not a Millrace document of the kind ${this.#kind}`);
    if (version !== VERSION) throw new Error(`it has version ${JSON.stringify(version)}, this server reads ${VERSION}`);
    return value;
  }

  #inOrder(key: string, write: () => Promise<void>): Promise<void> {
    const before = this.#writes.get(key) ?? Promise.resolve();
    const next = before.catch(() => undefined).then(write);
    this.#writes.set(key, next);
    const forget = (): void => {
      if (this.#writes.get(key) === next) this.#writes.delete(key);
    };
    next.then(forget, forget);
    return next;
  }

  #pathOf(key: string): string {
    return join(this.#folder, `${key}${SUFFIX}`);
  }
}
