import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { serializeAmf3 } from '../../../test/support/amf3-writer.ts';
import { codeOf } from '../../../test/support/error-code.ts';
import { ProtocolError } from '../../util/protocol-error.ts';
import { AmfObject, AmfReader, type AmfValue } from './amf.ts';
import { parseAmf0, serializeAmf0 } from './amf0.ts';
import { parseAmf3 } from './amf3.ts';

function hex(text: string): Buffer {
  return Buffer.from(text.replaceAll(/\s/g, ''), 'hex');
}

const ECMA = new AmfObject([['a', 1]], 'ecma-array');

/** Both directions unless `oneWay`. */
const AMF0_TABLE: { name: string; wire: string; values: AmfValue[]; oneWay?: boolean }[] = [
  { name: 'number', wire: '00 3ff8000000000000', values: [1.5] },
  { name: 'booleans', wire: '0101 0100', values: [true, false] },
  { name: 'string', wire: '02 0003 e282ac', values: ['€'] },
  { name: 'null and undefined', wire: '05 06', values: [null, undefined] },
  { name: 'object', wire: '03 0001 61 00 3ff0000000000000 0001 62 02 0001 63 000009', values: [AmfObject.of({ a: 1, b: 'c' })] },
  { name: 'empty object', wire: '03 000009', values: [new AmfObject()] },
  { name: 'ECMA array', wire: '08 00000001 0001 61 00 3ff0000000000000 000009', values: [ECMA] },
  { name: 'ECMA array with a wrong count', wire: '08 00000000 0001 61 00 3ff0000000000000 000009', values: [ECMA], oneWay: true },
  { name: 'strict array', wire: '0a 00000002 0101 05', values: [[true, null]] },
  { name: 'date', wire: '0b 408f400000000000 0000', values: [new Date(1000)] },
  { name: 'typed object', wire: '10 0001 54 000009', values: [new AmfObject([], 'object', 'T')] },
  { name: 'long string', wire: '0c 00000001 61', values: ['a'], oneWay: true },
  { name: 'XML document', wire: '0f 00000004 3c612f3e', values: ['<a/>'], oneWay: true },
  { name: 'unsupported', wire: '0d', values: [undefined], oneWay: true },
  { name: 'switch to AMF3', wire: '11 04 05 0101', values: [5, true], oneWay: true },
  { name: 'reference', wire: '03 000009 07 0000', values: [new AmfObject(), new AmfObject()], oneWay: true },
];

describe('AMF0', () => {
  test.each(AMF0_TABLE)('reads $name', ({ wire, values }) => {
    expect(parseAmf0(hex(wire))).toEqual(values);
  });

  test.each(AMF0_TABLE.filter((row) => !row.oneWay))('writes $name', ({ wire, values }) => {
    expect(serializeAmf0(values).toString('hex')).toBe(hex(wire).toString('hex'));
  });

  test('writes a string above 64 KiB as a long string', () => {
    const text = 'x'.repeat(70_000);
    const wire = serializeAmf0([text]);
    expect(wire[0]).toBe(0x0c);
    expect(parseAmf0(wire)).toEqual([text]);
  });

  test('an object that refers to itself is read', () => {
    const [object] = parseAmf0(hex('03 0004 73656c66 07 0000 000009'));
    expect(object).toBeInstanceOf(AmfObject);
    expect((object as AmfObject).get('self')).toBe(object);
    expect(() => serializeAmf0([object])).toThrow(TypeError);
  });

  test('field names of objects are plain data, even __proto__', () => {
    const [object] = parseAmf0(hex('03 0009 5f5f70726f746f5f5f 0101 000009'));
    expect((object as AmfObject).get('__proto__')).toBe(true);
    expect(Object.hasOwn(Object.prototype, 'polluted')).toBe(false);
  });

  test.each([
    { name: 'an unknown marker', wire: 'ff', code: 'AMF_MARKER' },
    { name: 'a reference to nothing', wire: '07 0000', code: 'AMF_REFERENCE' },
    { name: 'a string of 4 GiB', wire: '0c ffffffff 61', code: 'AMF_TRUNCATED' },
    { name: 'an array of 4 G values', wire: '0a ffffffff 05', code: 'AMF_TRUNCATED' },
    { name: 'an object without end', wire: '03 0001 61 05', code: 'AMF_TRUNCATED' },
    { name: 'depth', wire: '0a00000001'.repeat(40), code: 'AMF_TOO_DEEP' },
    { name: 'masses of values', wire: '05'.repeat(10_000), code: 'AMF_TOO_MANY_VALUES' },
  ])('refuses $name', ({ wire, code }) => {
    expect(codeOf(() => parseAmf0(hex(wire)))).toBe(code);
  });

  test('a connect command ended at every byte is refused or is a prefix', () => {
    const wire = serializeAmf0(['connect', 1, AmfObject.of({ app: 'live', tcUrl: 'rtmp://h/live', caps: [1, 'x'], nested: ECMA })]);
    const whole = parseAmf0(wire);
    for (let end = 0; end < wire.length; end += 1) {
      let values: AmfValue[] | null = null;
      const code = codeOf(() => {
        values = parseAmf0(wire.subarray(0, end));
      });
      if (values === null) expect(code).toBe('AMF_TRUNCATED');
      else expect(values).toEqual(whole.slice(0, (values as AmfValue[]).length));
    }
  });
});

