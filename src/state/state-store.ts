import type { Logger } from '../util/logger.ts';
import { DocumentFolder } from './document-folder.ts';
import { named } from './document-layout.ts';

/** One durable document: a virtual host created through the API, with its applications. */
export interface StateDocument {
  readonly name: string;
  /** Position among its siblings: documents load in this order. */
  readonly order: number;
  /** The definition as the API received it. */
  readonly definition: unknown;
  readonly applications: readonly unknown[];
}

/** The virtual hosts created through the API, one document each. */
export class StateStore {
  readonly #documents: DocumentFolder<StateDocument>;

  constructor(folder: string, logger: Logger) {
    this.#documents = new DocumentFolder({ folder, kind: 'virtual-host', layout: named(({ name }) => name, parse), logger });
  }

  /** Loads every document, in order. */
  async load(): Promise<StateDocument[]> {
    return (await this.#documents.load()).map(({ value }) => value).sort((a, b) => a.order - b.order);
  }

  /** Resolves when `document` is on disk. */
  save(document: StateDocument): Promise<void> {
    return this.#documents.save(document.name, document);
  }

  /** Resolves when the document is removed from disk. */
  remove(name: string): Promise<void> {
    return this.#documents.remove(name);
  }

  /** Removes a document whose content is unusable, and keeps its file under another name. */
  setAside(name: string, why: string): Promise<void> {
    return this.#documents.setAside(name, why);
  }

  /** Keeps a copy of a partly usable document; false if that fails. */
  copyAside(name: string, why: string): Promise<boolean> {
    return this.#documents.copyAside(name, why);
  }

  /** Resolves when all running writes have ended, successfully or not. */
  settle(): Promise<void> {
    return this.#documents.settle();
  }
}

function parse({ name, order, definition, applications }: Readonly<Record<string, unknown>>): StateDocument {
  if (typeof name !== 'string' || name === '') throw new Error('its name is missing');
  if (typeof order !== 'number') throw new Error('its order is missing');
  if (typeof definition !== 'object' || definition === null) throw new Error('its definition is missing');
  if (!Array.isArray(applications)) throw new Error('its applications are missing');
  return { name, order, definition, applications };
}
