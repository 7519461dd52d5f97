import { expect, test } from 'vitest';
import { fragmentsOf, headProblemsOf, problemsOf } from '../../scripts/check-docblocks.ts';

const HEAD = '/** The work of the room. */\n';
const SAID = '/** Said. */\n';

test.each<[what: string, text: string, problems: string[]]>([
  ['an export without a docblock', `${SAID}export const a = 1;\nexport async function b() {}\n`, ['x.ts:3: b']],
  ['the only export of a file with a head comment', `${HEAD}import path from 'node:path';\nexport class Work {}\n`, []],
  ['the only export of a file without one', 'export class Work {}\n', ['x.ts:1: Work']],
  ['the second export of a file with a head comment', `${HEAD}\n${SAID}export class A {}\nexport class B {}\n`, ['x.ts:5: B']],
  ['names taken from an object', `${SAID}export const a = 1;\nexport const { b, c } = a;\n`, ['x.ts:3: { b, c }']],
  ['names taken from an object, with a docblock', `${SAID}export const a = 1;\n${SAID}export const { b, c } = a;\n`, []],
  [
    'a type of the name of its table',
    `${SAID}export const Kind = {};\nexport type Kind = string;\nconst other = 1;\n${SAID}export const b = 1;\n`,
    [],
  ],
  ['names of another file', "export type { A } from './a.ts';\nexport { b } from './b.ts';\n", []],
  ['overloads', `${SAID}export const a = 1;\n${SAID}export function of(a: 1): 1;\nexport function of(a: 2): 2;\n`, []],
])('the check of docblocks finds: %s', (_what, text, problems) => {
  expect(problemsOf('x.ts', text)).toEqual(problems);
});

test.each<[what: string, text: string, fragments: string[]]>([
  ['a docblock that needs the line below', 'const a = 1;\n  /** Of the last run. */\n', ['x.ts:2: Of the last run. */']],
  ['a subject in front of its noun', '/** What came. */\n', ['x.ts:1: What came. */']],
  ['a docblock of several lines', '/**\n * Of a server.\n */\n', ['x.ts:1: Of a server.']],
  ['a docblock in a text', "const text = '/** Of a server. */';\n", []],
  ['docblocks that begin with their nouns', '/** Offsets of what came. */\n/** Whatever. */\n// Of a server.\n', []],
])('the check of docblocks finds: %s', (_what, text, fragments) => {
  expect(fragmentsOf('x.ts', text)).toEqual(fragments);
});

const SERVICE = 'services/x/x-service.ts';
const headOf = (...lines: string[]): string => `/**\n${lines.map((line) => ` * ${line}\n`).join('')} */\nexport const a = 1;\n`;
const FULL = ['X as a service.', 'Threads: one.', 'Limits: none.', 'Specifications: none.'];

test.each<[what: string, text: string, problems: string[]]>([
  ['a whole head', headOf(...FULL), []],
  ['a head without limits', headOf(...FULL.filter((line) => !line.startsWith('Limits'))), [`${SERVICE}: the head has no line 'Limits: '`]],
  [
    'the words in a later comment',
    `/** X. */\n${headOf(...FULL)}`,
    ['Threads', 'Limits', 'Specifications'].map((word) => `${SERVICE}: the head has no line '${word}: '`),
  ],
  ['a head of 40 lines', headOf(...FULL, ...Array<string>(34).fill('More.')), []],
  ['a head of 41 lines', headOf(...FULL, ...Array<string>(35).fill('More.')), [`${SERVICE}: the head has 41 lines, at most 40 are read`]],
])('the check of heads of services finds: %s', (_what, text, problems) => {
  expect(headProblemsOf(SERVICE, text)).toEqual(problems);
  expect(headProblemsOf('services/x/x-publisher.ts', text)).toEqual([]);
});
