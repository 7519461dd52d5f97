/** The words schemas are written in: plain JSON schema plus what XML needs to know, under `x-config`. */
import type { Static, TArray, TBoolean, TInteger, TNumber, TSchema, TString } from '@sinclair/typebox';
import { Type } from '../../util/typebox.ts';
import type { TextForm } from '../text-forms.ts';

/** How the text of a leaf becomes a value. Plain JSON types need no kind. */
export type LeafKind = 'address' | 'bitrate' | 'name' | 'path' | 'port' | 'ports' | 'words';

/** Reports a rule broken by an object; `key` names the member at fault. The text reaches the API client as it is. */
export type Fail = (message: string, key?: string) => void;

/** Why a member that is read and checked does nothing (`ineffective.ts`). */
export interface Idle {
  /** The behaviour instead, in a few words. */
  readonly why: string;
  /** Not built yet. Absent: not needed here. */
  readonly unbuilt?: boolean;
  /** The value that is not reported as without effect; default: the default of the member. */
  readonly quiet?: unknown;
  /** A descriptive member without effect: listed in the reference, and not warned about. */
  readonly label?: boolean;
}

/** The reader's additions to JSON schema. */
export interface FieldNotes {
  /** Element name in XML; default: the key with its first letter in upper case. */
  readonly xml?: string;
  /** Read from an attribute of this name instead of an element. */
  readonly attribute?: string;
  /** Further keys accepted in JSON (and, by the naming rule, in XML). */
  readonly aliases?: readonly string[];
  /** A list with a container element: the key of the items inside it. */
  readonly flatten?: string;
  readonly kind?: LeafKind;
  /** The form that the text must have. */
  readonly form?: TextForm;
  /** Makes the text of the error for a value outside `enum`. */
  readonly refusal?: (value: string) => string;
  /** Protocols that a port may name; the first is the default. */
  readonly protocols?: readonly string[];
  /** Still read, but no longer recommended: the text says what to use instead. */
  readonly deprecated?: string;
  /** The member has no effect. */
  readonly idle?: Idle;
  /** Lists that an object shows even when they were not given. */
  readonly alwaysEchoed?: readonly string[];
  /** Rules between members, and completion of the typed value; runs after all members were read. */
  readonly finish?: (value: never, fail: Fail) => void;
}

/** The annotations of a schema; `{}` when it has none. */
export function notesOf(schema: TSchema): FieldNotes {
  return (schema['x-config'] as FieldNotes | undefined) ?? {};
}

interface FieldOptions<T> extends FieldNotes {
  readonly default?: T;
}

interface NumberOptions extends FieldOptions<number> {
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
}

function split<T>(description: string, options: FieldOptions<T> & Record<string, unknown>): Record<string, unknown> {
  const { xml, attribute, aliases, flatten, kind, form, refusal, protocols, deprecated, idle, alwaysEchoed, finish, ...schema } = options;
  const notes: Record<string, unknown> = {
    xml,
    attribute,
    aliases,
    flatten,
    kind,
    form,
    refusal,
    protocols,
    deprecated,
    idle,
    alwaysEchoed,
    finish,
  };
  for (const key of Object.keys(notes)) if (notes[key] === undefined) delete notes[key];
  const result: Record<string, unknown> = { description, ...schema };
  if (deprecated !== undefined) result['deprecated'] = true;
  if (Object.keys(notes).length > 0) result['x-config'] = notes;
  return result;
}

/** Any scalar, taken as text. */
export function text(description: string, options: FieldOptions<string> = {}): TString {
  return Type.String(split(description, { ...options }));
}

/** Where to listen: an IP address, `*`, or a host name. */
export function address(description: string, options: FieldOptions<string> = {}): TString {
  return Type.String(split(description, { ...options, kind: 'address' }));
}

/** A name that is part of URLs. */
export function name(description: string, options: FieldOptions<string> = {}): TString {
  return Type.String(split(description, { ...options, kind: 'name' }));
}

/** A file or directory; relative ones start at the configuration directory. */
export function path(description: string, options: FieldOptions<string> = {}): TString {
  return Type.String(split(description, { ...options, kind: 'path' }));
}

/** A whole number; limits are part of the schema and hold for XML and JSON alike. */
export function integer(description: string, options: NumberOptions = {}): TInteger {
  return Type.Integer(split(description, { ...options }));
}

/** A number that may have a fraction; NaN and infinities are refused. */
export function real(description: string, options: NumberOptions = {}): TNumber {
  return Type.Number(split(description, { ...options }));
}

