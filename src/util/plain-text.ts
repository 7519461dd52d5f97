/** Text of unknown origin, made safe to show to people. */

/** C0 without tab and newline, DEL, C1: terminals take them as commands. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;
/** Direction marks and overrides, line and paragraph separators: with them the shown text differs from the real text. */
const UNSEEN = /[\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;
const BREAKS = /[\t\n]/g;

/** `text` on one line; characters that a terminal would not show become `\uXXXX`. */
export function plainLine(text: string): string {
  return plainText(text).replace(BREAKS, escaped);
}

/** As `plainLine`, but keeps tabs and line breaks. */
export function plainText(text: string): string {
  return text.replace(CONTROLS, escaped).replace(UNSEEN, escaped);
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
