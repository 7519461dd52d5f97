import { DocumentStore } from '../state/document-store.ts';
import type { Logger } from '../util/logger.ts';
import type { PullDocument, PullStore } from './pull-registry.ts';

/** URLs of sources hold passwords. */
const OWNER_ONLY = 0o600;

/** The persistent pulled streams, one document each. */
export class PullDocumentStore implements PullStore {
  readonly #documents: DocumentStore<PullDocument>;

  constructor(folder: string, logger: Logger) {
    this.#documents = new DocumentStore({ folder, logger, kind: 'pull', mode: OWNER_ONLY, nameOf: keyOf, parse });
  }

  /** Loads every document, in the order of their names. */
  async load(): Promise<PullDocument[]> {
    return (await this.#documents.load()).sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
  }

  save(document: PullDocument): Promise<void> {
    return this.#documents.save(document);
  }

  remove(document: Pick<PullDocument, 'vhost' | 'app' | 'name'>): Promise<void> {
    return this.#documents.remove(keyOf(document));
  }

  /** Resolves when every write under way has ended, well or not. */
  settle(): Promise<void> {
    return this.#documents.settle();
  }
}

function keyOf({ vhost, app, name }: Pick<PullDocument, 'vhost' | 'app' | 'name'>): string {
  return `${vhost}/${app}/${name}`;
}

function parse(members: Readonly<Record<string, unknown>>): PullDocument {
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
