import fc from 'fast-check';
import { expect, test } from 'vitest';
import { maskedJson } from './masked-json.ts';

test.each([
  ['{"url":"rtsp://user:secret@host/path"}', '{"url":"rtsp://***@host/path"}'],
  ['{"url":"srt://host:9999?streamid=x&passphrase=y"}', '{"url":"srt://host:9999?***"}'],
  ['["file://a.mp4","https://u@h/?q=1"]', '["file://a.mp4","https://***@h/?***"]'],
  ['{"text":"see http://a:b@c, and ws://d:e@f now"}', '{"text":"see http://***@c, and ws://***@f now"}'],
  ['{"text":"://a@b and 1://a@b and ://"}', '{"text":"://a@b and 1://a@b and ://"}'],
  ['{"url":"http://a\\"b@c"}', '{"url":"http://***@c"}'],
  ['{"a":"x.y+z-1://u:p@h"}', '{"a":"x.y+z-1://***@h"}'],
  ['{"a":"http://x://u:p@h"}', '{"a":"http://x://u:p@h"}'],
  ['{"streamKey":"k","n":1}', '{"streamKey":"***","n":1}'],
])('%s is shown as %s', (json, shown) => {
  expect(maskedJson(json)).toBe(shown);
});

/** One pattern for whole URLs, which is simpler and much slower. */
const URL_TEXT = /[a-z][a-z\d+.-]{0,15}:\/\/(?:[^\s"\\]|\\.)+/gi;
function maskedByPattern(json: string): string {
  return json.replace(URL_TEXT, (url) => url.replace(/^("?(?:[a-z\d+.-]+:\/\/)?)[^/?#]*@/i, '$1***@').replace(/\?[^"]*/, '?***'));
}

test('URLs anywhere in a text are found as one pattern finds them', () => {
  const part = fc.constantFrom('://', ':', '/', 'a', 'Bc', '1', '+', '.', '-', '@', '?', '"', '\\', ' ', '\n', 'abcdefghijklmnopq', '#');
  const texts = fc.array(part, { maxLength: 40 }).map((parts) => parts.join(''));
  fc.assert(
    fc.property(texts, (text) => {
      expect(maskedJson(text)).toBe(maskedByPattern(text));
    }),
    { numRuns: 3000 },
  );
});
