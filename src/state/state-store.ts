import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from '../util/logger.ts';
import { removeFileDurable, writeFileAtomic } from './atomic-file.ts';

const FORMAT = 'millrace-state';
const VERSION = 1;
const SUFFIX = '.json';
/** File systems take 255 bytes; temporary and set-aside names append up to 30. */
const MAX_ENCODED_LENGTH = 200;

/** One durable document: a virtual host made through the API, with its applications. */
export interface StateDocument {
  readonly name: string;
  /** Position among its siblings: documents load in this order. */
  readonly order: number;
  /** The definition as the API received it. */
  readonly definition: unknown;
  readonly applications: readonly unknown[];
}

/**
 * JSON documents in a folder, each written atomically and flushed to disk before the call returns.
 * Writes of one document happen in order; a file that cannot be read is set aside, never deleted.
 */
export class StateStore {
  readonly #folder: string;
  readonly #logger: Logger;
  /** Tail of the writes under way, by document name. */
  readonly #writes = new Map<string, Promise<void>>();

  constructor(folder: string, logger: Logger) {
    this.#folder = folder;
    this.#logger = logger;
  }

  /** Loads every document. Torn, foreign or newer files are renamed to `<file>.broken-<time>` and named in the log. */
  async load(): Promise<StateDocument[]> {
    await mkdir(this.#folder, { recursive: true });
    const documents: StateDocument[] = [];
    for (const entry of await readdir(this.#folder, { withFileTypes: true })) {
      const path = join(this.#folder, entry.name);
      if (entry.name.endsWith('.tmp')) {
        await rm(path, { force: true, recursive: true });
        continue;
      }
      if (!entry.name.endsWith(SUFFIX)) continue;
      try {
        const document = parseDocument(await readFile(path, 'utf8'));
        if (entry.name !== fileNameOf(document.name))
          throw new Error(`it describes '${document.name}', which belongs into ${fileNameOf(document.name)}`);
        documents.push(document);
      } catch (error) {
        await this.setAside(path, error instanceof Error ? error.message : String(error));
      }
    }
    return documents.sort((a, b) => a.order - b.order);
  }

  /** Resolves when `document` is on disk. */
  save(document: StateDocument): Promise<void> {
    const content = `${JSON.stringify({ format: FORMAT, version: VERSION, kind: 'virtual-host', ...document }, null, 2)}\n`;
    return this.#enqueue(document.name, () => writeFileAtomic(this.#pathOf(document.name), content));
  }

  /** Resolves when the document is gone from disk. */
  remove(name: string): Promise<void> {
    return this.#enqueue(name, () => removeFileDurable(this.#pathOf(name)));
  }

  /** Sets a document aside whose content turned out to be unusable. */
  async setAsideDocument(name: string, why: string): Promise<void> {
    await this.setAside(this.#pathOf(name), why);
  }

  async setAside(path: string, why: string): Promise<void> {
    const aside = `${path}.broken-${Date.now()}`;
    try {
      await rename(path, aside);
      this.#logger.error({ file: path, setAside: aside, why }, `state file cannot be used and was set aside: ${why}`);
    } catch (error) {
      this.#logger.error({ file: path, why, err: error }, `state file cannot be used and could not be set aside: ${why}`);
    }
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

function parseDocument(text: string): StateDocument {
  const value: unknown = JSON.parse(text);
  if (typeof value !== 'object' || value === null) throw new Error('it is not a JSON object');
  const { format, version, kind, name, order, definition, applications } = value as Record<string, unknown>;
  if (format !== FORMAT || kind !== 'virtual-host')
    throw new Error(`it is not a Millrace virtual host document (format ${JSON.stringify(format)})`);
  if (version !== VERSION) throw new Error(`it has version ${JSON.stringify(version)}, this server reads ${VERSION}`);
  if (typeof name !== 'string' || name === '') throw new Error('its name is missing');
  if (typeof order !== 'number') throw new Error('its order is missing');
  if (typeof definition !== 'object' || definition === null) throw new Error('its definition is missing');
  if (!Array.isArray(applications)) throw new Error('its applications are missing');
  return { name, order, definition, applications };
}
