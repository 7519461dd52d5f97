/** The files that pages are made of: modules of `console/`, and those of packages. */
import { readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import type { PageSource } from './page-files.ts';

/** `ts` when run from source, `js` when compiled: that of this file. */
const ENDING = path.extname(fileURLToPath(import.meta.url)).slice(1);
const CONSOLE = new URL('../console/', import.meta.url);
const CLIENT = new URL('../client/', import.meta.url);
/** Modules of the client that are nothing but types. */
const TYPES_ONLY = /^(?:openapi-types|call-types)\./;

/**
 * By the import name of a package: the file for browsers, relative to its main module. hls.js and OvenPlayer are one file each; the full
 * hls.js is needed, because the light one does not play alternate audio.
 */
const VENDOR: Readonly<Record<string, readonly [module: string, file: string]>> = {
  'preact.mjs': ['preact', 'preact.mjs'],
  'preact-hooks.mjs': ['preact/hooks', 'hooks.mjs'],
  'htm.mjs': ['htm', 'htm.mjs'],
  'uplot.mjs': ['uplot', 'uPlot.esm.js'],
  'uplot.css': ['uplot', 'uPlot.min.css'],
  'hls.mjs': ['hls.js', 'hls.min.mjs'],
  'ovenplayer.js': ['ovenplayer', 'ovenplayer.js'],
  'uqr.mjs': ['uqr', 'index.mjs'],
};

/** Import map entries of packages; `folder` is their path for the page. */
export function importMap(
  folder: string,
  names: readonly string[] = ['preact', 'preact/hooks', 'htm', 'uplot', 'hls.js', 'ovenplayer', 'uqr'],
  more: readonly (readonly [string, string])[] = [],
): string {
  const imports = Object.entries(VENDOR)
    .filter(([name, [module]]) => !name.endsWith('.css') && names.includes(module))
    .map(([name, [module]]) => [module, `${folder}${name}`]);
  return JSON.stringify({ imports: Object.fromEntries([...imports, ...more]) });
}

/** Where modules of the console find those of the client: beside them on disk, below them in the page. */
const CLIENT_FOLDER = 'client/';

/** The name under which a module of `console/` is served: with the ending that it has on disk. */
export function moduleName(name: string): string {
  return `${name}.${ENDING}`;
}

/** Every module and style sheet of `console/`. */
export function consoleSources(): [string, PageSource][] {
  return readdirSync(CONSOLE)
    .filter((name) => name.endsWith('.css') || (name.endsWith(`.${ENDING}`) && !/\.(test|d)\.ts$/.test(name)))
    .map((name) => [name, { file: new URL(name, CONSOLE) }]);
}

/** The import map of the console: `../client/` is no place that a browser could ask for. */
export function consoleImports(): string {
  return importMap('./', undefined, [[`../${CLIENT_FOLDER}`, `./${CLIENT_FOLDER}`]]);
}

/** The modules of the client, by the names that the console uses. */
export function clientSources(): [string, PageSource][] {
  return readdirSync(CLIENT)
    .filter((name) => name.endsWith(`.${ENDING}`) && !/\.(test|d)\.ts$/.test(name) && !TYPES_ONLY.test(name))
    .map((name) => [`${CLIENT_FOLDER}${name}`, { file: new URL(name, CLIENT) }]);
}

/** Files of packages, by the names that pages use; throws when a package is not installed. */
export function vendorSources(names: readonly string[] = Object.keys(VENDOR)): [string, PageSource][] {
  const { resolve } = createRequire(import.meta.url);
  return names.map((name) => {
    const [module, file] = VENDOR[name] ?? ['', ''];
    return [name, { file: path.join(path.dirname(resolve(module)), file) }];
  });
}
