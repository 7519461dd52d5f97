/** Cache of signed URLs that many viewers present: signature verified, policy parsed. The policy is judged each time. */
import type { UrlParts } from './access-check.ts';
import type { Policy } from './signed-url.ts';

/** Limit of kept URLs; beyond it all are forgotten together. */
const MAX_URLS = 256;
/** Maximum length of a kept URL, characters. */
const MAX_LENGTH = 1024;
/** Places for digests that were seen once; a later digest replaces an earlier one in its place. */
const MAX_SEEN = 1024;
const BYTE_BITS = 8;

/**
 * The key is the complete URL with its signature, so a URL that differs in one character has to be verified again. A URL is kept when it
 * comes for the second time, so URLs that differ for each viewer do not push out shared ones. One signed text has one entry: a URL can be
 * written in many equivalent ways (signature elsewhere, escaped, repeated), of which only one is kept. Needs no closing.
 */
export class KnownUrls {
  /** URLs forgotten since the beginning, because there were more than the limit. */
  forgotten = 0;
  /** Kept URLs by their tail, which contains the signature; with another base it belongs to another URL. */
  readonly #urls = new Map<string, { readonly base: string; readonly policy: Policy }>();
  /** Digests of the kept URLs. */
  readonly #digests = new Set<string>();
  readonly #seen = new Uint16Array(MAX_SEEN);

  get size(): number {
    return this.#urls.size;
  }

  /** The policy of a URL whose signature was verified. */
  find({ base, tail }: UrlParts): Policy | undefined {
    const known = this.#urls.size === 0 ? undefined : this.#urls.get(tail);
    return known?.base === base ? known.policy : undefined;
  }

  /** Records a verified URL with its parsed policy; `digest`: its correct signature. */
  note({ base, tail }: UrlParts, digest: string, policy: Policy): void {
    if (base.length + tail.length > MAX_LENGTH || !this.#isSecond(digest) || this.#digests.has(digest)) return;
    if (this.#urls.size >= MAX_URLS) {
      this.forgotten += this.#urls.size;
      this.#urls.clear();
      this.#digests.clear();
    }
    this.#urls.set(tail, { base, policy });
    this.#digests.add(digest);
  }

  /** Compares 26 bits of the digest: one time in 65,536 another URL seems to be the same, and takes a place in the cache. */
  #isSecond(digest: string): boolean {
    const pair = (at: number): number => (digest.charCodeAt(at) << BYTE_BITS) | digest.charCodeAt(at + 1);
    const [place, mark] = [pair(0) % MAX_SEEN, pair(2)];
    if (this.#seen[place] === mark) return true;
    this.#seen[place] = mark;
    return false;
  }
}
