/** Input for the reader, from XML or JSON. */
import type { Field } from './field-plan.ts';
import type { MacroSource } from './macros.ts';
import type { ConfigError, ConfigWarning, Place } from './problem.ts';
import type { Scalar } from './value.ts';

/** Collects problems while reading continues. */
export interface Reading {
  readonly errors: ConfigError[];
  readonly warnings: ConfigWarning[];
  /** Null: macros stay unexpanded. Only the operator's files may use values of the process. */
  readonly macros: MacroSource | null;
  /** Start of relative paths; absent leaves them as written. */
  readonly directory?: string;
  /** Records where each typed object was read, for a later comparison. */
  readonly places?: WeakMap<object, Place>;
  /** Receives the places of the members of each typed object, by key; absent members have none. */
  readonly memberPlaces?: WeakMap<object, ReadonlyMap<string, Place>>;
}

/** A member that was found: the key under which it is echoed, and its value. */
export interface FoundMember {
  readonly key: string;
  readonly source: Source;
}

/** A list that was found. */
export interface FoundList {
  readonly key: string;
  readonly items: readonly Source[];
  /** The input has a container without items, so the echo is `{}`. */
  readonly bare: boolean;
}

/** One value of the input. */
export interface Source {
  readonly place: Place;
  /** Start of the reference's error texts for members of this value. */
  readonly label: string;
  /** True: texts must be texts (JSON). False: existing files must still load (XML). */
  readonly strict: boolean;
  /** The value of a leaf; undefined for anything else. */
  scalar(): Scalar | undefined;
  /** Checks that this can be read as an object with `fields`; if not, reports it and returns false. */
  open(fields: readonly Field[]): boolean;
  member(field: Field): FoundMember | undefined;
  list(field: Field): FoundList | undefined;
  /** Reports the members that are not among `fields`. */
  reportUnknown(fields: readonly Field[]): void;
  /** The position of a member, for errors about an absent member. */
  placeOf(field: Field): { readonly place: Place; readonly label: string };
}
