/** AMF0 values (amf0-file-format-specification, with the AVM+ switch to AMF3). */
import { ProtocolError } from '../../util/protocol-error.ts';
import { type AmfLimits, AmfObject, AmfReader, type AmfValue, AmfWriter } from './amf.ts';
import { parseAmf3 } from './amf3.ts';

const Marker = {
  NUMBER: 0x00,
  BOOLEAN: 0x01,
  STRING: 0x02,
  OBJECT: 0x03,
  NULL: 0x05,
  UNDEFINED: 0x06,
  REFERENCE: 0x07,
  ECMA_ARRAY: 0x08,
  OBJECT_END: 0x09,
  STRICT_ARRAY: 0x0a,
  DATE: 0x0b,
  LONG_STRING: 0x0c,
  UNSUPPORTED: 0x0d,
  XML_DOCUMENT: 0x0f,
  TYPED_OBJECT: 0x10,
  AVMPLUS_OBJECT: 0x11,
} as const;

const MAX_SHORT_STRING = 0xffff;

/** All values from `offset` to the end of a message. Throws `ProtocolError`. */
export function parseAmf0(bytes: Uint8Array, options: { offset?: number; limits?: AmfLimits } = {}): AmfValue[] {
  const reader = new AmfReader(bytes, options);
  const references: AmfValue[] = [];
  const values: AmfValue[] = [];
  while (!reader.atEnd) values.push(parseValue(reader, references));
  return values;
}

/** The values one behind the other. */
export function serializeAmf0(values: readonly AmfValue[]): Buffer {
  const writer = new AmfWriter();
  for (const value of values) writeValue(writer, value);
  return writer.toBuffer();
}

function parseValue(reader: AmfReader, references: AmfValue[]): AmfValue {
  reader.countValue();
  const at = reader.offset;
  const marker = reader.u8();
  switch (marker) {
    case Marker.NUMBER:
      return reader.f64();
    case Marker.BOOLEAN:
      return reader.u8() !== 0;
    case Marker.STRING:
      return reader.utf8(reader.u16());
    case Marker.LONG_STRING:
    case Marker.XML_DOCUMENT:
      return reader.utf8(reader.u32());
    case Marker.NULL:
      return null;
    case Marker.UNDEFINED:
    case Marker.UNSUPPORTED:
      return undefined;
    case Marker.DATE:
      return parseDate(reader);
    case Marker.OBJECT:
      return parseFields(reader, references, new AmfObject());
    case Marker.TYPED_OBJECT:
      return parseFields(reader, references, new AmfObject([], 'object', reader.utf8(reader.u16())));
    case Marker.ECMA_ARRAY:
      // The count is a hint that writers get wrong: the end marker decides.
      reader.take(4);
      return parseFields(reader, references, new AmfObject([], 'ecma-array'));
    case Marker.STRICT_ARRAY:
      return parseStrictArray(reader, references);
    case Marker.REFERENCE:
      return resolve(references, reader.u16(), at);
    case Marker.AVMPLUS_OBJECT:
      return parseAmf3(reader);
    default:
      throw new ProtocolError('AMF_MARKER', `unknown AMF0 marker 0x${marker.toString(16)}`, at);
  }
}

function parseDate(reader: AmfReader): Date {
  const date = new Date(reader.f64());
  reader.take(2);
  return date;
}

function parseFields(reader: AmfReader, references: AmfValue[], object: AmfObject): AmfObject {
  references.push(object);
  reader.enter();
  for (;;) {
    const name = reader.utf8(reader.u16());
    if (name === '' && reader.bytes[reader.offset] === Marker.OBJECT_END) {
      reader.take(1);
      reader.leave();
      return object;
    }
    object.fields.set(name, parseValue(reader, references));
  }
}

function parseStrictArray(reader: AmfReader, references: AmfValue[]): AmfValue {
  const at = reader.offset;
  const count = reader.u32();
  if (count > reader.remaining) throw new ProtocolError('AMF_TRUNCATED', `array announces ${count} values`, at);
  const items: AmfValue[] = [];
  references.push(items);
  reader.enter();
  for (let i = 0; i < count; i += 1) items.push(parseValue(reader, references));
  reader.leave();
  return items;
}

function resolve(references: readonly AmfValue[], index: number, at: number): AmfValue {
  if (index >= references.length) throw new ProtocolError('AMF_REFERENCE', `reference ${index} of ${references.length}`, at);
  return references[index];
}

function writeValue(writer: AmfWriter, value: AmfValue): void {
  if (typeof value === 'number') {
    writer.u8(Marker.NUMBER);
    writer.f64(value);
  } else if (typeof value === 'boolean') {
    writer.u8(Marker.BOOLEAN);
    writer.u8(value ? 1 : 0);
  } else if (typeof value === 'string') {
    writeString(writer, value);
  } else if (value === null) {
    writer.u8(Marker.NULL);
  } else if (value === undefined) {
    writer.u8(Marker.UNDEFINED);
  } else if (value instanceof Date) {
    writer.u8(Marker.DATE);
    writer.f64(value.getTime());
    writer.i16(0);
  } else if (value instanceof AmfObject) {
    writeObject(writer, value);
  } else if (value instanceof Uint8Array) {
    throw new TypeError('AMF0 has no byte arrays');
  } else {
    writer.u8(Marker.STRICT_ARRAY);
    writer.u32(value.length);
    writer.enter();
    for (const item of value) writeValue(writer, item);
    writer.leave();
  }
}

function writeString(writer: AmfWriter, value: string): void {
  const bytes = Buffer.from(value, 'utf8');
  if (bytes.length > MAX_SHORT_STRING) {
    writer.u8(Marker.LONG_STRING);
    writer.u32(bytes.length);
  } else {
    writer.u8(Marker.STRING);
    writer.u16(bytes.length);
  }
  writer.raw(bytes);
}

function writeObject(writer: AmfWriter, object: AmfObject): void {
  if (object.className !== '') {
    writer.u8(Marker.TYPED_OBJECT);
    writeName(writer, object.className);
  } else if (object.kind === 'ecma-array') {
    writer.u8(Marker.ECMA_ARRAY);
    writer.u32(object.fields.size);
  } else {
    writer.u8(Marker.OBJECT);
  }
  writer.enter();
  for (const [name, value] of object.fields) {
    writeName(writer, name);
    writeValue(writer, value);
  }
  writer.leave();
  writer.u16(0);
  writer.u8(Marker.OBJECT_END);
}

function writeName(writer: AmfWriter, name: string): void {
  const bytes = Buffer.from(name, 'utf8');
  if (bytes.length > MAX_SHORT_STRING) throw new TypeError('AMF0 name is too long');
  writer.u16(bytes.length);
  writer.raw(bytes);
}
