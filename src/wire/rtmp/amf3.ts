/** AMF3 values (amf-file-format-spec of 2013): read in full except externalizable classes. */
import { ProtocolError } from '../../util/protocol-error.ts';
import { AmfObject, type AmfReader, type AmfValue } from './amf.ts';

/** The byte in front of a value (§3.1). */
export const Amf3Marker = {
  UNDEFINED: 0x00,
  NULL: 0x01,
  FALSE: 0x02,
  TRUE: 0x03,
  INTEGER: 0x04,
  DOUBLE: 0x05,
  STRING: 0x06,
  XML_DOCUMENT: 0x07,
  DATE: 0x08,
  ARRAY: 0x09,
  OBJECT: 0x0a,
  XML: 0x0b,
  BYTE_ARRAY: 0x0c,
  VECTOR_INT: 0x0d,
  VECTOR_UINT: 0x0e,
  VECTOR_DOUBLE: 0x0f,
  VECTOR_OBJECT: 0x10,
  DICTIONARY: 0x11,
} as const;

const INTEGER_BITS = 29;
const MAX_INTEGER = 2 ** (INTEGER_BITS - 1) - 1;

interface Traits {
  readonly className: string;
  readonly dynamic: boolean;
  readonly names: readonly string[];
}

/** Reference tables live as long as one value behind an AVM+ marker. */
interface Tables {
  readonly strings: string[];
  readonly objects: AmfValue[];
  readonly traits: Traits[];
}

/** One AMF3 value at the reader's offset. Throws `ProtocolError`. */
export function parseAmf3(reader: AmfReader): AmfValue {
  return parseValue(reader, { strings: [], objects: [], traits: [] });
}

function parseValue(reader: AmfReader, tables: Tables): AmfValue {
  reader.countValue();
  const at = reader.offset;
  const marker = reader.u8();
  switch (marker) {
    case Amf3Marker.UNDEFINED:
      return undefined;
    case Amf3Marker.NULL:
      return null;
    case Amf3Marker.FALSE:
      return false;
    case Amf3Marker.TRUE:
      return true;
    case Amf3Marker.INTEGER:
      return signed(readU29(reader));
    case Amf3Marker.DOUBLE:
      return reader.f64();
    case Amf3Marker.STRING:
      return parseString(reader, tables);
    case Amf3Marker.XML_DOCUMENT:
    case Amf3Marker.XML:
      return parseReferable(reader, tables, (length) => register(tables, reader.utf8(length)));
    case Amf3Marker.BYTE_ARRAY:
      return parseReferable(reader, tables, (length) => {
        const start = reader.take(length);
        return register(tables, reader.bytes.subarray(start, start + length));
      });
    case Amf3Marker.DATE:
      return parseReferable(reader, tables, () => register(tables, new Date(reader.f64())));
    case Amf3Marker.ARRAY:
      return parseReferable(reader, tables, (length) => parseArray(reader, tables, length));
    case Amf3Marker.OBJECT:
      return parseReferable(reader, tables, (header) => parseObject(reader, tables, header));
    case Amf3Marker.VECTOR_INT:
    case Amf3Marker.VECTOR_UINT:
    case Amf3Marker.VECTOR_DOUBLE:
    case Amf3Marker.VECTOR_OBJECT:
      return parseReferable(reader, tables, (length) => parseVector(reader, tables, marker, length));
    case Amf3Marker.DICTIONARY:
      return parseReferable(reader, tables, (length) => parseDictionary(reader, tables, length));
    default:
      throw new ProtocolError('AMF_MARKER', `unknown AMF3 marker 0x${marker.toString(16)}`, at);
  }
}

/** Resolves a reference, or hands the upper bits of the header to `parse`. */
function parseReferable(reader: AmfReader, tables: Tables, parse: (header: number) => AmfValue): AmfValue {
  const at = reader.offset;
  const header = readU29(reader);
  if ((header & 1) === 1) return parse(header >> 1);
  const index = header >> 1;
  if (index >= tables.objects.length) throw new ProtocolError('AMF_REFERENCE', `object reference ${index} of ${tables.objects.length}`, at);
  return tables.objects[index];
}

function register<T extends AmfValue>(tables: Tables, value: T): T {
  tables.objects.push(value);
  return value;
}

function parseString(reader: AmfReader, tables: Tables): string {
  const at = reader.offset;
  const header = readU29(reader);
  if ((header & 1) === 0) {
    const known = tables.strings[header >> 1];
    if (known === undefined) throw new ProtocolError('AMF_REFERENCE', `string reference ${header >> 1} of ${tables.strings.length}`, at);
    return known;
  }
  const text = reader.utf8(header >> 1);
  if (text !== '') tables.strings.push(text);
  return text;
}

