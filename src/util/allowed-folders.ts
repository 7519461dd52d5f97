/** Confines the server's file access to folders: no `..`, and no symbolic link that leads out. */
import { mkdir, realpath, stat } from 'node:fs/promises';
import { dirname, resolve, sep } from 'node:path';

/** A path that the server must not use. `message` names the path and the violated rule. */
export class PathRefused extends Error {
  override readonly name = 'PathRefused';
}

/** A set of folders under which files may be made; null allows every folder the process may write to. */
export class AllowedFolders {
  #roots: readonly string[] | null;
  readonly #setting: string;
  readonly #outer: AllowedFolders | null;

  /** `roots` are absolute. `setting` is named in refusals. Paths that `outer` refuses are refused as well. */
  constructor(roots: readonly string[] | null, setting: string, outer: AllowedFolders | null = null) {
    this.#roots = roots;
    this.#setting = setting;
    this.#outer = outer;
  }

  /** Takes over the rules of `other`; `outer` stays. */
  become(other: AllowedFolders): void {
    this.#roots = other.#roots;
  }

  /** Whether some folders are not allowed. */
  get bounded(): boolean {
    return this.#roots !== null || this.#outer?.bounded === true;
  }

  /** Throws `PathRefused` when the absolute `path` lies outside by its text alone. */
  check(path: string): void {
    refuseStrange(path);
    this.#outer?.check(path);
    if (this.#roots === null || this.#roots.some((root) => isInside(path, root))) return;
    throw new PathRefused(`${JSON.stringify(path)} is outside of the folders that ${this.#setting} allows`);
  }

  /** Like `check`, with symbolic links followed as far as the path exists. Rejects with `PathRefused`. */
  async checkLinks(path: string): Promise<void> {
    this.check(path);
    // All look-ups at once: on a busy machine each waits long for its thread, and recordings wait for all of them.
    for (const outcome of await Promise.allSettled([this.#outer?.checkLinks(path), this.#checkReal(path)])) {
      if (outcome.status === 'rejected') throw outcome.reason;
    }
  }

  async #checkReal(path: string): Promise<void> {
    if (this.#roots === null) return;
    const [real, ...roots] = await Promise.allSettled([path, ...this.#roots].map(deepestReal));
    if (real?.status === 'rejected') throw real.reason;
    for (const root of roots) {
      if (root.status === 'rejected') throw root.reason;
      if (real !== undefined && isInside(real.value, root.value)) return;
    }
    throw new PathRefused(`${JSON.stringify(path)} leads out of the folders that ${this.#setting} allows, through a symbolic link`);
  }

  /** Makes the folder `path`, parents included, unless it would lie outside. Rejects with `PathRefused` or the file system's error. */
  async makeFolder(path: string): Promise<void> {
    // The common case: the folder exists. A recording waits for each further step.
    const [isThere] = await Promise.all([isFolder(path), this.checkLinks(path)]);
    if (isThere) return;
    await makeFolders(resolve(path));
    await this.checkLinks(path);
  }
}

/** Throws `PathRefused` for a path that names its parent or holds a NUL. */
export function refuseStrange(path: string): void {
  if (path.includes('\0')) throw new PathRefused(`${JSON.stringify(path)} contains a NUL character`);
  if (path.split('/').includes('..')) throw new PathRefused(`${JSON.stringify(path)} contains ".."`);
}

function isInside(path: string, root: string): boolean {
  const folder = resolve(root);
  const full = resolve(path);
  return full === folder || full.startsWith(folder.endsWith(sep) ? folder : folder + sep);
}

/** Like a recursive `mkdir`, which never returns below a file system that refuses with ENOENT, as /proc does. */
async function makeFolders(path: string): Promise<void> {
  const missing: string[] = [];
  for (let at = path; !(await makeFolder(at)); at = dirname(at)) missing.push(at);
  for (const folder of missing.reverse()) {
    if (!(await makeFolder(folder))) throw new Error(`the file system does not take the folder ${folder}`);
  }
}

async function isFolder(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory();
  } catch {
    return false;
  }
}

/** False when the parent is missing. */
async function makeFolder(path: string): Promise<boolean> {
  try {
    await mkdir(path);
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' && dirname(path) !== path) return false;
    if (code === 'EEXIST' && (await stat(path)).isDirectory()) return true;
    throw error;
  }
}

/** The real path of the longest existing part of `path`, with the rest appended. Rejects with `PathRefused` if it cannot be determined. */
export async function deepestReal(path: string): Promise<string> {
  const rest: string[] = [];
  for (let at = resolve(path); ; at = dirname(at)) {
    try {
      return resolve(await realpath(at), ...rest);
    } catch (error) {
      // Nothing exists there yet, or a dangling link or a file is in the way: mkdir refuses both.
      const { code, message } = error as NodeJS.ErrnoException;
      const goesUp = code === 'ENOENT' || code === 'ENOTDIR';
      if (!goesUp || dirname(at) === at) throw new PathRefused(`${JSON.stringify(path)} cannot be looked up: ${message}`);
      rest.unshift(at.slice(dirname(at).length).replace(sep, ''));
    }
  }
}
