/** Marks of definition files that this server wrote: a file that somebody else wrote or edited has none. */
import type { Logger } from '../util/logger.ts';
import { DocumentFolder } from './document-folder.ts';
import { named } from './document-layout.ts';

/** A definition file, identified alike wherever its folder is. */
export interface MarkedFile {
  readonly kind: string;
  readonly vhost: string;
  readonly app: string;
  /** Without the extension. */
  readonly name: string;
}

interface Mark extends MarkedFile {
  /** Digests of the contents that this server wrote: two of them while it replaces one by the other. */
  readonly digests: readonly string[];
}

const MAX_DIGESTS = 2;

/** A folder of documents, one for each file. */
export class FileMarks {
  readonly #documents: DocumentFolder<Mark> | null;
  readonly #marks = new Map<string, Mark>();

  /** `folder` null: marks are lost with this object. */
  constructor(folder: string | null, logger: Logger) {
    // All documents have a `kind` of their own.
    const layout = { ...named(keyOf, read), write: ({ kind, ...mark }: Mark) => ({ ...mark, file: kind }) };
    this.#documents = folder === null ? null : new DocumentFolder<Mark>({ folder, kind: 'file-mark', layout, logger });
  }

  /** Reads what an earlier run left. */
  async load(): Promise<void> {
    for (const { key, value } of (await this.#documents?.load()) ?? []) this.#marks.set(key, value);
  }

  /** Whether this server wrote the content of this digest. */
  has(file: MarkedFile, digest: string): boolean {
    return this.#marks.get(keyOf(file))?.digests.includes(digest) === true;
  }

  /**
   * Runs `write`, which replaces the content of digest `before` (null: there is no file) by that of `after`. A crash at any moment leaves a
   * file whose mark says the truth. Rejects as `write` does, or if the mark cannot be saved; nothing is written then.
   */
  async during(file: MarkedFile, { before, after }: Digests, write: () => Promise<void>): Promise<void> {
    const digests = before !== null && before !== after && this.has(file, before) ? [before, after] : [after];
    await this.#save(file, digests);
    await write();
    // With both digests the mark is as good, unless somebody puts the old content back.
    if (digests.length > 1) await this.#save(file, [after]).catch(() => undefined);
  }

  /** The file is gone. Resolves when its mark is. */
  async remove(file: MarkedFile): Promise<void> {
    if (this.#marks.delete(keyOf(file))) await this.#documents?.remove(keyOf(file));
  }

  /** Resolves when every write under way has ended, well or not. */
  async settle(): Promise<void> {
    await this.#documents?.settle();
  }

  async #save({ kind, vhost, app, name }: MarkedFile, digests: readonly string[]): Promise<void> {
    const mark: Mark = { kind, vhost, app, name, digests };
    await this.#documents?.save(keyOf(mark), mark);
    this.#marks.set(keyOf(mark), mark);
  }
}

interface Digests {
  readonly before: string | null;
  readonly after: string;
}

function keyOf({ kind, vhost, app, name }: MarkedFile): string {
  return JSON.stringify([kind, vhost, app, name]);
}

function read(members: Readonly<Record<string, unknown>>): Mark {
  const { vhost, app, name, file: kind, digests } = members;
  if (typeof kind !== 'string' || typeof vhost !== 'string' || typeof app !== 'string' || typeof name !== 'string') {
    throw new Error('its names are missing');
  }
  const texts = Array.isArray(digests) ? digests.filter((digest) => typeof digest === 'string') : [];
  if (texts.length === 0 || texts.length > MAX_DIGESTS) throw new Error('its digests are missing');
  return { kind, vhost, app, name, digests: texts };
}
