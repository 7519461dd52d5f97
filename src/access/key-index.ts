/** The keys of one list, found by their hashes. */
import { shownMark } from '../util/key-hash.ts';
import type { ReadyKey } from './access-keys.ts';

/** Immutable: a changed list gets a new index. */
export class KeyIndex {
  readonly #salts: readonly string[];
  readonly #byMark: ReadonlyMap<string, readonly ReadyKey[]>;

  constructor(keys: readonly ReadyKey[]) {
    const usable = keys.flatMap((key) =>
      key.mark === undefined || key.salt === undefined ? [] : [{ ...key, mark: key.mark, salt: key.salt }],
    );
    this.#salts = [...new Set(usable.map(({ salt }) => salt))];
    this.#byMark = Map.groupBy(usable, ({ mark }) => mark);
  }

  /** All keys that match one of the `shown` texts. Every salt is tried, even after a match. */
  find(shown: readonly string[]): ReadyKey[] {
    return shown.flatMap((key) => this.#salts.flatMap((salt) => this.#byMark.get(shownMark(salt, key)) ?? []));
  }
}