function parseArray(reader: AmfReader, tables: Tables, length: number): AmfValue {
  requireRoom(reader, length);
  const first = parseString(reader, tables);
  if (first !== '') return parseAssociativeArray(reader, tables, { length, first });
  const items = register(tables, [] as AmfValue[]);
  reader.enter();
  for (let i = 0; i < length; i += 1) items.push(parseValue(reader, tables));
  reader.leave();
  return items;
}

/** Named entries first, then the dense part, which gets its indices as names. */
function parseAssociativeArray(reader: AmfReader, tables: Tables, header: { length: number; first: string }): AmfObject {
  const object = register(tables, new AmfObject([], 'ecma-array'));
  reader.enter();
  for (let name = header.first; name !== ''; name = parseString(reader, tables)) object.fields.set(name, parseValue(reader, tables));
  for (let i = 0; i < header.length; i += 1) object.fields.set(String(i), parseValue(reader, tables));
  reader.leave();
  return object;
}

function parseObject(reader: AmfReader, tables: Tables, header: number): AmfObject {
  const traits = parseTraits(reader, tables, header);
  const object = register(tables, new AmfObject([], 'object', traits.className));
  reader.enter();
  for (const name of traits.names) object.fields.set(name, parseValue(reader, tables));
  if (traits.dynamic) {
    for (let name = parseString(reader, tables); name !== ''; name = parseString(reader, tables)) {
      object.fields.set(name, parseValue(reader, tables));
    }
  }
  reader.leave();
  return object;
}

/** `header`, low bits first: 1 traits inline, 1 externalizable, 1 dynamic, number of sealed names. */
function parseTraits(reader: AmfReader, tables: Tables, header: number): Traits {
  const at = reader.offset;
  if ((header & 1) === 0) {
    const known = tables.traits[header >> 1];
    if (known === undefined) throw new ProtocolError('AMF_REFERENCE', `traits reference ${header >> 1} of ${tables.traits.length}`, at);
    return known;
  }
  const className = parseString(reader, tables);
  if ((header & 2) !== 0) throw new ProtocolError('AMF_EXTERNALIZABLE', `class ${className} has its own encoding`, at);
  const count = header >> 3;
  requireRoom(reader, count);
  const names: string[] = [];
  for (let i = 0; i < count; i += 1) {
    reader.countValue();
    names.push(parseString(reader, tables));
  }
  const traits = { className, dynamic: (header & 4) !== 0, names };
  tables.traits.push(traits);
  return traits;
}

function parseVector(reader: AmfReader, tables: Tables, marker: number, length: number): AmfValue {
  reader.take(1);
  requireRoom(reader, length);
  if (marker === Amf3Marker.VECTOR_OBJECT) parseString(reader, tables);
  const items = register(tables, [] as AmfValue[]);
  reader.enter();
  for (let i = 0; i < length; i += 1) {
    if (marker === Amf3Marker.VECTOR_OBJECT) {
      items.push(parseValue(reader, tables));
      continue;
    }
    reader.countValue();
    if (marker === Amf3Marker.VECTOR_DOUBLE) items.push(reader.f64());
    else items.push(marker === Amf3Marker.VECTOR_INT ? reader.u32() | 0 : reader.u32());
  }
  reader.leave();
  return items;
}

/** Keys can be any value; only printable keys are kept apart. */
function parseDictionary(reader: AmfReader, tables: Tables, length: number): AmfObject {
  reader.take(1);
  requireRoom(reader, length);
  const object = register(tables, new AmfObject([], 'ecma-array'));
  reader.enter();
  for (let i = 0; i < length; i += 1) {
    const key = parseValue(reader, tables);
    object.fields.set(typeof key === 'object' ? `key${i}` : String(key), parseValue(reader, tables));
  }
  reader.leave();
  return object;
}

function requireRoom(reader: AmfReader, count: number): void {
  if (count > reader.remaining)
    throw new ProtocolError('AMF_TRUNCATED', `${count} values announced, ${reader.remaining} bytes left`, reader.offset);
}

/** 1 to 4 bytes, seven bits each but eight in the fourth. */
function readU29(reader: AmfReader): number {
  let value = 0;
  for (let i = 0; i < 3; i += 1) {
    const byte = reader.u8();
    value = (value << 7) | (byte & 0x7f);
    if (byte < 0x80) return value;
  }
  return (value << 8) | reader.u8();
}

function signed(value: number): number {
  return value > MAX_INTEGER ? value - 2 ** INTEGER_BITS : value;
}
