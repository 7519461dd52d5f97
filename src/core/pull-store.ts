import { DocumentFolder } from '../state/document-folder.ts';
import { named } from '../state/document-layout.ts';
import type { Logger } from '../util/logger.ts';
import type { PullDocument, PullStore } from './pull-registry.ts';
import { addressOf, streamText } from './stream-address.ts';

/** The persistent pulled streams, one document each. */
export class PullDocumentStore implements PullStore {
  readonly #documents: DocumentFolder<PullDocument>;

  constructor(folder: string, logger: Logger) {
    this.#documents = new DocumentFolder({
      folder,
      kind: 'pull',
      layout: named(nameOf, readPullDocument),
      logger,
    });
  }

  /** Loads every document, in the order of their names. */
  async load(): Promise<PullDocument[]> {
    const documents = await this.#documents.load();
    return documents.sort((a, b) => (a.key < b.key ? -1 : 1)).map(({ value }) => value);
  }

  save(document: PullDocument): Promise<void> {
    return this.#documents.save(nameOf(document), document);
  }

  remove(document: Pick<PullDocument, 'vhost' | 'app' | 'name'>): Promise<void> {
    return this.#documents.remove(nameOf(document));
  }

  /** Resolves when every write under way has ended, well or not. */
  settle(): Promise<void> {
    return this.#documents.settle();
  }
}

function nameOf(document: Pick<PullDocument, 'vhost' | 'app' | 'name'>): string {
  return streamText(addressOf(document));
}

/** A persistent stream in the form of its document. Throws an `Error` that names what is missing. */
export function readPullDocument(members: Readonly<Record<string, unknown>>): PullDocument {
  const { urls, properties } = members;
  if (!Array.isArray(urls) || urls.length === 0 || !urls.every((url) => typeof url === 'string')) throw new Error('its urls are missing');
  if (typeof properties !== 'object' || properties === null) throw new Error('its properties are missing');
  const given = properties as Readonly<Record<string, unknown>>;
  return {
    vhost: textOf(members, 'vhost'),
    app: textOf(members, 'app'),
    name: textOf(members, 'name'),
    urls,
    properties: {
      persistent: true,
      noInputFailoverTimeoutMs: numberOf(given, 'noInputFailoverTimeoutMs'),
      unusedStreamDeletionTimeoutMs: numberOf(given, 'unusedStreamDeletionTimeoutMs'),
      retryCount: numberOf(given, 'retryCount'),
      ignoreRtcpSRTimestamp: given['ignoreRtcpSRTimestamp'] === true,
      relay: given['relay'] === true,
    },
  };
}

function textOf(members: Readonly<Record<string, unknown>>, key: string): string {
  const value = members[key];
  if (typeof value !== 'string' || value === '') throw new Error(`its ${key} is missing`);
  return value;
}

function numberOf(members: Readonly<Record<string, unknown>>, key: string): number {
  const value = members[key];
  if (typeof value !== 'number' || !(value >= 0)) throw new Error(`its properties.${key} is missing`);
  return value;
}
