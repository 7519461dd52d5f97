/** Macros of configuration values: `${env:NAME}`, `${env:NAME:default}`, `${ome:Home}`, `${ome:CurrentPath}`. */
import { hostname } from 'node:os';
import { fileURLToPath } from 'node:url';

/** The source of the values of macros. */
export interface MacroSource {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Directory of the program. */
  readonly home: string;
  readonly currentPath: string;
}

/** The macros of the running process. */
export function processMacros(): MacroSource {
  return { env: process.env, home: fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, ''), currentPath: process.cwd() };
}

/** Replaces the macros known here; others, such as `${OriginStreamName}`, stay for later. */
export function expandMacros(text: string, source: MacroSource): string {
  if (!text.includes('${')) return text;
  return text.replaceAll(/\$\{(env|ome):([^}:]*)(?::([^}]*))?\}/g, (whole, kind: string, name: string, fallback: string | undefined) => {
    if (kind === 'env') return source.env[name] ?? (name === 'HOSTNAME' ? hostname() : (fallback ?? ''));
    if (name === 'Home') return source.home;
    return name === 'CurrentPath' ? source.currentPath : whole;
  });
}
