import { expect, test } from 'vitest';
import { repeated } from '../../scripts/check-names.ts';

function problems(files: Readonly<Record<string, string>>, ...saidAgain: string[]): string[] {
  return repeated(new Map(Object.entries(files)), new Set(saidAgain));
}

test('one name for two exports is a problem, for all kinds of exports', () => {
  expect(
    problems({ 'core/a.ts': 'export class Work {}', 'api/b.ts': 'export type Work = string;', 'api/c.ts': 'export const Other = 1;' }),
  ).toEqual(["'Work' is exported by core/a.ts and api/b.ts: one of them needs another name"]);
  expect(problems({ 'core/a.ts': 'export async function* read() {}', 'api/b.ts': 'export function read() {}' })).toHaveLength(1);
});

test('a type and a value of one file, overloads, private names and re-exports are accepted', () => {
  expect(
    problems({
      'core/a.ts': 'export const Kind = {};\nexport type Kind = string;\nexport function of(a: 1): 1;\nexport function of(a: 2): 2;',
      'core/b.ts': 'class Kind {}\nfunction of() {}',
      'core/index.ts': "export { Kind, of } from './a.ts';",
    }),
  ).toEqual([]);
});

test('the console may repeat a listed name, and another room may not', () => {
  const server = { 'core/a.ts': 'export interface Track {}' };
  expect(problems({ ...server, 'console/b.ts': 'export interface Track {}' }, 'Track')).toEqual([]);
  expect(problems({ ...server, 'console/b.ts': 'export interface Track {}' })).toHaveLength(1);
  expect(problems({ ...server, 'api/b.ts': 'export interface Track {}' }, 'Track')).toHaveLength(1);
});

test('a listed name without a repetition is a problem', () => {
  expect(problems({ 'core/a.ts': 'export interface Track {}' }, 'Track')).toHaveLength(1);
});
