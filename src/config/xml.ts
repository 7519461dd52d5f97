/** XML text to a tree of elements that know their line. */
import { createRequire } from 'node:module';
import { messageOf } from '../util/message-of.ts';
import { ConfigError, shown } from './problem.ts';
import { refuseLargeXml, type XmlLimits } from './xml-limits.ts';

// `require` loads one file. `import` would load forty, a tenth of the modules of each start.
const { XMLParser, XMLValidator }: typeof import('fast-xml-parser') = createRequire(import.meta.url)('fast-xml-parser');

/** An element with its children in the order of the file; comments are left out. */
export interface XmlElement {
  readonly name: string;
  readonly attributes: ReadonlyMap<string, string>;
  readonly children: readonly XmlElement[];
  /** Text of the element itself, trimmed. */
  readonly text: string;
  readonly file: string;
  readonly line: number;
}

type OrderedNode = Readonly<Record<string, unknown>>;

const ATTRIBUTES = ':@';
const TEXT = '#text';
const CDATA = '#cdata';
const NAMED_ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };
const MAX_CODE_POINT = 0x10ffff;

/**
 * Parses a document with exactly one root. Entities other than the predefined and numeric ones are refused, even if a DOCTYPE declares
 * them, so the text cannot expand. Throws `ConfigError`, also for a document beyond `limits`.
 */
export function parseXml(source: string, file: string, limits?: XmlLimits): XmlElement {
  const text = source.replace(/^\uFEFF/, '').replaceAll(/\r\n?/g, '\n');
  if (limits !== undefined) refuseLargeXml(text, file, limits);
  const verdict = XMLValidator.validate(text);
  if (verdict !== true) throw new ConfigError(explain(verdict.err), { path: '', file, line: verdict.err.line });
  const roots = convert(parse(text, file), new Lines(text), file);
  const [root, second] = roots;
  if (root === undefined) throw new ConfigError('There is no root element', { path: '', file, line: 1 });
  if (second !== undefined) {
    throw new ConfigError(`There must be one root element, but <${second.name}> follows <${root.name}>`, {
      path: '',
      file,
      line: second.line,
    });
  }
  return root;
}

function explain(error: { code: string; msg: string }): string {
  if (error.code !== 'InvalidXml') return `The XML is not well-formed: ${error.msg}`;
  const open = [...error.msg.matchAll(/"([^"]+)"/g)].map((match) => `<${match[1]}>`);
  return open.length === 0
    ? 'The XML is not well-formed: there is no element'
    : `The XML is not well-formed: never closed: ${open.join(', ')}`;
}

function parse(text: string, file: string): readonly OrderedNode[] {
  const parser = new XMLParser({
    preserveOrder: true,
    ignoreAttributes: false,
    attributeNamePrefix: '',
    parseTagValue: false,
    parseAttributeValue: false,
    processEntities: false,
    cdataPropName: CDATA,
    captureMetaData: true,
  });
  try {
    return parser.parse(text) as OrderedNode[];
  } catch (error) {
    throw new ConfigError(`The XML cannot be read: ${messageOf(error)}`, { path: '', file });
  }
}

function convert(nodes: readonly OrderedNode[], lines: Lines, file: string): XmlElement[] {
  const elements: XmlElement[] = [];
  for (const node of nodes) {
    const name = Object.keys(node).find((key) => key !== ATTRIBUTES);
    if (name === undefined || name === TEXT || name === CDATA || name.startsWith('?')) continue;
    const line = lines.at(startOf(node));
    const inner = node[name] as readonly OrderedNode[];
    const attributes = Object.entries((node[ATTRIBUTES] as Record<string, string> | undefined) ?? {});
    elements.push({
      name,
      attributes: new Map(attributes.map(([key, value]) => [key, decode(String(value), file, line)])),
      children: convert(inner, lines, file),
      text: textOf(inner, file, line),
      file,
      line,
    });
  }
  return elements;
}

function textOf(nodes: readonly OrderedNode[], file: string, line: number): string {
  let text = '';
  for (const node of nodes) {
    if (TEXT in node) text += decode(String(node[TEXT]), file, line);
    else if (CDATA in node) text += String((node[CDATA] as readonly OrderedNode[])[0]?.[TEXT] ?? '');
  }
  return text.trim();
}

function decode(text: string, file: string, line: number): string {
  if (!text.includes('&')) return text;
  return text.replaceAll(/&(#x[0-9a-f]+|#[0-9]+|\w+);/gi, (whole, name: string) => {
    const character = name.startsWith('#') ? fromCodePoint(name.slice(1)) : NAMED_ENTITIES[name];
    if (character === undefined) throw new ConfigError(`Unknown entity: ${shown(whole)}`, { path: '', file, line });
    return character;
  });
}

function fromCodePoint(number: string): string | undefined {
  const code = /^x/i.test(number) ? Number.parseInt(number.slice(1), 16) : Number.parseInt(number, 10);
  return code > 0 && code <= MAX_CODE_POINT ? String.fromCodePoint(code) : undefined;
}

function startOf(node: OrderedNode): number {
  const meta = (node as unknown as Record<symbol, unknown>)[XMLParser.getMetaDataSymbol() as unknown as symbol];
  return (meta as { startIndex?: number } | undefined)?.startIndex ?? 0;
}

/** Turns positions into line numbers. */
class Lines {
  readonly #starts: number[] = [0];

  constructor(text: string) {
    for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) this.#starts.push(at + 1);
  }

  at(position: number): number {
    let low = 0;
    let high = this.#starts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((this.#starts[middle] ?? 0) <= position) low = middle;
      else high = middle - 1;
    }
    return low + 1;
  }
}
