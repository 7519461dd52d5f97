/** XML elements as a source: `Server.xml` and the files it includes. */
import { didYouMean } from '../util/similar-name.js';
import type { Field } from './field-plan.ts';
import { ConfigError, type Place } from './problem.ts';
import type { FoundList, FoundMember, Reading, Source } from './source.ts';
import type { Scalar } from './value.ts';
import type { XmlElement } from './xml.ts';

/** Reads the files an `include` pattern matches. */
export type IncludeFiles = (pattern: string, from: XmlElement) => readonly XmlElement[];

interface XmlReading {
  readonly reading: Reading;
  readonly include: IncludeFiles;
}

const MAX_INCLUDE_DEPTH = 8;

/** One element. It resolves includes, counts attributes as members, and warns of unknown members instead of refusing. */
export class XmlSource implements Source {
  readonly place: Place;
  readonly label: string;
  readonly strict = false;
  readonly #element: XmlElement;
  readonly #context: XmlReading;

  constructor(element: XmlElement, path: string, context: XmlReading) {
    this.#element = element;
    this.#context = context;
    this.place = { path, file: element.file, line: element.line };
    this.label = path;
  }

  scalar(): Scalar | undefined {
    return this.#element.children.length === 0 ? this.#element.text : undefined;
  }

  open(): boolean {
    const { text } = this.#element;
    if (text !== '') this.#warn(`${this.place.path} has no value of its own; the text is ignored`, this.#element);
    return true;
  }

  member(field: Field): FoundMember | undefined {
    if (field.notes.attribute !== undefined) return this.#attribute(field, field.notes.attribute);
    const [element, ...others] = this.#named(field.xmlNames, 'one');
    if (element === undefined) return undefined;
    for (const other of others) {
      this.#warn(
        `${this.place.path}/${other.name} is given more than once; only the first counts`,
        other,
        `${this.place.path}/${other.name}`,
      );
    }
    return { key: this.#keyOf(field, element), source: new XmlSource(element, `${this.place.path}/${element.name}`, this.#context) };
  }

  list(field: Field): FoundList | undefined {
    if (field.flatten === undefined) {
      const elements = this.#named(field.xmlNames, 'any');
      const [first] = elements;
      if (first === undefined) return undefined;
      return { key: this.#keyOf(field, first), items: this.#numbered(elements), bare: false };
    }
    const container = this.member(field);
    if (container === undefined) return undefined;
    const { key, source } = container;
    const { xmlName } = field.flatten;
    const inside = source as XmlSource;
    const items = inside.#numbered(inside.#named([xmlName], 'any'));
    inside.#reportExcept(new Set([xmlName]));
    return { key, items, bare: items.length === 0 };
  }

  reportUnknown(fields: readonly Field[]): void {
    this.#reportExcept(new Set(fields.flatMap((field) => (field.notes.attribute === undefined ? field.xmlNames : []))));
  }

  placeOf(field: Field): { place: Place; label: string } {
    const name = field.notes.attribute === undefined ? `${field.xmlNames[0]}` : `@${field.notes.attribute}`;
    const path = `${this.place.path}/${name}`;
    return { place: { ...this.place, path }, label: path };
  }

  #attribute(field: Field, name: string): FoundMember | undefined {
    const text = this.#element.attributes.get(name);
    if (text === undefined) return undefined;
    const element: XmlElement = { ...this.#element, attributes: new Map(), children: [], text: text.trim() };
    return { key: field.key, source: new XmlSource(element, `${this.place.path}/@${name}`, this.#context) };
  }

  /** The key for the echo: the one whose element name was used. */
  #keyOf(field: Field, element: XmlElement): string {
    return field.jsonKeys[Math.max(0, field.xmlNames.indexOf(element.name))] ?? field.key;
  }

  #named(names: readonly string[], number: 'one' | 'any'): XmlElement[] {
    return this.#element.children
      .filter((child) => names.includes(child.name) && !isIgnored(child))
      .flatMap((child) => this.#included(child, number, 0));
  }

  #included(element: XmlElement, number: 'one' | 'any', depth: number): readonly XmlElement[] {
    const pattern = element.attributes.get('include');
    if (pattern === undefined) return [element];
    const path = `${this.place.path}/${element.name}`;
    if (depth === MAX_INCLUDE_DEPTH) return this.#fail(`${path} includes files that include files without end`, element, path);
    let roots: readonly XmlElement[];
    try {
      roots = this.#context.include(pattern, element);
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      this.#context.reading.errors.push(error);
      return [];
    }
    const stranger = roots.find((root) => root.name !== element.name);
    if (stranger !== undefined) {
      return this.#fail(
        `${path} includes ${stranger.file}, whose root element must be <${element.name}>, but is <${stranger.name}>`,
        element,
        path,
      );
    }
    if (number === 'one' && roots.length !== 1) {
      return this.#fail(`${path} must include exactly one file, but "${pattern}" matches ${roots.length}`, element, path);
    }
    return roots.filter((root) => !isIgnored(root)).flatMap((root) => this.#included(root, number, depth + 1));
  }

  #numbered(elements: readonly XmlElement[]): XmlSource[] {
    const number = (index: number) => (elements.length > 1 ? `[${index + 1}]` : '');
    return elements.map((element, index) => new XmlSource(element, `${this.place.path}/${element.name}${number(index)}`, this.#context));
  }

  #reportExcept(known: ReadonlySet<string>): void {
    for (const child of this.#element.children) {
      if (known.has(child.name) || isIgnored(child)) continue;
      const path = `${this.place.path}/${child.name}`;
      this.#warn(`Unknown element: ${path}${didYouMean(child.name, known)}`, child, path);
    }
  }

  #warn(message: string, element: XmlElement, path = this.place.path): void {
    this.#context.reading.warnings.push({ message, path, file: element.file, line: element.line });
  }

  #fail(message: string, element: XmlElement, path: string): [] {
    this.#context.reading.errors.push(new ConfigError(message, { path, file: element.file, line: element.line }));
    return [];
  }
}

function isIgnored(element: XmlElement): boolean {
  return element.attributes.get('ignore')?.toLowerCase() === 'true';
}
