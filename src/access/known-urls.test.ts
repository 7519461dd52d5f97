import { describe, expect, test } from 'vitest';
import type { UrlParts } from './access-check.ts';
import { KnownUrls } from './known-urls.ts';
import { urlSignature } from './signed-url.ts';

const hash = urlSignature('aKq#1kj');
const POLICY = { url_expire: 1 };
const BASE = 'http://h:1';

function note(urls: KnownUrls, parts: UrlParts, digest = hash.digest(parts.base + parts.tail)): void {
  urls.note(parts, digest, POLICY);
}

function known(urls: KnownUrls, all: readonly UrlParts[]): UrlParts[] {
  return all.filter((parts) => urls.find(parts) !== undefined);
}

const at = (tail: string): UrlParts => ({ base: BASE, tail });
const numbered = (count: number): UrlParts[] =>
  Array.from({ length: count }, (_, n) => at(`/app/stream${n}/llhls.m3u8?policy=e30&signature=x`));

describe('KnownUrls', () => {
  test('keeps a repeated URL with its policy', () => {
    const urls = new KnownUrls();
    const [one = at(''), other = at('')] = numbered(2);
    note(urls, one);
    expect(urls.find(one)).toBeUndefined();
    note(urls, other);
    note(urls, one);
    expect(urls.find(one)).toBe(POLICY);
    expect(urls.find(other)).toBeUndefined();
  });

  test('finds no URL that differs in any character of its base or tail', () => {
    const urls = new KnownUrls();
    const [parts = at('')] = numbered(1);
    note(urls, parts);
    note(urls, parts);
    const { base, tail } = parts;
    for (let n = 0; n < tail.length; n += 1) {
      expect(urls.find({ base, tail: `${tail.slice(0, n)}~${tail.slice(n + 1)}` })).toBeUndefined();
      expect(urls.find({ base, tail: tail.slice(0, n) + tail.slice(n + 1) })).toBeUndefined();
    }
    for (const wrong of ['http://h:2', 'https://h:1', 'http://i:1', '', `${base}/`])
      expect(urls.find({ base: wrong, tail })).toBeUndefined();
    expect(urls.find({ base, tail: `${tail}&` })).toBeUndefined();
    expect(urls.find({ base: '', tail: base + tail })).toBeUndefined();
    expect(urls.find(parts)).toBe(POLICY);
  });

  test('keeps a shared URL when thousands of single-use URLs follow', () => {
    const urls = new KnownUrls();
    const [shared = at(''), ...others] = numbered(5000);
    note(urls, shared);
    note(urls, shared);
    for (const parts of others) note(urls, parts);
    expect(urls.find(shared)).toBeDefined();
    // A few digests match an earlier one by chance.
    expect(known(urls, others).length).toBeLessThan(5);
  });

  test('keeps one spelling of a URL, so that variants of one URL evict no other URL', () => {
    const urls = new KnownUrls();
    const [shared = at('')] = numbered(1);
    note(urls, shared);
    note(urls, shared);
    const written = Array.from({ length: 1000 }, (_, n) => at(`/app/stream/llhls.m3u8?policy=e30&signature=x&SIGNATURE=${n}`));
    for (const parts of written) note(urls, parts, 'the digest of all of them');
    expect(known(urls, written)).toHaveLength(1);
    expect([urls.size, urls.forgotten]).toEqual([2, 0]);
    expect(urls.find(shared)).toBeDefined();
  });

  test('keeps at most 256 URLs, none of them long, and counts evicted ones', () => {
    const urls = new KnownUrls();
    const all = numbered(1000);
    for (const parts of all) {
      note(urls, parts);
      note(urls, parts);
      expect(urls.find(parts)).toBeDefined();
      expect(urls.size).toBeLessThanOrEqual(256);
    }
    expect(known(urls, all)).toEqual(all.slice(-urls.size));
    expect(urls.forgotten).toBe(1000 - urls.size);
    // Forgotten URLs can return.
    const [first = at('')] = all;
    for (let n = 0; n < 2; n += 1) note(urls, first);
    expect(urls.find(first)).toBeDefined();
    const long = at(`/${'a'.repeat(1024)}`);
    note(urls, long);
    note(urls, long);
    expect(urls.find(long)).toBeUndefined();
  });
});