/** True or false, as words in any case; a number is true unless it is 0. */
export function boolean(description: string, options: FieldOptions<boolean> = {}): TBoolean {
  return Type.Boolean(split(description, { ...options }));
}

/** One of a closed set of words, compared without case; the typed value has the spelling given here. */
export function choice<const T extends string>(description: string, words: readonly T[], options: FieldOptions<NoInfer<T>> = {}) {
  return Type.Unsafe<T>({ type: 'string', enum: [...words], ...split(description, { ...options }) });
}

/** Bits per second, as a number or with the suffix `K` (× 1024) or `M` (× 1048576). */
export function bitrate(description: string, options: FieldOptions<number> = {}) {
  return Type.Unsafe<number>({
    anyOf: [{ type: 'integer' }, { type: 'string', pattern: '^[0-9.]+[KkMm]?$' }],
    ...split(description, { ...options, kind: 'bitrate' }),
  });
}

/** Words separated by commas; the typed value is the list of them in lower case. */
export function words(description: string, options: FieldOptions<string[]> = {}) {
  return Type.Unsafe<string[]>({ type: 'string', ...split(description, { ...options, kind: 'words' }) });
}

/** One port, e.g. `1935` or `1935/tcp`. */
export function port(description: string, options: FieldOptions<number> & { readonly protocols: readonly string[] }) {
  return Type.Unsafe<number>({
    anyOf: [
      { type: 'integer', minimum: 1, maximum: 65535 },
      { type: 'string', pattern: '^[0-9]+(/[a-z]+)?$' },
    ],
    ...split(description, { ...options, kind: 'port' }),
  });
}

/** Ports and ranges of one protocol, e.g. `4000-4004,4010/udp`. */
export interface PortRanges {
  readonly protocol: string;
  readonly ranges: readonly { readonly first: number; readonly last: number }[];
}

/**
 * Ports and ranges of ports, followed by their protocol: `4000-4003,4005/udp`, read into `PortRanges`. The first of `protocols` is the
 * default.
 */
export function ports(description: string, options: FieldOptions<string> & { readonly protocols: readonly string[] }) {
  return Type.Unsafe<PortRanges>({ type: 'string', ...split(description, { ...options, kind: 'ports' }) });
}

/** A list: in XML the element repeated; with `flatten`, repeated inside a container element. */
export function list<T extends TSchema>(description: string, items: T, options: FieldOptions<Static<T>[]> = {}): TArray<T> {
  return Type.Array(items, split(description, { ...options }));
}

type Members = Parameters<typeof Type.Object>[0];

/** An object. With `default: {}` an absent object is read as if it were empty. */
export function object<T extends Members>(description: string, members: T, options: FieldOptions<Record<string, never>> = {}) {
  return Type.Object(members, { additionalProperties: false, ...split(description, { ...options }) });
}

/** The same schema under other notes, e.g. another element name or default. */
export function as<T extends TSchema>(schema: T, description: string, options: FieldOptions<unknown> = {}): T {
  const { 'x-config': own, ...rest } = split(description, { ...options });
  return { ...schema, ...rest, 'x-config': { ...notesOf(schema), ...(own as FieldNotes | undefined) } };
}

/** Types the `finish` rule of an object after its schema. */
export function finishing<T>(rule: (value: T, fail: Fail) => void): (value: never, fail: Fail) => void {
  return rule as (value: never, fail: Fail) => void;
}

/** The member may be absent, and is then undefined. */
export const optional = Type.Optional;

/** The first name that occurs twice. */
export function firstDuplicate(items: readonly { readonly name: string }[]): string | undefined {
  const names = new Set<string>();
  return items.find(({ name }) => names.size === names.add(name).size)?.name;
}

/** Notes of a member that is not built yet. `why`: what happens instead. */
export function unbuilt(why: string): { readonly idle: Idle } {
  return { idle: { why, unbuilt: true } };
}

/** Notes of a member that is not needed here. `why`: what replaces it. */
export function needless(why: string): { readonly idle: Idle } {
  return { idle: { why } };
}

/**
 * In descriptions of protections for viewers or media that are read and checked but not supported: nothing may be served without them, so
 * they are refused (`not-built.ts`).
 */
export const REFUSED = 'not built yet; a definition that enables it is refused';
/** In descriptions of all other elements that are read and checked, and have no effect yet (`ineffective.ts`). */
export const NO_EFFECT = 'not built yet, has no effect';
