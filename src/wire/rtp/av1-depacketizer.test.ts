import fc from 'fast-check';
import { expect, test } from 'vitest';
import { survivesHostileBytes } from '../../../test/support/hostile-bytes.ts';
import { ObuCursor } from '../../codecs/av1/obu.ts';
import { Av1Depacketizer } from './av1-depacketizer.ts';
import type { DepacketizedUnit } from './depacketizer.ts';

function packet(payload: Uint8Array, timestamp = 1, marker = false) {
  return { marker, payloadType: 45, sequence: 0, timestamp, ssrc: 1, payload };
}

/** OBUs of a temporal unit as types and contents. */
function unitsOf(data: Uint8Array): [number, string][] {
  const cursor = new ObuCursor(data);
  const units: [number, string][] = [];
  while (cursor.next()) units.push([cursor.type, Buffer.from(data.subarray(cursor.payload, cursor.end)).toString('hex')]);
  return units;
}

function run(
  packets: readonly { readonly payload: string; readonly timestamp?: number; readonly marker?: boolean; readonly lost?: boolean }[],
) {
  const depacketizer = new Av1Depacketizer();
  const out: DepacketizedUnit[] = [];
  for (const { payload, timestamp, marker, lost = false } of packets) {
    depacketizer.push(packet(Buffer.from(payload.replaceAll(' ', ''), 'hex'), timestamp, marker), lost, (unit) => out.push(unit));
  }
  return { out, damaged: depacketizer.damaged };
}

test.each([
  [
    'two elements, the last without length',
    [{ payload: '20 03 08aabb 30cc', marker: true }],
    [
      [1, 'aabb'],
      [6, 'cc'],
    ],
  ],
  [
    'lengths throughout',
    [{ payload: '00 03 08aabb 02 30cc', marker: true }],
    [
      [1, 'aabb'],
      [6, 'cc'],
    ],
  ],
  ['an OBU that tells its size', [{ payload: '10 3201cc', marker: true }], [[6, 'cc']]],
  ['an extension byte', [{ payload: '10 3420cc', marker: true }], [[6, 'cc']]],
  ['temporal delimiters are left out', [{ payload: '20 01 10 30cc', marker: true }], [[6, 'cc']]],
  ['an OBU over three packets', [{ payload: '50 30aa' }, { payload: 'd0 bbcc' }, { payload: '90 dd', marker: true }], [[6, 'aabbccdd']]],
  [
    'an OBU behind the end of another',
    [{ payload: '50 30aa' }, { payload: 'a0 01 bb 30cc', marker: true }],
    [
      [6, 'aabb'],
      [6, 'cc'],
    ],
  ],
])('%s', (_name, packets, expected) => {
  const { out, damaged } = run(packets);
  expect(out.map(({ data }) => unitsOf(data))).toEqual([expected]);
  expect(damaged).toBe(0);
});

test('a temporal unit without marker ends with the next timestamp', () => {
  const { out } = run([
    { payload: '10 30aa', timestamp: 1 },
    { payload: '10 30bb', timestamp: 2, marker: true },
  ]);
  expect(out.map(({ timestamp }) => timestamp)).toEqual([1, 2]);
});

test.each([
  ['in its middle', [{ payload: '50 30aa' }, { payload: '90 dd', marker: true, lost: true }], 0],
  ['at its beginning', [{ payload: '90 dd', marker: true, lost: true }], 0],
  ['before it', [{ payload: '10 30aa', marker: true, lost: true }], 1],
  ['at its end', [{ payload: '50 30aa' }, { payload: '10 30bb', timestamp: 2, marker: true, lost: true }], 1],
])('a loss %s', (_name, packets, whole) => {
  expect(run([...packets]).out).toHaveLength(whole);
});

test('OBUs are restored from arbitrary fragments', () => {
  fc.assert(
    fc.property(
      fc.array(fc.uint8Array({ minLength: 1, maxLength: 300 }), { minLength: 1, maxLength: 4 }),
      fc.integer({ min: 1, max: 200 }),
      (contents, budget) => {
        const depacketizer = new Av1Depacketizer();
        const out: DepacketizedUnit[] = [];
        const obus = contents.map((content) => Buffer.concat([Buffer.of(0x30), content]));
        const pieces = obus.flatMap((obu) =>
          Array.from({ length: Math.ceil(obu.length / budget) }, (_, n) => ({
            bytes: obu.subarray(n * budget, (n + 1) * budget),
            first: n === 0,
            last: (n + 1) * budget >= obu.length,
          })),
        );
        pieces.forEach(({ bytes, first, last }, n) => {
          const head = 0x10 | (first ? 0 : 0x80) | (last ? 0 : 0x40);
          depacketizer.push(packet(Buffer.concat([Buffer.of(head), bytes]), 7, n + 1 === pieces.length), false, (unit) => out.push(unit));
        });
        expect(out.map(({ data }) => unitsOf(data))).toEqual([contents.map((content) => [6, Buffer.from(content).toString('hex')])]);
      },
    ),
  );
});

test('a temporal unit in more elements than are kept is refused', () => {
  const depacketizer = new Av1Depacketizer();
  const push = (): void => depacketizer.push(packet(Buffer.of(0x00, 1, 0x30)), false, () => undefined);
  for (let n = 0; n < 16_384; n += 1) push();
  expect(push).toThrow('16384 elements');
});

test('hostile payloads are refused, never worse', () => {
  const depacketizer = new Av1Depacketizer();
  survivesHostileBytes(
    (data) => depacketizer.push(packet(data, data.length, true), false, ({ data: unit }) => unitsOf(unit)),
    [Buffer.from('2003 08aabb 30cc'.replaceAll(' ', ''), 'hex'), Buffer.from('a001bb30cc', 'hex')],
  );
});
