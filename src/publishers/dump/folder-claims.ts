/** Which folders dumps write into: two in one folder would replace each other's playlists. */

/** A dump as others see it that want its folder. */
export interface FolderWriter {
  /** Files are still added. */
  readonly enabled: boolean;
  /** Resolves when no file will be touched any more. */
  readonly over: Promise<void>;
}

/** Another dump has the folder. */
export class FolderTaken extends Error {
  override readonly name = 'FolderTaken';
}

/** One for all dumpers of a server. */
export class FolderClaims {
  /** By absolute path; null while a dump is being prepared. */
  readonly #writers = new Map<string, FolderWriter | null>();

  /** Takes `folder`; a dump that has ended already is waited for. Rejects with `FolderTaken`. Call `keep` or `release` next. */
  async claim(folder: string): Promise<void> {
    for (let writer = this.#writers.get(folder); writer !== undefined; writer = this.#writers.get(folder)) {
      if (writer === null || writer.enabled) throw new FolderTaken('Another dump writes to this folder');
      await writer.over;
    }
    this.#writers.set(folder, null);
  }

  /** The claimed folder is that of `writer` until that is over. */
  keep(folder: string, writer: FolderWriter): void {
    this.#writers.set(folder, writer);
    void writer.over.then(() => {
      if (this.#writers.get(folder) === writer) this.#writers.delete(folder);
    });
  }

  /** Gives up a claim that came to nothing. */
  release(folder: string): void {
    if (this.#writers.get(folder) === null) this.#writers.delete(folder);
  }
}