const AMF3_TABLE: { name: string; wire: string; value: AmfValue; oneWay?: boolean }[] = [
  { name: 'undefined', wire: '00', value: undefined },
  { name: 'null', wire: '01', value: null },
  { name: 'false', wire: '02', value: false },
  { name: 'true', wire: '03', value: true },
  { name: 'integer of one byte', wire: '04 7f', value: 127 },
  { name: 'integer of two bytes', wire: '04 8100', value: 128 },
  { name: 'integer of three bytes', wire: '04 818000', value: 16_384 },
  { name: 'integer of four bytes', wire: '04 80c08000', value: 2_097_152 },
  { name: 'largest integer', wire: '04 bfffffff', value: 268_435_455 },
  { name: 'negative integer', wire: '04 ffffffff', value: -1 },
  { name: 'double', wire: '05 3ff8000000000000', value: 1.5 },
  { name: 'string', wire: '06 07 616263', value: 'abc' },
  { name: 'date', wire: '08 01 408f400000000000', value: new Date(1000) },
  { name: 'dense array', wire: '09 05 01 0401 0402', value: [1, 2] },
  { name: 'associative array', wire: '09 01 03 61 0401 01', value: ECMA },
  {
    name: 'associative array with a dense part',
    wire: '09 03 03 61 0401 01 0402',
    value: new AmfObject(
      [
        ['a', 1],
        ['0', 2],
      ],
      'ecma-array',
    ),
    oneWay: true,
  },
  { name: 'anonymous object', wire: '0a 0b 01 03 61 0401 01', value: AmfObject.of({ a: 1 }) },
  {
    name: 'class with sealed fields',
    wire: '0a 23 03 54 03 61 03 62 0401 0402',
    value: new AmfObject(
      [
        ['a', 1],
        ['b', 2],
      ],
      'object',
      'T',
    ),
    oneWay: true,
  },
  { name: 'byte array', wire: '0c 05 aabb', value: Buffer.from('aabb', 'hex') },
  { name: 'XML', wire: '0b 09 3c612f3e', value: '<a/>', oneWay: true },
  { name: 'vector of int', wire: '0d 05 00 ffffffff 00000001', value: [-1, 1], oneWay: true },
  { name: 'vector of uint', wire: '0e 03 01 ffffffff', value: [4_294_967_295], oneWay: true },
  { name: 'vector of double', wire: '0f 03 00 3ff8000000000000', value: [1.5], oneWay: true },
  { name: 'vector of objects', wire: '10 03 00 01 03', value: [true], oneWay: true },
  { name: 'dictionary', wire: '11 03 00 06 03 61 03', value: new AmfObject([['a', true]], 'ecma-array'), oneWay: true },
  { name: 'string reference', wire: '09 05 01 06 03 61 06 00', value: ['a', 'a'], oneWay: true },
  { name: 'object reference', wire: '09 05 01 0a 0b 01 01 0a 02', value: [new AmfObject(), new AmfObject()], oneWay: true },
  {
    name: 'traits reference',
    wire: '09 05 01 0a 13 01 03 61 0401 0a 01 0402',
    value: [AmfObject.of({ a: 1 }), AmfObject.of({ a: 2 })],
    oneWay: true,
  },
];

