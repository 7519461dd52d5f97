import type { Logger } from '../util/logger.ts';
import { DocumentStore } from './document-store.ts';

/** One durable document: a virtual host made through the API, with its applications. */
export interface StateDocument {
  readonly name: string;
  /** Position among its siblings: documents load in this order. */
  readonly order: number;
  /** The definition as the API received it. */
  readonly definition: unknown;
  readonly applications: readonly unknown[];
}

/** The virtual hosts made through the API, one document each. */
export class StateStore extends DocumentStore<StateDocument> {
  constructor(folder: string, logger: Logger) {
    // Definitions hold secrets: of signed policies, webhooks and Redis.
    super({ folder, logger, kind: 'virtual-host', mode: 0o600, nameOf: ({ name }) => name, parse });
  }

  /** Loads every document, in order. */
  override async load(): Promise<StateDocument[]> {
    return (await super.load()).sort((a, b) => a.order - b.order);
  }
}

function parse({ name, order, definition, applications }: Readonly<Record<string, unknown>>): StateDocument {
  if (typeof name !== 'string' || name === '') throw new Error('its name is missing');
  if (typeof order !== 'number') throw new Error('its order is missing');
  if (typeof definition !== 'object' || definition === null) throw new Error('its definition is missing');
  if (!Array.isArray(applications)) throw new Error('its applications are missing');
  return { name, order, definition, applications };
}
