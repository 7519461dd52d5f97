/** Folders in use by dumps: two dumps in one folder would replace each other's playlists. */

import { deepestReal } from '../../../util/allowed-folders.ts';

/** A dump, as seen by other dumps that want its folder. */
export interface FolderWriter {
  /** Files are still added. */
  readonly enabled: boolean;
  /** Resolves when no file is touched any longer. */
  readonly over: Promise<void>;
}

/** Another dump has the folder. */
class FolderTaken extends Error {
  override readonly name = 'FolderTaken';
}

/** A folder reserved for one dump. */
export interface FolderClaim {
  /** Gives the folder to `writer` until its `over` resolves. */
  keep(writer: FolderWriter): void;
  /** Frees the folder of a dump that could not start. Does nothing after `keep`. */
  release(): void;
}

/** All dumpers of a server share one. */
export class FolderClaims {
  /** By path, as it was written and as it really is; null while a dump is being prepared. */
  readonly #writers = new Map<string, FolderWriter | null>();

  /**
   * Reserves the folder at the absolute `path`, whatever links lead to it; waits for an ended dump to release it. Rejects with
   * `FolderTaken`.
   */
  async claim(path: string): Promise<FolderClaim> {
    await this.#take(path);
    // A folder that cannot be resolved cannot be made either, and is reported then.
    const real = await deepestReal(path).catch(() => path);
    const names = [path];
    if (real !== path) {
      try {
        await this.#take(real);
      } catch (error) {
        this.#let([path], null);
        throw error;
      }
      names.push(real);
    }
    return {
      keep: (writer) => {
        for (const name of names) this.#writers.set(name, writer);
        void writer.over.then(() => this.#let(names, writer));
      },
      release: () => this.#let(names, null),
    };
  }

  async #take(name: string): Promise<void> {
    for (let writer = this.#writers.get(name); writer !== undefined; writer = this.#writers.get(name)) {
      if (writer === null || writer.enabled) throw new FolderTaken('Another dump writes to this folder');
      await writer.over;
    }
    this.#writers.set(name, null);
  }

  /** Frees those of `names` that `writer` has. */
  #let(names: readonly string[], writer: FolderWriter | null): void {
    for (const name of names) if (this.#writers.get(name) === writer) this.#writers.delete(name);
  }
}
