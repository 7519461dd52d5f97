/** All state that the API created, for operators who start without it. */
import { existsSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { showHidden } from '../util/hidden-characters.ts';
import type { Logger } from '../util/logger.ts';
import { removeFileDurable } from './atomic-file.ts';
import { problemOf } from './state-lock.ts';

/** Folders of documents below the state folder. Unfinished recordings and dumps are elsewhere, as are their files. */
const MADE_BY_API: readonly (readonly [folder: string, noun: string])[] = [
  ['vhosts', 'virtual hosts'],
  ['pulls', 'persistent pulls'],
  ['records/tasks', 'recording tasks'],
  ['pushes', 'push tasks'],
  ['untold-changes', 'changes for other nodes'],
];
const SUFFIX = '.json';
/** Documents with such names are never loaded. */
const HIDDEN_SUFFIX = '.json.forgetting';
/** Limit of names in a line of the log. */
const MAX_NAMES = 100;

interface Hidden {
  readonly noun: string;
  /** The hidden files, one for each document. */
  readonly files: readonly string[];
  readonly names: readonly string[];
}

/**
 * Documents of objects made by the API, hidden until the start has decided about them. A failed or interrupted start loses nothing:
 * `takeBack`, at the latest that of the next start, restores them. Touches nothing else in the state folder.
 */
export class ApiState {
  readonly #folder: string;
  readonly #logger: Logger;
  #hidden: readonly Hidden[] | null = null;

  constructor(stateFolder: string, logger: Logger) {
    this.#folder = stateFolder;
    this.#logger = logger;
  }

  /** Call before anything loads documents. Throws `StateFolderProblem` if one cannot be hidden; then all are back in place. */
  hide(): void {
    try {
      this.#hidden = MADE_BY_API.map(([folder, noun]) => ({ noun, ...hideAll(join(this.#folder, folder)) }));
    } catch (error) {
      this.takeBack();
      throw problemOf(this.#folder, error);
    }
  }

  /** Deletes the hidden documents and logs their contents' names. Rejects with `StateFolderProblem` if a document cannot be deleted. */
  async forget(): Promise<void> {
    const hidden = this.#hidden;
    if (hidden === null) return;
    for (const { noun, files, names } of hidden) {
      for (const file of files) {
        await removeFileDurable(file).catch((error: unknown) => {
          throw problemOf(this.#folder, error);
        });
      }
      if (names.length > 0) this.#logger.warn({ names: names.slice(0, MAX_NAMES) }, `forgot ${noun} made through the API: ${names.length}`);
    }
    if (hidden.every(({ files }) => files.length === 0))
      this.#logger.info({}, 'nothing to forget: no objects made through the API are stored');
    this.#hidden = null;
  }

  /** Restores everything hidden, by any process, before it returns; a document that was recreated since stays. Never throws. */
  takeBack(): void {
    for (const [folder] of MADE_BY_API) {
      const path = join(this.#folder, folder);
      for (const entry of entriesOf(path, HIDDEN_SUFFIX)) {
        const from = join(path, entry);
        const to = join(path, `${entry.slice(0, -HIDDEN_SUFFIX.length)}${SUFFIX}`);
        try {
          if (existsSync(to)) rmSync(from);
          else renameSync(from, to);
        } catch (error) {
          this.#logger.warn({ err: error, file: from }, 'a document of the state folder stays hidden');
        }
      }
    }
    this.#hidden = null;
  }
}

function hideAll(folder: string): Pick<Hidden, 'files' | 'names'> {
  const files: string[] = [];
  const names: string[] = [];
  for (const entry of entriesOf(folder, SUFFIX, 'strict')) {
    const from = join(folder, entry);
    const to = join(folder, `${entry.slice(0, -SUFFIX.length)}${HIDDEN_SUFFIX}`);
    names.push(titleOf(readFileSync(from, 'utf8')) || entry);
    renameSync(from, to);
    files.push(to);
  }
  return { files, names };
}

/** `strict`: throws for an existing folder that cannot be read. */
function entriesOf(folder: string, suffix: string, strict?: 'strict'): string[] {
  try {
    const entries = readdirSync(folder, { withFileTypes: true });
    return entries.flatMap((entry) => (entry.isFile() && entry.name.endsWith(suffix) ? [entry.name] : [])).sort();
  } catch (error) {
    if (strict === undefined || (error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}

/** `<virtual host>/<application>/<name or id>`, as far as the document has them; empty for an unreadable one. */
function titleOf(text: string): string {
  try {
    const document = JSON.parse(text);
    const { vhost, app, name, request } = document?.value ?? document;
    return [vhost, app, name ?? request?.id]
      .filter((part) => typeof part === 'string')
      .map(showHidden)
      .join('/');
  } catch {
    return '';
  }
}
