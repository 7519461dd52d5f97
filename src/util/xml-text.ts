/** Text for XML 1.0 documents that the server writes. Characters XML cannot hold become U+FFFD. */

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;' };

/** Texts that need no escaping: most texts, so that one test is enough for them. */
const PLAIN = /^[\x20-\x25\x27-\x3b=\x3f-\x7e]*$/;

/** `text` as the content of an element. */
export function escapeXml(text: string): string {
  if (PLAIN.test(text)) return text;
  return withoutControls(text).replaceAll(/[&<>]/g, (character) => ENTITIES[character] ?? character);
}

/** `text` as a CDATA section. */
export function characterData(text: string): string {
  return `<![CDATA[${withoutControls(text).replaceAll(']]>', ']]]]><![CDATA[>')}]]>`;
}

function withoutControls(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what XML forbids
  return text.toWellFormed().replaceAll(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, '\ufffd');
}
