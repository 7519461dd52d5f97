/** Cache of signed URLs that many viewers present: signature verified, policy parsed. The policy is judged each time. */
import type { UrlParts } from './access-check.ts';
import type { Policy } from './signed-url.ts';

/** Most that are kept; all are forgotten together. */
const MAX_URLS = 256;
/** Longer ones, in characters, are not kept. */
const MAX_LENGTH = 1024;
/** Digests that were seen once; the latest counts. */
const MAX_SEEN = 1024;
const BYTE_BITS = 8;

/**
 * The key is the complete URL with its signature, so a URL that differs in one character has to be verified again. A URL is kept when it
 * comes for the second time, so URLs that differ for each viewer do not push out shared ones. One signed text has one entry: a URL can be
 * written in many equivalent ways (signature elsewhere, escaped, repeated), of which only one is kept. Needs no closing.
 */
export class KnownUrls {
  /** Forgotten because there were more than are kept, since the beginning. */
  forgotten = 0;
  /** By the tail, which contains the signature: with another base it belongs to another URL. */
  readonly #urls = new Map<string, { readonly base: string; readonly policy: Policy }>();
  /** Digests of the kept URLs. */
  readonly #digests = new Set<string>();
  readonly #seen = new Uint16Array(MAX_SEEN);

  get size(): number {
    return this.#urls.size;
  }

  /** The policy of a URL whose signature was right. */
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

  /** By 26 bits of the digest: another URL is taken for the same one time in 65,536, which costs a place. */
  #isSecond(digest: string): boolean {
    const pair = (at: number): number => (digest.charCodeAt(at) << BYTE_BITS) | digest.charCodeAt(at + 1);
    const [place, mark] = [pair(0) % MAX_SEEN, pair(2)];
    if (this.#seen[place] === mark) return true;
    this.#seen[place] = mark;
    return false;
  }
}
