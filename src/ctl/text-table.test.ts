import { expect, test } from 'vitest';
import { bitrateText, bytesText, textTable, textTree, widthOf } from './text-table.ts';

test('columns are aligned, numbers to the right, and no line ends in blanks', () => {
  const rows = [
    { name: 'live', viewers: 7 },
    { name: 'größe', viewers: 1234 },
    { name: '日本', viewers: 0 },
    { name: 'e\u0301', viewers: 1 },
  ];
  const columns = [
    { title: 'STREAM', of: ({ name }: (typeof rows)[0]) => name },
    { title: 'VIEWERS', of: ({ viewers }: (typeof rows)[0]) => viewers, right: true },
    { title: 'NOTE', of: () => '' },
  ];
  expect(textTable(columns, rows).split('\n')).toEqual([
    'STREAM  VIEWERS  NOTE',
    'live          7',
    'größe      1234',
    '日本          0',
    'e\u0301             1',
    '',
  ]);
});

test('control characters and line breaks are escaped', () => {
  const columns = [{ title: 'STREAM', of: (text: string) => text }];
  expect(textTable(columns, ['a\u001b[2Jb\nc\u202ed'])).toBe('STREAM\na\\u001b[2Jb\\u000ac\\u202ed\n');
  expect(textTree({ 'a\u001b': 'b\r' })).toBe('a\\u001b  b\\u000d\n');
});

test('a tree is a line for each leaf', () => {
  const tree = { name: 'app', publishers: { llhls: { segmentDuration: 2 }, push: {} }, names: ['a', 'b'], none: null };
  expect(textTree(tree).split('\n')).toEqual([
    'name                              app',
    'publishers.llhls.segmentDuration  2',
    'publishers.push                   {}',
    'names.0                           a',
    'names.1                           b',
    'none                              null',
    '',
  ]);
  expect(textTree({})).toBe('  {}\n');
});

test.each([
  ['live', 4],
  ['größe', 5],
  ['日本語', 6],
  ['한국', 4],
  ['e\u0301', 1],
  ['😀', 2],
  ['a\u200bb', 2],
])('%s is %i columns wide', (text, width) => {
  expect(widthOf(text)).toBe(width);
});

test.each([
  [0, '0 B', '0 bit/s'],
  [999, '999 B', '999 bit/s'],
  [1000, '1.0 kB', '1.0 kbit/s'],
  [99_949, '99.9 kB', '99.9 kbit/s'],
  [99_960, '100 kB', '100 kbit/s'],
  [999_600, '1.0 MB', '1.0 Mbit/s'],
  [2_500_000, '2.5 MB', '2.5 Mbit/s'],
  [7_100_000_000_000_000, '7100 TB', '7100000 Gbit/s'],
])('%i is %s or %s', (value, bytes, bits) => {
  expect([bytesText(value), bitrateText(value)]).toEqual([bytes, bits]);
});
