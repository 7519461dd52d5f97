import { describe, expect, test } from 'vitest';
import { KnownUrls } from './known-urls.ts';
import { urlSignature } from './signed-url.ts';

const hash = urlSignature('aKq#1kj');
const POLICY = { url_expire: 1 };

function note(urls: KnownUrls, text: string): void {
  urls.note(text, { digest: hash.digest(text), policy: POLICY });
}

function known(urls: KnownUrls, texts: readonly string[]): string[] {
  return texts.filter((text) => urls.find(text) !== undefined);
}

const numbered = (count: number): string[] => Array.from({ length: count }, (_, n) => `http://h:1/app/stream${n}/llhls.m3u8?policy=e30`);

describe('KnownUrls', () => {
  test('keeps a URL that comes for the second time, with what was noted of it', () => {
    const urls = new KnownUrls();
    const [text = '', other = ''] = numbered(2);
    note(urls, text);
    expect(urls.find(text)).toBeUndefined();
    note(urls, other);
    note(urls, text);
    expect(urls.find(text)).toEqual({ digest: hash.digest(text), policy: POLICY });
    expect(urls.find(other)).toBeUndefined();
    expect(urls.find(`${text}&more`)).toBeUndefined();
  });

  test('lets URLs of which each comes once push out none that is shared', () => {
    const urls = new KnownUrls();
    const [shared = '', ...others] = numbered(5000);
    note(urls, shared);
    note(urls, shared);
    for (const text of others) note(urls, text);
    expect(urls.find(shared)).toBeDefined();
    // What two digests have in common by chance.
    expect(known(urls, others).length).toBeLessThan(5);
  });

  test('keeps 256 at most, none of them long', () => {
    const urls = new KnownUrls();
    const texts = numbered(1000);
    for (const text of texts) {
      note(urls, text);
      note(urls, text);
      expect(urls.find(text)).toBeDefined();
      expect(urls.size).toBeLessThanOrEqual(256);
    }
    expect(known(urls, texts)).toEqual(texts.slice(-urls.size));
    const long = `http://h:1/${'a'.repeat(1024)}`;
    note(urls, long);
    note(urls, long);
    expect(urls.find(long)).toBeUndefined();
  });
});
