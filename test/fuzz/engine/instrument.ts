/**
 * Puts counters into JavaScript: each branch, loop and function counts its entries, and allocations report their sizes. Lines stay where
 * they are, so that stack traces are right.
 */
import { type AnyNode, parse } from 'acorn';

/** Code with counters, and the constants found in it. */
export interface Instrumented {
  readonly code: string;
  readonly counters: number;
  readonly constants: readonly (number | string)[];
}

const COUNTS = '$millraceCounts';
const COVER = '$millraceCover';
const KEY = 'millrace.fuzz.coverage';
const MAX_CONSTANT = 40;
const TYPED_ARRAYS = new Set(['Uint8Array', 'ArrayBuffer', 'SharedArrayBuffer', 'Array', 'Uint16Array', 'Uint32Array', 'Float64Array']);
const COMPARISONS = new Set(['===', '!==', '<', '>', '<=', '>=', '&']);

/** Instruments a module without types; its counters are numbered from `firstCounter` on. Throws acorn's error for invalid code. */
export function instrument(source: string, firstCounter: number): Instrumented {
  const editor = new Editor(source, firstCounter);
  // Parentheses become nodes, because text around an expression must go around its parentheses.
  visit(parse(source, { ecmaVersion: 'latest', sourceType: 'module', preserveParens: true }), editor);
  const head = `const ${COVER}=globalThis[Symbol.for('${KEY}')],${COUNTS}=${COVER}.counts;`;
  return { code: head + editor.finish(), counters: editor.counters, constants: [...editor.constants] };
}

class Editor {
  readonly constants = new Set<number | string>();
  counters = 0;
  readonly #source: string;
  readonly #firstCounter: number;
  /** Insertions by position. Text that ends a node comes before text that begins one. */
  readonly #ends = new Map<number, string>();
  readonly #begins = new Map<number, string>();

  constructor(source: string, firstCounter: number) {
    this.#source = source;
    this.#firstCounter = firstCounter;
  }

  /** An expression that counts. */
  count(): string {
    const counter = this.#firstCounter + this.counters;
    this.counters += 1;
    return `${COUNTS}[${counter}]++`;
  }

  /** Inserts `text` after the insertions of outer nodes. */
  begin(at: number, text: string): void {
    this.#begins.set(at, (this.#begins.get(at) ?? '') + text);
  }

  /** Inserts `text` after the insertions of inner nodes. */
  end(at: number, text: string): void {
    this.#ends.set(at, (this.#ends.get(at) ?? '') + text);
  }

  finish(): string {
    const places = [...new Set([...this.#ends.keys(), ...this.#begins.keys()])].sort((one, other) => one - other);
    const parts: string[] = [];
    let from = 0;
    for (const at of places) {
      parts.push(this.#source.slice(from, at), this.#ends.get(at) ?? '', this.#begins.get(at) ?? '');
      from = at;
    }
    return parts.join('') + this.#source.slice(from);
  }

  keep(node: AnyNode | null | undefined): void {
    if (node?.type === 'UnaryExpression') this.keep(node.argument);
    if (node?.type !== 'Literal') return;
    const { value } = node;
    if (typeof value === 'number' || (typeof value === 'string' && value.length > 0 && value.length <= MAX_CONSTANT)) {
      this.constants.add(value);
    }
  }
}

/** Inserts the counters of `node` and of everything in it. */
function visit(node: AnyNode, editor: Editor): void {
  const after = enter(node, editor);
  for (const value of Object.values(node) as unknown[]) {
    if (Array.isArray(value)) {
      for (const item of value) if (isNode(item)) visit(item, editor);
    } else if (isNode(value)) {
      visit(value, editor);
    }
  }
  for (const { at, text } of after.reverse()) editor.end(at, text);
}

function isNode(value: unknown): value is AnyNode {
  return typeof value === 'object' && value !== null && typeof (value as { type?: unknown }).type === 'string' && 'start' in value;
}

interface Ending {
  readonly at: number;
  readonly text: string;
}

/** Inserts the text before a node; returns the text after it, outermost first. */
function enter(node: AnyNode, editor: Editor): Ending[] {
  switch (node.type) {
    case 'FunctionDeclaration':
    case 'FunctionExpression':
    case 'ArrowFunctionExpression':
      return body(node.body, editor);
    case 'IfStatement': {
      const endings = [...(node.alternate == null ? [] : body(node.alternate, editor)), ...body(node.consequent, editor)];
      return node.alternate == null ? [{ at: node.end, text: ` else{${editor.count()}}` }, ...endings] : endings;
    }
    case 'ForStatement':
    case 'ForInStatement':
    case 'ForOfStatement':
    case 'WhileStatement':
    case 'DoWhileStatement':
    case 'CatchClause':
      return body(node.body, editor);
    case 'ConditionalExpression':
      return [...around(node.consequent, editor), ...around(node.alternate, editor)];
    case 'LogicalExpression':
    case 'AssignmentPattern':
      return around(node.right, editor);
    case 'SwitchStatement':
      for (const one of node.cases) {
        editor.keep(one.test);
        const [first] = one.consequent;
        if (first !== undefined) editor.begin(first.start, `${editor.count()};`);
      }
      return [];
    case 'BinaryExpression':
      if (COMPARISONS.has(node.operator)) {
        editor.keep(node.left);
        editor.keep(node.right);
      }
      return [];
    case 'VariableDeclarator':
      editor.keep(node.init);
      return [];
    case 'Property':
      editor.keep(node.value);
      if (node.key.type === 'Literal') editor.keep(node.key);
      return [];
    case 'ArrayExpression':
      for (const item of node.elements) editor.keep(item);
      return [];
    case 'NewExpression': {
      const [first] = node.arguments;
      const isArray = node.callee.type === 'Identifier' && TYPED_ARRAYS.has(node.callee.name);
      return isArray && first !== undefined && first.type !== 'SpreadElement' ? asked(first, editor) : [];
    }
    case 'CallExpression':
      for (const argument of node.arguments) editor.keep(argument);
      return isBufferMaker(node.callee) ? asked(node, editor) : [];
    default:
      return [];
  }
}

function isBufferMaker(callee: AnyNode): boolean {
  if (callee.type !== 'MemberExpression' || callee.object.type !== 'Identifier' || callee.object.name !== 'Buffer') return false;
  return callee.property.type === 'Identifier' && ['alloc', 'allocUnsafe', 'concat', 'from'].includes(callee.property.name);
}

/** Counts the value of `node` as allocated memory. */
function asked(node: AnyNode, editor: Editor): Ending[] {
  editor.begin(node.start, `${COVER}.asked(`);
  return [{ at: node.end, text: ')' }];
}

/** Counts the entries of a statement, block or expression. */
function body(node: AnyNode, editor: Editor): Ending[] {
  if (node.type === 'BlockStatement') {
    editor.begin(node.start + 1, `${editor.count()};`);
    return [];
  }
  if (!/Statement$|Declaration$/.test(node.type)) return around(node, editor);
  editor.begin(node.start, `{${editor.count()};`);
  return [{ at: node.end, text: '}' }];
}

function around(node: AnyNode, editor: Editor): Ending[] {
  editor.begin(node.start, `(${editor.count()},`);
  return [{ at: node.end, text: ')' }];
}
