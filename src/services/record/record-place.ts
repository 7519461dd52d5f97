/** The place of an application's recordings: its settings, and the allowed folders. */
import { join, relative, resolve } from 'node:path';
import { AllowedFolders } from '../../util/allowed-folders.ts';
import { belowRoot, DEFAULT_FILE_PATH, DEFAULT_INFO_PATH, expandPath, type PathValues, refuseContainer } from './record-path.ts';

/** The part of the application's configuration that is about recordings. */
export interface FilePublisherSettings {
  readonly rootPath?: string | undefined;
  readonly filePath?: string | undefined;
  readonly infoPath?: string | undefined;
  readonly streamMap?: { readonly enable: boolean; readonly path?: string | undefined } | undefined;
}

/** Path templates of one recording, absolute. */
export interface RecordPaths {
  readonly file: string;
  readonly info: string;
}

/** Folders for recordings of a publisher with this `RootPath`. */
export function foldersBelow(root: string | null, allowed: AllowedFolders): AllowedFolders {
  return root === null ? allowed : new AllowedFolders([root], 'RootPath of the FILE publisher', allowed);
}

/** Made for each request and each stream, of settings as they are at the moment. Touches no disk. */
export class RecordPlace {
  /** Folders that must contain all others. */
  readonly folders: AllowedFolders;
  readonly #settings: FilePublisherSettings;
  readonly #root: string | null;
  readonly #defaultRoot: string;

  /** `stateFolder`: relative root paths start there, and recordings without any path go to `recordings` in it. */
  constructor(settings: FilePublisherSettings, stateFolder: string, allowed: AllowedFolders) {
    const { rootPath } = settings;
    this.#settings = settings;
    this.#root = rootPath === undefined || rootPath === '' ? null : resolve(stateFolder, rootPath);
    this.#defaultRoot = join(resolve(stateFolder), 'recordings');
    this.folders = foldersBelow(this.#root, allowed);
  }

  /** The absolute `RootPath`; null for none. */
  get root(): string | null {
    return this.#root;
  }

  /** The path templates for a recording; empty ones are replaced by those of the publisher. Throws `PathRefused`. */
  pathsOf({ filePath, infoPath }: { readonly filePath: string; readonly infoPath: string }): RecordPaths {
    const givenFile = filePath || this.#settings.filePath || DEFAULT_FILE_PATH;
    const givenInfo = infoPath || this.#settings.infoPath || DEFAULT_INFO_PATH;
    const file = this.#absolute(givenFile, DEFAULT_FILE_PATH);
    const info = this.#absolute(givenInfo, DEFAULT_INFO_PATH);
    this.folders.check(file);
    this.folders.check(info);
    refuseContainer(givenFile);
    return { file, info };
  }

  /** An absolute path as the API shows it: relative to the `RootPath`, with a leading slash. */
  shown(path: string): string {
    return this.#root === null ? path : join('/', relative(this.#root, path));
  }

  /** The path of a file with these values. Throws `PathRefused` if they make it invalid: `..`, another extension. */
  expand({ file, info }: Pick<RecordPaths, 'file' | 'info'>, values: PathValues): string {
    const path = expandPath(file, values);
    this.folders.check(path);
    this.folders.check(expandPath(info, values));
    refuseContainer(path);
    return path;
  }

  #absolute(path: string, fallback: string): string {
    if (this.#root !== null) return belowRoot(this.#root, path);
    const isFree = path.startsWith('/') && path !== fallback;
    return belowRoot(isFree ? '/' : this.#defaultRoot, path);
  }
}
