/** Sums as people write them into settings: numbers, names, `+ - * /` and brackets. */

/** The text is not a valid expression; `message` says why, for people. */
export class ArithmeticError extends Error {
  override readonly name = 'ArithmeticError';
}

/** Longer texts are attacks, not expressions. */
const MAX_LENGTH = 200;
const TOKEN = /\s*(?:(\d+(?:\.\d+)?)|([A-Za-z_]\w*)|([-+*/()]))/y;

/** Works out `text` with the values of `names`, whose case does not matter. Throws ArithmeticError. */
export function calculate(text: string, names: Readonly<Record<string, number>>): number {
  if (text.length > MAX_LENGTH) throw new ArithmeticError(`is longer than ${MAX_LENGTH} characters`);
  const result = new Sum(tokensOf(text), names).whole();
  if (!Number.isFinite(result)) throw new ArithmeticError('divides by zero');
  return result;
}

function tokensOf(text: string): string[] {
  const tokens: string[] = [];
  const end = text.trimEnd().length;
  for (TOKEN.lastIndex = 0; TOKEN.lastIndex < end; ) {
    const at = TOKEN.lastIndex;
    const [found] = TOKEN.exec(text) ?? [];
    if (found === undefined) throw new ArithmeticError(`has something strange at ${JSON.stringify(text.slice(at, at + 10).trim())}`);
    tokens.push(found.trim());
  }
  return tokens;
}

/** Reads tokens from left to right. Recurses once for each bracket, so the length of the text limits the depth. */
class Sum {
  readonly #tokens: readonly string[];
  readonly #names: ReadonlyMap<string, number>;
  #at = 0;

  constructor(tokens: readonly string[], names: Readonly<Record<string, number>>) {
    this.#tokens = tokens;
    this.#names = new Map(Object.entries(names).map(([name, value]) => [name.toUpperCase(), value]));
  }

  whole(): number {
    const value = this.#terms();
    const rest = this.#tokens[this.#at];
    if (rest !== undefined) throw new ArithmeticError(`has ${JSON.stringify(rest)} where it should end`);
    return value;
  }

  #terms(): number {
    let value = this.#factors();
    for (;;) {
      if (this.#take('+')) value += this.#factors();
      else if (this.#take('-')) value -= this.#factors();
      else return value;
    }
  }

  #factors(): number {
    let value = this.#operand();
    for (;;) {
      if (this.#take('*')) value *= this.#operand();
      else if (this.#take('/')) value /= this.#operand();
      else return value;
    }
  }

  #operand(): number {
    if (this.#take('-')) return -this.#operand();
    if (this.#take('+')) return this.#operand();
    if (this.#take('(')) {
      const value = this.#terms();
      if (!this.#take(')')) throw new ArithmeticError('has a bracket that is not closed');
      return value;
    }
    const token = this.#tokens[this.#at];
    if (token === undefined) throw new ArithmeticError('ends too early');
    this.#at += 1;
    if (/^\d/.test(token)) return Number(token);
    const value = this.#names.get(token.toUpperCase());
    if (value === undefined) throw new ArithmeticError(`has ${JSON.stringify(token)}, but knows ${[...this.#names.keys()].join(', ')}`);
    return value;
  }

  #take(token: string): boolean {
    if (this.#tokens[this.#at] !== token) return false;
    this.#at += 1;
    return true;
  }
}
