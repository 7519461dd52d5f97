/**
 * Invisible characters: controls (C0, DEL, C1), and marks that change the direction of the following text. With them, two different names
 * or log lines can look the same.
 */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/;
const HIDDEN_ALL = new RegExp(HIDDEN.source, 'g');

/** Whether `text` contains a hidden character or half a surrogate pair, which cannot be encoded. */
export function hasHiddenCharacter(text: string): boolean {
  return HIDDEN.test(text) || !text.isWellFormed();
}

/** `text` with hidden characters in the notation `\u0000`, for messages. */
export function showHidden(text: string): string {
  return text.replace(HIDDEN_ALL, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
