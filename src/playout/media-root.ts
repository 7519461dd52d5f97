/** Which file a `file://` URL of an item means: one below the media root, and nothing else. */
import { join, resolve } from 'node:path';
import { AllowedFolders, refuseStrange } from '../util/allowed-folders.ts';
import { OpenFile } from './file-bytes.ts';

const SCHEME = 'file://';

/** A folder with the files that items may name. */
export class MediaRoot {
  readonly #root: string;
  readonly #folders: AllowedFolders;

  /** `folder` is absolute; files that `allowed` refuses are refused as well. `setting` is the name in a refusal. */
  constructor(folder: string, allowed: AllowedFolders, setting = 'MediaRootDir') {
    this.#root = resolve(folder);
    this.#folders = new AllowedFolders([this.#root], setting, allowed);
  }

  /**
   * The absolute path behind `url`: the text after `file://`, percent-decoded. Rejects with `PathRefused` if it leads out of the folder.
   */
  async pathOf(url: string): Promise<string> {
    if (!url.startsWith(SCHEME)) throw new Error(`${JSON.stringify(url)} is not a ${SCHEME} URL`);
    const path = pathBelow(this.#root, url);
    await this.#folders.checkLinks(path);
    return path;
  }

  /** Opens it; the caller closes it. Rejects with `PathRefused` or the error of the file system. */
  async open(url: string): Promise<OpenFile> {
    return await OpenFile.open(await this.pathOf(url), this.#folders);
  }
}

/** The path below `root` that a `file://` URL means. Throws `PathRefused` when its text leads out. */
export function pathBelow(root: string, url: string): string {
  const rest = decoded(url.slice(SCHEME.length));
  refuseStrange(rest);
  return join(root, rest);
}

/** Names of files may hold a percent sign of their own. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
