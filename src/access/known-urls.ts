/** Signed URLs that many viewers come with: what their signature has to be, and what their policy says. Whether it holds is judged each time. */
import type { Policy } from './signed-url.ts';

/** Of a URL. */
export interface KnownUrl {
  /** What its signature is compared with. A secret. */
  readonly digest: string;
  readonly policy: Policy;
}

/** Most that are kept; all are forgotten together. */
const MAX_URLS = 256;
/** Longer ones, in characters, are not kept. */
const MAX_LENGTH = 1024;
/** Digests that were seen once, of which the latest counts. */
const SEEN = 1024;
const BYTE_BITS = 8;

/**
 * By all of the URL but its signature. One is kept when it comes for the second time, so that URLs of which each viewer has another push out
 * none that are shared. Whoever has the key makes one of these for each key. Nothing to close.
 */
export class KnownUrls {
  readonly #urls = new Map<string, KnownUrl>();
  readonly #seen = new Uint16Array(SEEN);

  get size(): number {
    return this.#urls.size;
  }

  find(text: string): KnownUrl | undefined {
    return this.#urls.size === 0 ? undefined : this.#urls.get(text);
  }

  /** The URL was genuine, and its policy can be read. */
  note(text: string, url: KnownUrl): void {
    if (text.length > MAX_LENGTH || !this.#isSecond(url.digest)) return;
    if (this.#urls.size >= MAX_URLS) this.#urls.clear();
    this.#urls.set(text, url);
  }

  /** By 26 bits of the digest: another URL is taken for the same one time in 65,536, which costs a place. */
  #isSecond(digest: string): boolean {
    const pair = (at: number): number => (digest.charCodeAt(at) << BYTE_BITS) | digest.charCodeAt(at + 1);
    const [place, mark] = [pair(0) % SEEN, pair(2)];
    if (this.#seen[place] === mark) return true;
    this.#seen[place] = mark;
    return false;
  }
}
