/** Definitions that were made or deleted here and that the other nodes have not been told, on disk: Redis is away. */
import { WORK_NOUNS, type Work } from '../core/shared-work.ts';
import { DocumentFolder } from '../state/document-folder.ts';
import { named } from '../state/document-layout.ts';
import type { Logger } from '../util/logger.ts';

/** One change; the last one of a piece of work counts. */
export interface UntoldChange {
  readonly work: Work;
  /** Time of the change, wall clock, ms; greater than that of the previous one. */
  readonly version: number;
  /** The definition as JSON; '': it was deleted. */
  readonly text: string;
}

/** A folder of documents, one for each piece of work. */
export class UntoldChanges {
  readonly #documents: DocumentFolder<UntoldChange>;
  readonly #changes = new Map<string, UntoldChange>();

  constructor(folder: string, logger: Logger) {
    this.#documents = new DocumentFolder({
      folder,
      kind: 'untold-change',
      layout: { ...named(nameOf, read), write: ({ work, version, text }) => ({ work, changedAt: version, text }) },
      logger,
    });
  }

  /** Reads what an earlier run left. */
  async load(): Promise<void> {
    for (const { key, value } of await this.#documents.load()) this.#changes.set(key, value);
  }

  /** Those of a virtual host. */
  of(vhost: string): UntoldChange[] {
    return [...this.#changes.values()].filter(({ work }) => work.vhost === vhost);
  }

  /** Resolves when the change survives a restart. */
  save(change: UntoldChange): Promise<void> {
    this.#changes.set(nameOf(change), change);
    return this.#documents.save(nameOf(change), change);
  }

  /** The other nodes have been told. */
  async remove(change: Pick<UntoldChange, 'work'>): Promise<void> {
    if (this.#changes.delete(nameOf(change))) await this.#documents.remove(nameOf(change));
  }

  /** Resolves when every write under way has ended, well or not. */
  settle(): Promise<void> {
    return this.#documents.settle();
  }
}

function nameOf({ work: { kind, vhost, app, name } }: Pick<UntoldChange, 'work'>): string {
  return JSON.stringify([kind, vhost, app, name]);
}

function read({ work, changedAt, text }: Readonly<Record<string, unknown>>): UntoldChange {
  if (typeof work !== 'object' || work === null) throw new Error('its work is missing');
  const { kind, vhost, app, name } = work as Readonly<Record<string, unknown>>;
  if (typeof kind !== 'string' || !Object.hasOwn(WORK_NOUNS, kind)) throw new Error('its kind is missing');
  if (typeof vhost !== 'string' || typeof app !== 'string' || typeof name !== 'string') throw new Error('its names are missing');
  if (typeof changedAt !== 'number' || typeof text !== 'string') throw new Error('its change is missing');
  return { work: { kind: kind as Work['kind'], vhost, app, name }, version: changedAt, text };
}
