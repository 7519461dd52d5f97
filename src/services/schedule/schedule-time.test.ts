import { expect, test } from 'vitest';
import { parseScheduled } from './schedule-time.ts';

const iso = (text: string): string => new Date(parseScheduled(text)).toISOString();

test.each([
  ['2026-11-21T09:43:10.000+00:00', '2026-11-21T09:43:10.000Z'],
  ['2026-11-21T09:43:10Z', '2026-11-21T09:43:10.000Z'],
  ['2026-11-21T09:43Z', '2026-11-21T09:43:00.000Z'],
  ['2022-03-14T15:10:0.0+09:00', '2022-03-14T06:10:00.000Z'],
  ['2022-03-14T15:10:00+0900', '2022-03-14T06:10:00.000Z'],
  ['2022-03-14T15:10:00+09', '2022-03-14T06:10:00.000Z'],
  ['2022-03-14T15:10:00-03:30', '2022-03-14T18:40:00.000Z'],
  ['2022-12-31T23:30:00-01:00', '2023-01-01T00:30:00.000Z'],
  ['2024-02-29T00:00:00.123456Z', '2024-02-29T00:00:00.123Z'],
  ['2024-02-29T00:00:00,5Z', '2024-02-29T00:00:00.500Z'],
  [' 2024-02-29t00:00:00z ', '2024-02-29T00:00:00.000Z'],
])('%s is %s', (text, expected) => expect(iso(text)).toBe(expected));

test.each([
  ...['', 'not a time', '2026-11-21', '2026-11-21T09:43:10', '2026-11-21 09:43:10Z', '1700000000', '2026-11-21T09Z'],
  ...['2026-02-29T00:00:00Z', '2026-13-01T00:00:00Z', '2026-00-01T00:00:00Z', '2026-01-01T24:00:00Z', '2026-01-01T00:60:00Z'],
  ...['2026-01-01T00:00:60Z', '2026-01-01T00:00:00+24:00', '2026-01-01T00:00:00+00:60', '2026-01-01T00:00:00+1'],
  ...['2026-01-01T00:00:00[Europe/Nowhere]', '2026-01-01T00:00:00[+01:00]', '2026-01-01T00:00:00[]', '2026-01-01T00:00:00Z[Europe/Berlin]'],
])('%j is refused as a time', (text) => expect(parseScheduled(text)).toBeNaN());

test.each([
  ['winter', '2026-01-15T12:00:00[Europe/Berlin]', '2026-01-15T11:00:00.000Z'],
  ['summer', '2026-07-15T12:00:00[Europe/Berlin]', '2026-07-15T10:00:00.000Z'],
  ['the last moment before the gap', '2026-03-29T01:59:59.999[Europe/Berlin]', '2026-03-29T00:59:59.999Z'],
  ['in the gap: as much later', '2026-03-29T02:30:00[Europe/Berlin]', '2026-03-29T01:30:00.000Z'],
  ['the first moment behind the gap', '2026-03-29T03:00:00[Europe/Berlin]', '2026-03-29T01:00:00.000Z'],
  ['shown twice: the first', '2026-10-25T02:30:00[Europe/Berlin]', '2026-10-25T00:30:00.000Z'],
  ['the first moment that is shown once again', '2026-10-25T03:00:00[Europe/Berlin]', '2026-10-25T02:00:00.000Z'],
  ['a gap in America', '2026-03-08T02:15:00[America/New_York]', '2026-03-08T07:15:00.000Z'],
  ['twice in America', '2026-11-01T01:15:00[America/New_York]', '2026-11-01T05:15:00.000Z'],
  ['half an hour', '2026-10-04T02:10:00[Australia/Lord_Howe]', '2026-10-03T15:40:00.000Z'],
  ['a zone without changes', '2026-07-15T12:00:00[Asia/Kolkata]', '2026-07-15T06:30:00.000Z'],
  ['UTC', '2026-07-15T12:00:00[UTC]', '2026-07-15T12:00:00.000Z'],
])('local times of a time zone: %s', (_what, text, expected) => expect(iso(text)).toBe(expected));

test('times are parsed in every time zone', () => {
  const zones = Intl.supportedValuesOf('timeZone');
  const moments = zones.map((zone) => parseScheduled(`2026-06-01T12:00:00[${zone}]`));
  expect(zones.length).toBeGreaterThan(300);
  // Every one of them shows that time within the 26 hours that zones are apart.
  expect(moments.every((moment) => Math.abs(moment - Date.UTC(2026, 5, 1, 12)) <= 14 * 3_600_000)).toBe(true);
});
