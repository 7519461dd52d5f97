import { readFileSync } from 'node:fs';

/** Version of the package this file belongs to. */
export function packageVersion(): string {
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { version: string };
  return version;
}
