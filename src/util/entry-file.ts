/**
 * The first file of a thread or process. `name` has no ending and is relative to the module at `from` (its `import.meta.url`); the ending is
 * that of this module, because a build has `.js` where the sources have `.ts`.
 */
export function entryFile(name: string, from: string): URL {
  return new URL(`${name}${from.slice(from.lastIndexOf('.'))}`, from);
}
