/** Numbers of things in sentences. */

/** `1 change`, `2 changes`; of nouns that take an s. */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
