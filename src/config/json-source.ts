/** JSON values as a source: bodies of API requests and saved state. */
import type { Field } from './field-plan.ts';
import { ConfigError, type Place, shown } from './problem.ts';
import type { FoundList, FoundMember, Reading, Source } from './source.ts';
import type { Scalar } from './value.ts';

export class JsonSource implements Source {
  readonly place: Place;
  readonly label: string;
  readonly strict = true;
  readonly #value: unknown;
  readonly #reading: Reading;

  constructor(value: unknown, path: string, label: string, reading: Reading) {
    this.#value = value;
    this.place = { path };
    this.label = label;
    this.#reading = reading;
  }

  scalar(): Scalar | undefined {
    const value = this.#value;
    return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? value : undefined;
  }

  open(fields: readonly Field[]): boolean {
    if (isRecord(this.#value)) return true;
    const list = Array.isArray(this.#value) ? fields.find((field) => field.shape === 'list' && field.flatten === undefined) : undefined;
    if (list !== undefined) this.#fail(`${list.key} is not an array`);
    else this.#fail(`${this.place.path} must be an object, but got ${shown(this.#value)}`);
    return false;
  }

  member(field: Field): FoundMember | undefined {
    const found = this.#find(field);
    if (found === undefined) return undefined;
    const { place, label } = this.#placeOf(found.key);
    return { key: found.key, source: new JsonSource(found.value, place.path, label, this.#reading) };
  }

  list(field: Field): FoundList | undefined {
    const found = this.#find(field);
    if (found === undefined) return undefined;
    let { value } = found;
    const { key } = found;
    const { path } = this.#placeOf(key).place;
    let bare = false;
    if (field.flatten !== undefined && isRecord(value)) {
      const { jsonKey } = field.flatten;
      const stranger = Object.keys(value).find((name) => name !== jsonKey);
      if (stranger !== undefined) this.#fail(`Unknown item found: ${this.label}.${key}.${stranger}`, `${path}.${stranger}`);
      const inner = Object.hasOwn(value, jsonKey) ? value[jsonKey] : undefined;
      bare = inner === undefined || inner === null;
      value = bare ? [] : inner;
    }
    if (!Array.isArray(value)) {
      this.#fail(isRecord(value) ? `Child ${key} is not an array` : `${path} must be a list, but got ${shown(value)}`, path);
      return undefined;
    }
    const itemLabel = field.flatten?.jsonKey ?? field.key;
    const items = value.map((item, index) => new JsonSource(item ?? {}, `${path}[${index}]`, itemLabel, this.#reading));
    return { key, items, bare };
  }

  reportUnknown(fields: readonly Field[]): void {
    const known = new Set(fields.flatMap((field) => field.jsonKeys));
    for (const key of Object.keys(this.#value as object)) {
      if (!known.has(key)) this.#fail(`Unknown item found: ${this.label}.${key}`, `${this.place.path}.${key}`);
    }
  }

  placeOf(field: Field): { place: Place; label: string } {
    return this.#placeOf(field.key);
  }

  #placeOf(key: string): { place: Place; label: string } {
    return { place: { path: `${this.place.path}.${key}` }, label: `${this.label}.${key}` };
  }

  #find(field: Field): { key: string; value: unknown } | undefined {
    const object = this.#value as Readonly<Record<string, unknown>>;
    const given = field.jsonKeys.filter((key) => Object.hasOwn(object, key) && object[key] !== null && object[key] !== undefined);
    const [key, other] = given;
    if (key === undefined) return undefined;
    if (other !== undefined)
      this.#fail(`${this.place.path}.${key} is given twice, the second time as ${other}`, `${this.place.path}.${other}`);
    return { key, value: object[key] };
  }

  #fail(message: string, path = this.place.path): void {
    this.#reading.errors.push(new ConfigError(message, { path }));
  }
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
