/** Small JSON documents in a folder, each replaced atomically and flushed to disk before a write resolves. */
import { readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { textInSlices } from '../util/in-slices.ts';
import type { Logger } from '../util/logger.ts';
import { messageOf } from '../util/message-of.ts';
import { removeFileDurable, writeFileAtomic, writeFileSoon } from './atomic-file.ts';
import type { DocumentLayout } from './document-layout.ts';
import { copyAside, makeFolder, setAside } from './set-aside.ts';

const FORMAT = 'millrace-state';
const VERSION = 1;
const SUFFIX = '.json';
/** Documents contain secrets: stream keys, passphrases, passwords in URLs, keys of signed policies. */
const MODE = 0o600;

/** A document with its key. */
export interface StoredDocument<Document> {
  readonly key: string;
  readonly value: Document;
}

/** Folder and form of documents of one kind. */
export interface DocumentFolderOptions<Document> {
  readonly folder: string;
  /** Written into every document, so that a stray file is not taken for one. */
  readonly kind: string;
  readonly layout: DocumentLayout<Document>;
  readonly logger: Logger;
}

/** Documents of one kind. Writes of one document happen in order; an unreadable file is set aside, never deleted. */
export class DocumentFolder<Document = unknown> {
  readonly #options: DocumentFolderOptions<Document>;
  /** Tail of the running writes, by key. */
  readonly #writes = new Map<string, Promise<void>>();

  constructor(options: DocumentFolderOptions<Document>) {
    this.#options = options;
  }

  /**
   * Every readable document, by file name. Torn, foreign and newer documents are renamed to `<file>.broken-<time>` and named in the log.
   * Creates the folder.
   */
  async load(): Promise<StoredDocument<Document>[]> {
    const { folder, logger } = this.#options;
    await makeFolder(folder, logger);
    const documents: StoredDocument<Document>[] = [];
    const entries = await readdir(folder, { withFileTypes: true });
    for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
      const path = join(folder, entry.name);
      // Removes files of interrupted writes; a folder with such a name belongs to another program.
      if (entry.name.endsWith('.tmp') && entry.isFile()) await rm(path, { force: true });
      if (!entry.name.endsWith(SUFFIX)) continue;
      try {
        documents.push(this.#parse(entry.name.slice(0, -SUFFIX.length), await readFile(path, 'utf8')));
      } catch (error) {
        await setAside(path, messageOf(error), logger);
      }
    }
    return documents;
  }

  /** Resolves when the document is on disk. Rejects with the file system's error, and the previous document remains. */
  save(key: string, document: Document): Promise<void> {
    return this.#inOrder(key, async () => writeFileAtomic(this.#pathOf(key), await this.#textOf(document), MODE));
  }

  /**
   * Like `save`, but resolves when the document survives the death of this process; it is flushed afterwards to survive a loss of power.
   */
  saveSoon(key: string, document: Document): Promise<void> {
    const written = Promise.withResolvers<void>();
    const durable = this.#inOrder(key, async () => {
      const { durable } = await writeFileSoon(this.#pathOf(key), await this.#textOf(document), MODE);
      written.resolve();
      await durable;
    });
    durable.catch((error: unknown) => {
      written.reject(error);
      this.#options.logger.warn({ err: error, key }, 'state file could not be synced to the disk');
    });
    return written.promise;
  }

  /** Resolves when the document is removed from disk. */
  remove(key: string): Promise<void> {
    return this.#inOrder(key, () => removeFileDurable(this.#pathOf(key)));
  }

  /** Removes a document whose content is unusable, and keeps its file under another name. */
  async setAside(key: string, why: string): Promise<void> {
    await setAside(this.#pathOf(key), why, this.#options.logger);
  }

  /** Keeps a copy of a partly usable document; false if that fails. */
  copyAside(key: string, why: string): Promise<boolean> {
    return copyAside(this.#pathOf(key), why, this.#options.logger);
  }

  /** Resolves when all running writes have ended, successfully or not. */
  async settle(): Promise<void> {
    await Promise.allSettled(this.#writes.values());
  }

  /** A virtual host may have thousands of applications. */
  #textOf(document: Document): Promise<string> {
    const { kind, layout } = this.#options;
    return textInSlices(piecesOf({ format: FORMAT, version: VERSION, kind, ...layout.write(document) }));
  }

  #parse(name: string, text: string): StoredDocument<Document> {
    const parsed: unknown = JSON.parse(text);
    if (typeof parsed !== 'object' || parsed === null) throw new Error('it is not a JSON object');
    const members = parsed as Readonly<Record<string, unknown>>;
    const { kind, layout } = this.#options;
    if (members['format'] !== FORMAT || members['kind'] !== kind)
      throw new Error(`it is not a Millrace ${kind} document (format ${JSON.stringify(members['format'])})`);
    if (members['version'] !== VERSION)
      throw new Error(`it has version ${JSON.stringify(members['version'])}, this server reads ${VERSION}`);
    const value = layout.read(members);
    const key = layout.keyOf(value, name);
    if (layout.encode(key) !== name) throw new Error(`it describes '${key}', which belongs into ${layout.encode(key)}${SUFFIX}`);
    return { key, value };
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
    const { folder, layout } = this.#options;
    return join(folder, `${layout.encode(key)}${SUFFIX}`);
  }
}

/** A document as JSON with an indent of two; each item of its lists is a piece. */
function* piecesOf(members: Readonly<Record<string, unknown>>): Iterable<string> {
  let before = '{\n';
  for (const [key, value] of Object.entries(members)) {
    if (value === undefined) continue;
    yield `${before}  ${JSON.stringify(key)}: `;
    before = ',\n';
    if (!Array.isArray(value) || value.length === 0) {
      yield indented(value, '  ');
      continue;
    }
    for (const [index, item] of value.entries()) yield `${index === 0 ? '[' : ','}\n    ${indented(item, '    ')}`;
    yield '\n  ]';
  }
  yield '\n}\n';
}

function indented(value: unknown, indent: string): string {
  return (JSON.stringify(value, null, 2) ?? 'null').replaceAll('\n', `\n${indent}`);
}
