import { createHash } from 'node:crypto';
import { readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from '../util/logger.ts';
import { removeFileDurable, writeFileAtomic } from './atomic-file.ts';
import { copyAside, makeFolder, setAside } from './set-aside.ts';

const FORMAT = 'millrace-state';
const VERSION = 1;
const SUFFIX = '.json';
/** File systems take 255 bytes; temporary and set-aside names append up to 30. */
const MAX_ENCODED_LENGTH = 200;

/** Where documents of one kind are kept, and how they are read back. `mode` as of chmod. */
export interface DocumentStoreOptions<Document> {
  readonly folder: string;
  readonly logger: Logger;
  /** Written into every document, so that a stray file is not mistaken for one. */
  readonly kind: string;
  /** Who may read the files; default: everybody. */
  readonly mode?: number;
  /** Unique among the documents; the file is named after it. */
  readonly nameOf: (document: Document) => string;
  /** Reads the members of a document; throws an `Error` that says what is missing. */
  readonly parse: (members: Readonly<Record<string, unknown>>) => Document;
}

/**
 * JSON documents in a folder, each written atomically and flushed to disk before the call returns.
 * Writes of one document happen in order; a file that cannot be read is set aside, never deleted.
 */
export class DocumentStore<Document extends object> {
  readonly #options: DocumentStoreOptions<Document>;
  readonly #folder: string;
  readonly #logger: Logger;
  /** Tail of the writes under way, by document name. */
  readonly #writes = new Map<string, Promise<void>>();

  constructor(options: DocumentStoreOptions<Document>) {
    this.#options = options;
    this.#folder = options.folder;
    this.#logger = options.logger;
  }

  /** Loads every document. Torn, foreign or newer files are renamed to `<file>.broken-<time>` and named in the log. */
  async load(): Promise<Document[]> {
    await makeFolder(this.#folder, this.#logger);
    const documents: Document[] = [];
    for (const entry of await readdir(this.#folder, { withFileTypes: true })) {
      const path = join(this.#folder, entry.name);
      // Writes that were cut off; a folder is somebody else's.
      if (entry.name.endsWith('.tmp') && entry.isFile()) await rm(path, { force: true });
      if (!entry.name.endsWith(SUFFIX)) continue;
      try {
        const document = this.#parse(await readFile(path, 'utf8'));
        const name = this.#options.nameOf(document);
        if (entry.name !== fileNameOf(name)) throw new Error(`it describes '${name}', which belongs into ${fileNameOf(name)}`);
        documents.push(document);
      } catch (error) {
        await setAside(path, error instanceof Error ? error.message : String(error), this.#logger);
      }
    }
    return documents;
  }

  /** Resolves when `document` is on disk. */
  async save(document: Document): Promise<void> {
    const name = this.#options.nameOf(document);
    const content = `${JSON.stringify({ format: FORMAT, version: VERSION, kind: this.#options.kind, ...document }, null, 2)}\n`;
    await this.#enqueue(name, () => writeFileAtomic(this.#pathOf(name), content, this.#options.mode));
  }

  /** Resolves when the document is gone from disk. */
  remove(name: string): Promise<void> {
    return this.#enqueue(name, () => removeFileDurable(this.#pathOf(name)));
  }

  #parse(text: string): Document {
    const value: unknown = JSON.parse(text);
    if (typeof value !== 'object' || value === null) throw new Error('it is not a JSON object');
    const members = value as Readonly<Record<string, unknown>>;
    const { kind } = this.#options;
    if (members['format'] !== FORMAT || members['kind'] !== kind)
      throw new Error(`it is not a Millrace ${kind} document (format ${JSON.stringify(members['format'])})`);
    if (members['version'] !== VERSION)
      throw new Error(`it has version ${JSON.stringify(members['version'])}, this server reads ${VERSION}`);
    return this.#options.parse(members);
  }

  /** Sets a document aside whose content turned out to be unusable. */
  async setAsideDocument(name: string, why: string): Promise<void> {
    await setAside(this.#pathOf(name), why, this.#logger);
  }

  /** Keeps a copy of a document of which only a part can be used; false when that fails. */
  copyAsideDocument(name: string, why: string): Promise<boolean> {
    return copyAside(this.#pathOf(name), why, this.#logger);
  }

  /** Resolves when every write under way has ended, well or not. */
  async settle(): Promise<void> {
    await Promise.allSettled(this.#writes.values());
  }

  #enqueue(name: string, write: () => Promise<void>): Promise<void> {
    const previous = this.#writes.get(name) ?? Promise.resolve();
    const next = previous.catch(() => undefined).then(write);
    this.#writes.set(name, next);
    const forget = (): void => {
      if (this.#writes.get(name) === next) this.#writes.delete(name);
    };
    next.then(forget, forget);
    return next;
  }

  #pathOf(name: string): string {
    return join(this.#folder, fileNameOf(name));
  }
}

/** File name of a document; every name maps to another one and stays inside the folder. */
function fileNameOf(name: string): string {
  const encoded = encodeURIComponent(name).replaceAll('.', '%2E').replaceAll('*', '%2A');
  if (encoded.length <= MAX_ENCODED_LENGTH) return `${encoded}${SUFFIX}`;
  const digest = createHash('sha256').update(name).digest('hex').slice(0, 32);
  return `${encoded.slice(0, MAX_ENCODED_LENGTH - digest.length - 1)}~${digest}${SUFFIX}`;
}
