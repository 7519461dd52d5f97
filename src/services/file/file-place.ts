/** Resolves `file://` URLs within the folders that the server may read from. */
import { join } from 'node:path';
import { schemeOf } from '../../core/pull.ts';
import { AllowedFolders, PathRefused, refuseStrange } from '../../util/allowed-folders.ts';

/** The part of the application's configuration that is about files. */
export interface FileProviderSettings {
  readonly rootPath?: string | undefined;
}

/**
 * The absolute path of `url`: the part after `file://`, percent-decoded, below the root path of the provider. Rejects with `PathRefused` if
 * it leads out of the root path or of the folders of `Server/Storage/AllowedRoots`.
 */
export async function filePathOf(url: string, settings: FileProviderSettings, allowed: AllowedFolders): Promise<string> {
  const { rootPath = '' } = settings;
  const rest = decoded(url.slice(schemeOf(url).length + '://'.length).replace(/\?.*$/s, ''));
  refuseStrange(rest);
  if (rootPath === '' && !allowed.bounded) {
    throw new PathRefused('files are played only with a RootPath of the FILE provider, or Server/Storage/AllowedRoots');
  }
  const path = join(rootPath === '' ? '/' : rootPath, rest);
  const folders = rootPath === '' ? allowed : new AllowedFolders([rootPath], 'RootPath of the FILE provider', allowed);
  await folders.checkLinks(path);
  return path;
}

/** Names of files may hold a percent sign of their own. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
