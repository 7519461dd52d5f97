/** Values of attribute lists in playlist tags (rfc8216bis §4.2). */

/** A quoted string cannot hold quotes or line breaks: they are replaced. */
export function quoted(text: string): string {
  return `"${text.replace(/["\r\n]/g, "'")}"`;
}

/** Seconds as the reference prints them: six decimals. */
export function seconds(value: number): string {
  return value.toFixed(6);
}

/** An enumerated string that says whether. */
export function yesOrNo(value: boolean): 'YES' | 'NO' {
  return value ? 'YES' : 'NO';
}
