/** Figures in the form for control servers. */
import { Real } from '../monitoring/real.ts';

/** Answers of the API have bit rates as texts, and reals with a fraction; here both become numbers. */
export function asNumbers(value: unknown, key = ''): unknown {
  if (value instanceof Real) return Number.isFinite(value.value) ? value.value : 0;
  if (Array.isArray(value)) return value.map((item) => asNumbers(item));
  if (typeof value === 'object' && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, asNumbers(member, name)]));
  }
  return key.startsWith('bitrate') ? Number(value) : value;
}
