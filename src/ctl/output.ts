/** Output of commands: tables for people, JSON for programs. */
import { plainLine, plainText } from '../util/plain-text.ts';
import { type Column, textTable, textTree } from './text-table.ts';

/** C1 controls and bidirectional marks: JSON may contain them, terminals should not get them. */
const UNSAFE = /[\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/** Destination of a command's output. */
export class Output {
  readonly #write: (text: string) => void;
  readonly #json: boolean;

  constructor(write: (text: string) => void, json: boolean) {
    this.#write = write;
    this.#json = json;
  }

  /** A list: JSON has all members of each row. `none` is printed for people if the list is empty. */
  list<R>(columns: readonly Column<R>[], rows: readonly R[], none: string): void {
    if (this.#json) this.json(rows);
    else this.#write(rows.length === 0 ? `${none}\n` : textTable(columns, rows));
  }

  /** One object with all its members. */
  tree(value: unknown): void {
    if (this.#json) this.json(value);
    else this.#write(textTree(value));
  }

  /** The result: a sentence for people, `value` for programs. */
  done(sentence: string, value: unknown): void {
    if (this.#json) this.json(value);
    else this.#write(`${plainText(sentence)}\n`);
  }

  /** Text output of the command. */
  text(text: string): void {
    this.#write(text);
  }

  /** One of many outputs over time: a line for people, a line of JSON for programs. */
  line(sentence: string, value: unknown): void {
    if (this.#json) this.#writeJson(JSON.stringify(value));
    else this.#write(`${plainLine(sentence)}\n`);
  }

  /** JSON regardless of `--json`. */
  json(value: unknown): void {
    this.#writeJson(JSON.stringify(value ?? null, null, 2));
  }

  #writeJson(text: string): void {
    this.#write(`${text.replace(UNSAFE, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)}\n`);
  }
}
