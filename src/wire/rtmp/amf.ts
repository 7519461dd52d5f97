/** Values of the Action Message Format and the limits for reading them. */
import { ProtocolError } from '../../util/protocol-error.ts';

/** Any value AMF0 or AMF3 can carry, as far as streaming uses them. XML documents become strings. */
export type AmfValue = number | boolean | string | null | undefined | Date | Uint8Array | AmfObject | readonly AmfValue[];

/**
 * An object with named fields. `kind` says how it was or will be written: anonymous, associative array (ECMA array), or of a class.
 */
export class AmfObject {
  readonly kind: 'object' | 'ecma-array';
  readonly className: string;
  readonly fields: Map<string, AmfValue>;

  constructor(fields: Iterable<readonly [string, AmfValue]> = [], kind: AmfObject['kind'] = 'object', className = '') {
    this.fields = new Map(fields);
    this.kind = kind;
    this.className = className;
  }

  /** An anonymous object from a literal. */
  static of(fields: Readonly<Record<string, AmfValue>>): AmfObject {
    return new AmfObject(Object.entries(fields));
  }

  get(name: string): AmfValue {
    return this.fields.get(name);
  }
}

/** Limits for the values that a peer can make a parser build. */
export interface AmfLimits {
  /** Objects and arrays inside each other. */
  readonly depth: number;
  /** Values in all, nested ones included. */
  readonly values: number;
}
/** More than any encoder sends. */
export const DEFAULT_AMF_LIMITS: AmfLimits = { depth: 16, values: 8192 };

/** Reads AMF primitives from one message; shared by the AMF0 and AMF3 parsers, which count values and depth on it. */
export class AmfReader {
  readonly bytes: Buffer;
  offset: number;
  readonly #limits: AmfLimits;
  #values = 0;
  #depth = 0;

  constructor(bytes: Uint8Array, options: { offset?: number; limits?: AmfLimits } = {}) {
    this.bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.offset = options.offset ?? 0;
    this.#limits = options.limits ?? DEFAULT_AMF_LIMITS;
  }

  get atEnd(): boolean {
    return this.offset >= this.bytes.length;
  }

  get remaining(): number {
    return this.bytes.length - this.offset;
  }

  /** Advances over `length` bytes and returns where they start. */
  take(length: number): number {
    const at = this.offset;
    if (length > this.bytes.length - at) {
      throw new ProtocolError('AMF_TRUNCATED', `${length} bytes needed, ${this.bytes.length - at} left`, at);
    }
    this.offset = at + length;
    return at;
  }

  u8(): number {
    return this.bytes.readUInt8(this.take(1));
  }

  u16(): number {
    return this.bytes.readUInt16BE(this.take(2));
  }

  u32(): number {
    return this.bytes.readUInt32BE(this.take(4));
  }

  f64(): number {
    return this.bytes.readDoubleBE(this.take(8));
  }

  utf8(length: number): string {
    const at = this.take(length);
    return this.bytes.toString('utf8', at, at + length);
  }

  /** Counts one value against the limit. */
  countValue(): void {
    this.#values += 1;
    if (this.#values > this.#limits.values)
      throw new ProtocolError('AMF_TOO_MANY_VALUES', `more than ${this.#limits.values} values`, this.offset);
  }

  enter(): void {
    this.#depth += 1;
    if (this.#depth > this.#limits.depth) throw new ProtocolError('AMF_TOO_DEEP', `nested deeper than ${this.#limits.depth}`, this.offset);
  }

  leave(): void {
    this.#depth -= 1;
  }
}

const INITIAL_CAPACITY = 256;
/** Only cyclic values are deeper. */
const MAX_WRITTEN_DEPTH = 64;

/** A growing buffer with the AMF primitives. */
export class AmfWriter {
  #bytes = Buffer.allocUnsafe(INITIAL_CAPACITY);
  #length = 0;
  #depth = 0;

  /** The written bytes, as a copy of exactly their size. */
  toBuffer(): Buffer {
    return Buffer.from(this.#bytes.subarray(0, this.#length));
  }

  u8(value: number): void {
    const at = this.#reserve(1);
    this.#bytes.writeUInt8(value, at);
  }

  u16(value: number): void {
    const at = this.#reserve(2);
    this.#bytes.writeUInt16BE(value, at);
  }

  i16(value: number): void {
    const at = this.#reserve(2);
    this.#bytes.writeInt16BE(value, at);
  }

  u32(value: number): void {
    const at = this.#reserve(4);
    this.#bytes.writeUInt32BE(value, at);
  }

  f64(value: number): void {
    const at = this.#reserve(8);
    this.#bytes.writeDoubleBE(value, at);
  }

  raw(bytes: Uint8Array): void {
    const at = this.#reserve(bytes.length);
    this.#bytes.set(bytes, at);
  }

  enter(): void {
    this.#depth += 1;
    if (this.#depth > MAX_WRITTEN_DEPTH) throw new TypeError('AMF value is cyclic or nested too deeply');
  }

  leave(): void {
    this.#depth -= 1;
  }

  #reserve(length: number): number {
    const at = this.#length;
    this.#length += length;
    if (this.#length > this.#bytes.length) {
      const grown = Buffer.allocUnsafe(Math.max(this.#length, this.#bytes.length * 2));
      this.#bytes.copy(grown, 0, 0, at);
      this.#bytes = grown;
    }
    return at;
  }
}
