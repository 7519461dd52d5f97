/** Values of attribute lists in playlist tags (rfc8216bis §4.2). */

/** `text` as a quoted string, in which quotes and line breaks are replaced because it cannot hold them. */
export function quoted(text: string): string {
  return `"${text.replace(/["\r\n]/g, "'")}"`;
}

/** Seconds as the reference prints them: six decimals. */
export function seconds(value: number): string {
  return value.toFixed(6);
}

/** A boolean as an enumerated string. */
export function yesOrNo(value: boolean): 'YES' | 'NO' {
  return value ? 'YES' : 'NO';
}
