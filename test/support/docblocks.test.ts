import { expect, test } from 'vitest';
import { problemsOf } from '../../scripts/check-docblocks.ts';

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
