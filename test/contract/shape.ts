/** Compares the structure of two JSON answers: members and types, and messages word for word. */

/** The first place where the structure of `actual` differs from that of `expected`, or null. */
export function shapeDifference(expected: unknown, actual: unknown, path = '$'): string | null {
  if (typeOf(expected) !== typeOf(actual)) return `${path} is ${typeOf(actual)}, not ${typeOf(expected)}`;
  if (Array.isArray(expected) && Array.isArray(actual)) return arrayDifference(expected, actual, path);
  if (isObject(expected) && isObject(actual)) return objectDifference(expected, actual, path);
  if (path.endsWith('.message') && expected !== actual) return `${path} is ${JSON.stringify(actual)}, not ${JSON.stringify(expected)}`;
  return null;
}

/** Compares items pairwise. Lists may differ in length, except the items of a batch. */
function arrayDifference(expected: readonly unknown[], actual: readonly unknown[], path: string): string | null {
  if (path === '$' && expected.length !== actual.length) return `${path} has ${actual.length} items, not ${expected.length}`;
  for (let index = 0; index < Math.min(expected.length, actual.length); index += 1) {
    const difference = shapeDifference(expected[index], actual[index], `${path}[${index}]`);
    if (difference !== null) return difference;
  }
  return null;
}

function objectDifference(
  expected: Readonly<Record<string, unknown>>,
  actual: Readonly<Record<string, unknown>>,
  path: string,
): string | null {
  for (const key of Object.keys(actual)) if (!(key in expected)) return `${path}.${key} is more`;
  for (const [key, value] of Object.entries(expected)) {
    if (!(key in actual)) return `${path}.${key} is missing`;
    const difference = shapeDifference(value, actual[key], `${path}.${key}`);
    if (difference !== null) return difference;
  }
  return null;
}

function typeOf(value: unknown): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'array' : typeof value;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
