/** Text tables for people at a terminal. */
import { plainLine } from '../util/plain-text.ts';

/** A column with its title and the value for a row. */
export interface Column<R> {
  readonly title: string;
  readonly of: (row: R) => string | number;
  /** Numbers are aligned to the right. */
  readonly right?: boolean;
}

const GAP = '  ';
const UNSEEN = /\p{Mark}|\p{Default_Ignorable_Code_Point}/gu;
/** Characters with a width of two columns. */
const WIDE =
  /\p{Script=Han}|\p{Script=Hangul}|\p{Script=Hiragana}|\p{Script=Katakana}|\p{Emoji_Presentation}|[\u3000-\u303f\uff01-\uff60]/gu;

/**
 * A line of titles and a line for each row, with aligned columns and no trailing blanks. Terminal commands in cells are shown as `\uXXXX`.
 */
export function textTable<R>(columns: readonly Column<R>[], rows: readonly R[]): string {
  const lines = [columns.map(({ title }) => title), ...rows.map((row) => columns.map(({ of }) => plainLine(String(of(row)))))];
  const widths = columns.map((_, n) => Math.max(...lines.map((line) => widthOf(line[n] ?? ''))));
  return lines.map((line) => `${aligned(line, columns, widths).join(GAP).trimEnd()}\n`).join('');
}

function aligned<R>(line: readonly string[], columns: readonly Column<R>[], widths: readonly number[]): string[] {
  return line.map((cell, n) => {
    const blanks = ' '.repeat((widths[n] ?? 0) - widthOf(cell));
    return columns[n]?.right === true ? blanks + cell : cell + blanks;
  });
}

/** Width of a text on a terminal, in columns. */
export function widthOf(text: string): number {
  const seen = text.replace(UNSEEN, '');
  return [...seen].length + (seen.match(WIDE)?.length ?? 0);
}

/** The leaves of a tree of JSON as lines `a.b.0.c  value`; empty objects and lists are leaves. */
export function textTree(value: unknown): string {
  const rows = leavesOf(value, '').map(([name, leaf]) => ({ name, leaf }));
  const width = Math.max(0, ...rows.map(({ name }) => widthOf(plainLine(name))));
  return (
    rows.map(({ name, leaf }) => `${padded(plainLine(name), width)}${GAP}${plainLine(leaf)}`.trimEnd()).join('\n') +
    (rows.length > 0 ? '\n' : '')
  );
}

function padded(text: string, width: number): string {
  return text + ' '.repeat(width - widthOf(text));
}

function leavesOf(value: unknown, name: string): (readonly [name: string, leaf: string])[] {
  const members = typeof value === 'object' && value !== null ? Object.entries(value) : [];
  if (members.length > 0) return members.flatMap(([key, member]) => leavesOf(member, name === '' ? key : `${name}.${key}`));
  return [[name, typeof value === 'string' ? value : JSON.stringify(value)]];
}

const BYTE_UNITS = ['B', 'kB', 'MB', 'GB', 'TB'] as const;
const BIT_UNITS = ['bit/s', 'kbit/s', 'Mbit/s', 'Gbit/s'] as const;

/** `12.3 MB`. */
export function bytesText(bytes: number): string {
  return scaled(bytes, BYTE_UNITS);
}

/** `2.5 Mbit/s`. */
export function bitrateText(bitsPerSecond: number): string {
  return scaled(bitsPerSecond, BIT_UNITS);
}

function scaled(value: number, units: readonly string[]): string {
  let step = 0;
  let left = value;
  // Values that would be rounded to 1000 use the next unit.
  while (left >= 999.5 && step < units.length - 1) {
    left /= 1000;
    step += 1;
  }
  return `${step === 0 || left >= 99.95 ? Math.round(left) : left.toFixed(1)} ${units[step]}`;
}
