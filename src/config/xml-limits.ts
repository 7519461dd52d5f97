import { ConfigError } from './problem.ts';

/** Limits for documents written by untrusted clients or programs: a tree takes a thousand times the memory of its text. */
export interface XmlLimits {
  /** Beginnings and ends of elements, together. */
  readonly tags: number;
  /** Attributes of all elements together. */
  readonly attributes: number;
}

/** Parts of a document that are not elements, by their delimiters. */
const ASIDES: readonly (readonly [begin: string, end: string])[] = [
  ['<!--', '-->'],
  ['<![CDATA[', ']]>'],
  ['<?', '?>'],
];

/** Throws `ConfigError` for a text beyond the limits. It reads each character once and needs no well-formed text. */
export function refuseLargeXml(text: string, file: string, { tags, attributes }: XmlLimits): void {
  let seenTags = 0;
  let seenAttributes = 0;
  for (let at = text.indexOf('<'); at >= 0; at = text.indexOf('<', at)) {
    const aside = ASIDES.find(([begin]) => text.startsWith(begin, at));
    if (aside !== undefined) {
      const end = text.indexOf(aside[1], at + aside[0].length);
      if (end < 0) return;
      at = end + aside[1].length;
      continue;
    }
    seenTags += 1;
    at += 1;
    for (; at < text.length && text[at] !== '>' && text[at] !== '<'; at += 1) {
      const quote = text[at];
      if (quote !== '"' && quote !== "'") continue;
      seenAttributes += 1;
      const end = text.indexOf(quote, at + 1);
      if (end < 0) return;
      at = end;
    }
    if (seenTags > tags) throw tooLarge(`more than ${tags} tags`, file);
    if (seenAttributes > attributes) throw tooLarge(`more than ${attributes} attributes`, file);
  }
}

function tooLarge(what: string, file: string): ConfigError {
  return new ConfigError(`The XML has ${what}`, { path: '', file });
}