describe('AMF3', () => {
  test.each(AMF3_TABLE)('reads $name', ({ wire, value }) => {
    const reader = new AmfReader(hex(wire));
    expect(parseAmf3(reader)).toEqual(value);
    expect(reader.atEnd).toBe(true);
  });

  test.each(AMF3_TABLE.filter((row) => !row.oneWay))('writes $name', ({ wire, value }) => {
    expect(serializeAmf3(value).toString('hex')).toBe(hex(wire).toString('hex'));
  });

  test.each([
    { name: 'an unknown marker', wire: '12', code: 'AMF_MARKER' },
    { name: 'an externalizable class', wire: '0a 07 03 54', code: 'AMF_EXTERNALIZABLE' },
    { name: 'a reference to no object', wire: '0a 02', code: 'AMF_REFERENCE' },
    { name: 'a reference to no string', wire: '06 02', code: 'AMF_REFERENCE' },
    { name: 'a reference to no traits', wire: '0a 05', code: 'AMF_REFERENCE' },
    { name: 'a huge array', wire: '09 ffffffff 01', code: 'AMF_TRUNCATED' },
    { name: 'depth', wire: '090301'.repeat(40), code: 'AMF_TOO_DEEP' },
  ])('refuses $name', ({ wire, code }) => {
    expect(codeOf(() => parseAmf3(new AmfReader(hex(wire))))).toBe(code);
  });

  test('refuses to write an empty field name', () => {
    expect(() => serializeAmf3(AmfObject.of({ '': 1 }))).toThrow(TypeError);
  });
});

const { value: anyValue } = fc.letrec<{ value: AmfValue }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.double({ noNaN: true }),
    fc.integer(),
    fc.boolean(),
    fc.string({ unit: 'grapheme', maxLength: 40 }),
    fc.constantFrom(null, undefined),
    fc.date({ noInvalidDate: true }),
    fc.array(tie('value'), { maxLength: 4 }),
    fc
      .tuple(
        fc.array(fc.tuple(fc.string({ minLength: 1, maxLength: 8 }), tie('value')), { maxLength: 4 }),
        fc.constantFrom('object' as const, 'ecma-array' as const),
      )
      // AMF3 writes an empty associative array like an empty dense one.
      .map(([fields, kind]) => new AmfObject(fields, fields.length === 0 ? 'object' : kind)),
  ),
}));

describe('properties', () => {
  test('AMF0 values survive the round trip', () => {
    fc.assert(
      fc.property(fc.array(anyValue, { maxLength: 5 }), (values) => {
        expect(parseAmf0(serializeAmf0(values))).toEqual(values);
      }),
    );
  });

  test('AMF3 values survive the round trip', () => {
    fc.assert(
      fc.property(anyValue, (value) => {
        expect(parseAmf3(new AmfReader(serializeAmf3(value)))).toEqual(value);
      }),
    );
  });

  test('random bytes give values or a ProtocolError', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), fc.constantFrom('', '11', '03000161', '1109'), (bytes, prefix) => {
        try {
          parseAmf0(Buffer.concat([hex(prefix), bytes]));
        } catch (error) {
          expect(error).toBeInstanceOf(ProtocolError);
        }
      }),
      { numRuns: 1000 },
    );
  });
});
