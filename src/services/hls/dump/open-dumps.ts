/** Running dumps, recorded on disk: if this process cannot end them, the next start marks them as failed. */
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { writeFileAtomic } from '../../../state/atomic-file.ts';
import { DocumentFolder } from '../../../state/document-folder.ts';
import { KEYED } from '../../../state/document-layout.ts';
import type { Logger } from '../../../util/logger.ts';
import { DumpStatus, statusElement } from './dump-info.ts';

/** Notes of dumps with an information file. A dump ends with its stream, and so with the server. */
export class OpenDumps {
  readonly #path: string;
  readonly #documents: DocumentFolder;
  readonly #logger: Logger;
  /** Notes of the last run. */
  #left: readonly { readonly key: string; readonly value: unknown }[] = [];

  constructor(stateFolder: string, logger: Logger) {
    this.#path = join(stateFolder, 'dumps');
    this.#documents = new DocumentFolder({ folder: this.#path, kind: 'open-dump', layout: KEYED, logger });
    this.#logger = logger;
  }

  /** Reads the notes of the last run without changing anything. Call before dumps start. */
  async load(): Promise<void> {
    this.#left = await this.#documents.load();
  }

  /** Sets the status `Error` in information files that a dead process left at `Running`. Call once, after `load`. Never rejects. */
  async recover(): Promise<void> {
    const left = this.#left;
    this.#left = [];
    for (const { key, value } of left) {
      const infoPath = typeof value === 'object' && value !== null && 'infoPath' in value ? value.infoPath : null;
      if (typeof infoPath === 'string') await this.#settle(infoPath);
      await this.remove(key);
    }
  }

  /** Resolves when the dump is noted; a failure is logged and does not stop the dump. */
  async add(key: string, infoPath: string): Promise<void> {
    try {
      await mkdir(this.#path, { recursive: true });
      await this.#documents.save(key, { infoPath });
    } catch (error) {
      this.#logger.warn(
        { err: error, info: infoPath },
        'dump could not be noted: after a crash its information file would stay at Running',
      );
    }
  }

  async remove(key: string): Promise<void> {
    await this.#documents
      .remove(key)
      .catch((error: unknown) =>
        this.#logger.warn({ err: error, key }, 'the note of a finished dump cannot be removed from the state folder'),
      );
  }

  async #settle(infoPath: string): Promise<void> {
    try {
      const text = await readFile(infoPath, 'utf8');
      const running = statusElement(DumpStatus.RUNNING);
      if (!text.includes(running)) return;
      await writeFileAtomic(
        infoPath,
        text.replace(running, () => statusElement(DumpStatus.ERROR)),
      );
      this.#logger.warn({ info: infoPath }, `dump of the last run was interrupted: the status in ${infoPath} is Error now`);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return;
      this.#logger.error({ err: error, info: infoPath }, 'information file of a dump of the last run cannot be changed');
    }
  }
}
