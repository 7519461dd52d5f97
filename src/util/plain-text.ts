/** Text of strangers that is shown to people. */

/** C0 without tab and newline, DEL, C1: terminals take them for commands. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;
/** Marks and overrides of direction, line and paragraph separators: they show another text than there is. */
const UNSEEN = /[\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;
const BREAKS = /[\t\n]/g;

/** `text` on one line, with everything that a terminal would not show as it is written as `\uXXXX`. */
export function plainLine(text: string): string {
  return plainText(text).replace(BREAKS, escaped);
}

/** Like `plainLine`, with its tabs and line breaks. */
export function plainText(text: string): string {
  return text.replace(CONTROLS, escaped).replace(UNSEEN, escaped);
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
