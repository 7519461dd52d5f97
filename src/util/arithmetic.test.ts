import { expect, it } from 'vitest';
import { ArithmeticError, calculate } from './arithmetic.ts';

const NAMES = { MAIN_W: 1280, MAIN_H: 720 };

it.each([
  ['10', 10],
  [' 2.5 ', 2.5],
  ['MAIN_W', 1280],
  ['main_w - 20', 1260],
  ['(MAIN_W-64)/2', 608],
  ['2+3*4', 14],
  ['10-4-3', 3],
  ['100/5/2', 10],
  ['-(1+-2)*+3', 3],
])('%j is %d', (text, value) => {
  expect(calculate(text, NAMES)).toBe(value);
});

it.each([
  ['', 'ends too early'],
  ['1+', 'ends too early'],
  ['(1', 'not closed'],
  ['1)', 'where it should end'],
  ['1 2', 'where it should end'],
  ['WIDTH', 'knows MAIN_W, MAIN_H'],
  ['constructor', 'knows MAIN_W'],
  ['1/(2-2)', 'divides by zero'],
  ['10;drop', 'something strange at ";drop"'],
  ['1'.repeat(201), 'longer than 200'],
  ['('.repeat(200), 'ends too early'],
])('%j is refused', (text, reason) => {
  expect(() => calculate(text, NAMES)).toThrow(ArithmeticError);
  expect(() => calculate(text, NAMES)).toThrow(reason);
});
