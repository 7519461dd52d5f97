/** Writes AMF3 values (amf-file-format-spec of 2013) in the simplest form; the server only reads them. */
import { AmfObject, type AmfValue, AmfWriter } from '../../src/wire/rtmp/amf.ts';
import { Amf3Marker } from '../../src/wire/rtmp/amf3.ts';

const INTEGER_BITS = 29;
const MAX_INTEGER = 2 ** (INTEGER_BITS - 1) - 1;
const MIN_INTEGER = -(2 ** (INTEGER_BITS - 1));

/** A value in AMF3, without the AVM+ marker before it. Throws `TypeError` for an unsupported value. */
export function serializeAmf3(value: AmfValue): Buffer {
  const writer = new AmfWriter();
  writeValue(writer, value);
  return writer.toBuffer();
}

function writeValue(writer: AmfWriter, value: AmfValue): void {
  if (value === undefined) writer.u8(Amf3Marker.UNDEFINED);
  else if (value === null) writer.u8(Amf3Marker.NULL);
  else if (typeof value === 'boolean') writer.u8(value ? Amf3Marker.TRUE : Amf3Marker.FALSE);
  else if (typeof value === 'number') writeNumber(writer, value);
  else if (typeof value === 'string') {
    writer.u8(Amf3Marker.STRING);
    writeString(writer, value);
  } else if (value instanceof Date) {
    writer.u8(Amf3Marker.DATE);
    writeU29(writer, 1);
    writer.f64(value.getTime());
  } else if (value instanceof Uint8Array) {
    writer.u8(Amf3Marker.BYTE_ARRAY);
    writeU29(writer, (value.length << 1) | 1);
    writer.raw(value);
  } else if (value instanceof AmfObject) {
    writeObject(writer, value);
  } else {
    writer.u8(Amf3Marker.ARRAY);
    writeU29(writer, (value.length << 1) | 1);
    writeString(writer, '');
    writer.enter();
    for (const item of value) writeValue(writer, item);
    writer.leave();
  }
}

function writeNumber(writer: AmfWriter, value: number): void {
  if (Number.isInteger(value) && !Object.is(value, -0) && value >= MIN_INTEGER && value <= MAX_INTEGER) {
    writer.u8(Amf3Marker.INTEGER);
    writeU29(writer, value < 0 ? value + 2 ** INTEGER_BITS : value);
  } else {
    writer.u8(Amf3Marker.DOUBLE);
    writer.f64(value);
  }
}

/** An empty name would end the list of fields, so AMF3 cannot carry one. */
function writeObject(writer: AmfWriter, object: AmfObject): void {
  if (object.fields.has('')) throw new TypeError('AMF3 cannot carry a field without a name');
  if (object.kind === 'ecma-array') {
    writer.u8(Amf3Marker.ARRAY);
    writeU29(writer, 1);
  } else {
    writer.u8(Amf3Marker.OBJECT);
    writeU29(writer, 0b1011);
    writeString(writer, object.className);
  }
  writer.enter();
  for (const [name, value] of object.fields) {
    writeString(writer, name);
    writeValue(writer, value);
  }
  writer.leave();
  writeString(writer, '');
}

function writeString(writer: AmfWriter, value: string): void {
  const bytes = Buffer.from(value, 'utf8');
  writeU29(writer, (bytes.length << 1) | 1);
  writer.raw(bytes);
}

function writeU29(writer: AmfWriter, value: number): void {
  if (value < 0 || value >= 2 ** INTEGER_BITS) throw new TypeError(`AMF3 cannot carry the length or integer ${value}`);
  if (value >= 0x20_0000) {
    writer.u8(((value >> 22) & 0x7f) | 0x80);
    writer.u8(((value >> 15) & 0x7f) | 0x80);
    writer.u8(((value >> 8) & 0x7f) | 0x80);
    writer.u8(value & 0xff);
    return;
  }
  if (value >= 0x4000) writer.u8(((value >> 14) & 0x7f) | 0x80);
  if (value >= 0x80) writer.u8(((value >> 7) & 0x7f) | 0x80);
  writer.u8(value & 0x7f);
}
