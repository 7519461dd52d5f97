/** Internal name of an application, `#<vhost>#<app>`; `#` inside names becomes `_`. */
export function internalAppName(vhost: string, app: string): string {
  return `#${vhost.replaceAll('#', '_')}#${app.replaceAll('#', '_')}`;
}

/** Segments that the API, URLs and file names can address: not empty, none of `/ : ? #`, no whitespace or control characters. */
export function isAddressableName(name: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is being refused
  return name.length > 0 && name.length <= 255 && name !== '.' && name !== '..' && !/[/:?#\s\u0000-\u001f\u007f]/u.test(name);
}
