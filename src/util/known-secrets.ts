/** Secrets known to the server, which are hidden from all readers of its logs and events. */

/** Minimum of characters: a shorter secret is a word that other texts may contain. */
export const MIN_KNOWN_LENGTH = 6;
/** Longer texts are not secrets that could be echoed. */
const MAX_LENGTH = 4096;
/** Limit of learned secrets; the oldest are forgotten. */
const MAX_LEARNED = 20_000;
const MASK = '***';
const WORD = '[\\p{L}\\p{N}_]';

/**
 * Secrets of the configuration are known until it is replaced. Secrets from the API and the state folder stay known after their object is
 * gone, because older lines may contain them. They are found by their first characters, so the cost of a search does not grow with their
 * number. Needs no closing.
 */
export class KnownSecrets {
  /** Lengths of the secrets with these first characters, longest first. */
  readonly #byBeginning = new Map<string, { readonly length: number; count: number }[]>();
  /** In the order of learning. */
  readonly #learned = new Set<string>();
  #configured: ReadonlySet<string> = new Set();

  /** The secrets of the configuration, replacing the previous ones. */
  configure(secrets: Iterable<string>): void {
    const now = new Set(variantsOf(secrets));
    for (const text of now) this.#count(text, 1);
    for (const text of this.#configured) this.#count(text, -1);
    this.#configured = now;
  }

  /** Adds secrets to the learned ones. */
  learn(secrets: Iterable<string>): void {
    for (const text of variantsOf(secrets)) {
      // Deleted and added again: the secret moves to the end, so it is forgotten last.
      if (!this.#learned.delete(text)) this.#count(text, 1);
      this.#learned.add(text);
      const [oldest] = this.#learned;
      if (this.#learned.size <= MAX_LEARNED || oldest === undefined) continue;
      this.#learned.delete(oldest);
      this.#count(oldest, -1);
    }
  }

  /** `text` with `***` in place of each secret. */
  masked(text: string): string {
    let shown = '';
    let from = 0;
    for (let at = 0; at + MIN_KNOWN_LENGTH <= text.length; ) {
      const found = this.#at(text, at);
      if (found === undefined) at += 1;
      else {
        shown += text.slice(from, at) + MASK;
        at += found.length;
        from = at;
      }
    }
    return shown + text.slice(from);
  }

  #isKnown(text: string): boolean {
    return this.#configured.has(text) || this.#learned.has(text);
  }

  #at(text: string, at: number): string | undefined {
    for (const { length } of this.#byBeginning.get(text.slice(at, at + MIN_KNOWN_LENGTH)) ?? []) {
      const found = text.slice(at, at + length);
      if (this.#isKnown(found)) return found;
    }
    return undefined;
  }

  #count(text: string, by: 1 | -1): void {
    const beginning = text.slice(0, MIN_KNOWN_LENGTH);
    const lengths = this.#byBeginning.get(beginning) ?? [];
    const same = lengths.find(({ length }) => length === text.length);
    if (same !== undefined) same.count += by;
    else lengths.push({ length: text.length, count: 1 });
    const left = lengths.filter(({ count }) => count > 0).sort((a, b) => b.length - a.length);
    if (left.length === 0) this.#byBeginning.delete(beginning);
    else this.#byBeginning.set(beginning, left);
  }
}

/**
 * Replaces the owner's `secrets` in a text about that owner by `***`, because peers echo them. Short secrets are replaced as whole words;
 * in unrelated texts they would match ordinary words, and the `***` would reveal them.
 */
export function withoutOwnSecrets(text: string, secrets: Iterable<string>): string {
  const wanted = [...new Set(variantsOf(secrets, 1))].sort((one, other) => other.length - one.length);
  if (wanted.length === 0) return text;
  const patterns = wanted.map((secret) => {
    const escaped = secret.replaceAll(/[\\^$.*+?()[\]{}|/]/g, '\\$&');
    return secret.length < MIN_KNOWN_LENGTH ? `(?<!${WORD})${escaped}(?!${WORD})` : escaped;
  });
  return text.replaceAll(new RegExp(patterns.join('|'), 'gu'), MASK);
}

/** Whether a text has the secret, in any of the forms in which `withoutOwnSecrets` finds it. */
export function repeats(text: string, secret: string): boolean {
  for (const form of variantsOf([secret], 1)) if (text.includes(form)) return true;
  return false;
}

/** Each secret as it appears in texts, JSON and URLs. */
function* variantsOf(secrets: Iterable<string>, minLength = MIN_KNOWN_LENGTH): Iterable<string> {
  for (const secret of secrets) {
    if (secret.length < minLength || secret.length > MAX_LENGTH) continue;
    yield* new Set([secret, JSON.stringify(secret).slice(1, -1), encodeURIComponent(secret.toWellFormed())]);
  }
}
