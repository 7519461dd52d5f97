import { hasHiddenCharacter } from '../util/hidden-characters.ts';

/** Internal name of an application, `#<vhost>#<app>`; `#` inside names becomes `_`. */
export function internalAppName(vhost: string, app: string): string {
  return `#${vhost.replaceAll('#', '_')}#${app.replaceAll('#', '_')}`;
}

/**
 * Segments that the API, URLs and file names can address: not empty, none of `/ : ? #`, no white space, and no character that cannot
 * be seen.
 */
export function isAddressableName(name: string): boolean {
  return name.length > 0 && name.length <= 255 && name !== '.' && name !== '..' && !/[/:?#\s]/u.test(name) && !hasHiddenCharacter(name);
}
