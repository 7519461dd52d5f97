/** Map files: the tasks that begin with streams of certain names. */
import { ConfigError } from '../../config/index.ts';
import type { XmlElement } from '../../config/xml.ts';
import { compileWildcard } from '../../util/wildcard.ts';

/** The common part of the entries of all maps. */
export interface StreamMapEntry {
  /** Takes `*` and `?`; the macro for the name of the inbound stream is replaced first. */
  readonly streamName: string;
}

/** An element of a map while it is read. */
export class MapPart {
  readonly #element: XmlElement;
  /** Path of the element for error messages. */
  readonly #path: string;

  constructor(element: XmlElement, path: string) {
    this.#element = element;
    this.#path = path;
  }

  /** Trimmed text of a child; empty for none. */
  text(name: string): string {
    return textOf(this.#element, name);
  }

  /** All children of this name. */
  parts(name: string): MapPart[] {
    const found = this.#element.children.filter((child) => child.name === name);
    return found.map((child) => new MapPart(child, `${this.#path}/${name}`));
  }

  /** Error about a child element, with its place. */
  fault(name: string, what: string): ConfigError {
    return faultOf(this.#element, `${this.#path}/${name} ${what}`);
  }
}

/** One enabled entry while it is read. */
export class MapElement extends MapPart {
  readonly streamName: string;
  readonly variantNames: readonly string[];

  /** `nameElement`: the child with the names of streams. Throws `ConfigError` when it is missing. */
  constructor(element: XmlElement, nameElement = 'StreamName') {
    super(element, element.name);
    this.streamName = this.text(nameElement);
    if (this.streamName === '') throw this.fault(nameElement, 'is missing');
    this.variantNames = this.text('VariantNames')
      .split(',')
      .map((name) => name.trim())
      .filter((name) => name !== '');
  }
}

/** The entries of a file that are enabled, each as `read` takes it. Throws `ConfigError` with the line at fault. */
export function readStreamMap<Entry extends StreamMapEntry>(
  root: XmlElement,
  names: { readonly root: string; readonly item: string; readonly streamName?: string },
  read: (entry: MapElement) => Entry,
): Entry[] {
  if (root.name !== names.root) throw faultOf(root, `the root element must be ${names.root}, but is ${root.name}`);
  return root.children
    .filter((element) => element.name === names.item && textOf(element, 'Enable').toLowerCase() === 'true')
    .map((element) => read(new MapElement(element, names.streamName)));
}

/** The entries whose pattern matches an outbound stream. */
export function entriesFor<Entry extends StreamMapEntry>(
  entries: readonly Entry[],
  stream: { readonly name: string; readonly sourceName: string },
): Entry[] {
  return entries.filter(({ streamName }) => compileWildcard(streamName.replaceAll('${SourceStream}', stream.sourceName))(stream.name));
}

function textOf({ children }: XmlElement, name: string): string {
  return (children.find((child) => child.name === name)?.text ?? '').trim();
}

function faultOf({ file, line, name }: XmlElement, message: string): ConfigError {
  return new ConfigError(`${file}:${line}: ${message}`, { path: name, file, line });
}
