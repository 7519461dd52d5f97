import { expect, test } from 'vitest';
import { AutoRendition, type RenditionRate } from './auto-rendition.ts';

const LOW = { name: 'low', bitrate: 500_000 };
const MIDDLE = { name: 'middle', bitrate: 1_000_000 };
const HIGH = { name: 'high', bitrate: 3_000_000 };
const ALL: readonly RenditionRate[] = [HIGH, LOW, MIDDLE];

test('goes down a step when the estimate is below the bitrate of the rendition', () => {
  const auto = new AutoRendition();
  expect(auto.evaluate(0, 4_000_000, HIGH, ALL)).toBeNull();
  expect(auto.evaluate(1000, 2_700_000, HIGH, ALL)).toBe(MIDDLE);
  expect(auto.evaluate(2000, 300_000, LOW, ALL)).toBeNull();
});

test('stays while the estimate rises, or between evaluations', () => {
  const auto = new AutoRendition();
  expect(auto.evaluate(0, 100_000, HIGH, ALL)).toBeNull();
  expect(auto.evaluate(500, 50_000, HIGH, ALL)).toBeNull();
  expect(auto.evaluate(1000, 120_000, HIGH, ALL)).toBeNull();
  expect(auto.evaluate(2000, 110_000, HIGH, ALL)).toBe(MIDDLE);
});

test('goes up when the estimate allows it, and not down right after', () => {
  const auto = new AutoRendition();
  auto.selected('low', 0);
  expect(auto.evaluate(0, 600_000, LOW, ALL)).toBeNull();
  expect(auto.evaluate(1000, 2_000_000, LOW, ALL)).toBe(MIDDLE);
  auto.selected('middle', 1000);
  expect(auto.evaluate(2000, 200_000, MIDDLE, ALL)).toBeNull();
  expect(auto.evaluate(11_500, 190_000, MIDDLE, ALL)).toBe(LOW);
});

test('a short connection is retried later each time', () => {
  const auto = new AutoRendition();
  auto.selected('middle', 0);
  auto.selected('middle', 5000);
  expect(auto.evaluate(20_000, 9_000_000, LOW, ALL)).toBeNull();
  expect(auto.evaluate(25_000, 9_000_000, LOW, ALL)).toBe(MIDDLE);
});
