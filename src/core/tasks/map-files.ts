import { stat } from 'node:fs/promises';
import type { XmlElement } from '../../config/xml.ts';
import { readXmlFile } from '../../config/xml-thread.ts';
import type { LogLines } from '../../util/logger.ts';

/** Maps that are kept; each application has one at most of a kind. */
const MAX_KEPT = 100;

interface KnownMap<Entry> {
  /** Changes when the file may have been written. */
  readonly identity: string;
  readonly entries: Promise<readonly Entry[]>;
}

/** The map files of one kind, which every new stream asks for: a file is read when it has changed, and by one of several that ask at once. */
export class MapFiles<Entry> {
  readonly #parse: (root: XmlElement) => readonly Entry[];
  readonly #logger: Pick<LogLines, 'warn'>;
  /** By path, the one that was read first in front. */
  readonly #known = new Map<string, KnownMap<Entry>>();

  constructor(parse: (root: XmlElement) => readonly Entry[], logger: Pick<LogLines, 'warn'>) {
    this.#parse = parse;
    this.#logger = logger;
  }

  /** The entries that are enabled. Rejects for a file that cannot be read or used. */
  async entries(path: string): Promise<readonly Entry[]> {
    const { ino, size, mtimeNs, ctimeNs } = await stat(path, { bigint: true });
    const identity = `${ino}-${size}-${mtimeNs}-${ctimeNs}`;
    const known = this.#known.get(path);
    if (known?.identity === identity) return await known.entries;
    const entry = { identity, entries: readXmlFile(path, this.#logger).then(this.#parse) };
    this.#known.delete(path);
    this.#known.set(path, entry);
    for (const oldest of this.#known.keys()) {
      if (this.#known.size <= MAX_KEPT) break;
      this.#known.delete(oldest);
    }
    try {
      return await entry.entries;
    } catch (error) {
      if (this.#known.get(path) === entry) this.#known.delete(path);
      throw error;
    }
  }
}
