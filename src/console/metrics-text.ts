/** Reads the text format of Prometheus (version 0.0.4), the subset that `/metrics` uses. */

/** One line of a metric. */
export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** Far more lines than our server has; the rest is ignored. */
const MAX_LINES = 50_000;
const LINE = /^([A-Za-z_:][\w:]*)(?:\{(.*)\})? (\S+)(?: \d+)?$/;
const LABEL = /([A-Za-z_]\w*)="((?:[^"\\]|\\.)*)"/g;

/** Skips lines that are not samples. */
export function readMetrics(text: string): Sample[] {
  const samples: Sample[] = [];
  for (const line of text.split('\n', MAX_LINES)) {
    const match = LINE.exec(line);
    if (match === null) continue;
    const [, name = '', labels = '', text = ''] = match;
    const value = Number(text.replace(/^\+?Inf$/, 'Infinity'));
    if (Number.isNaN(value)) continue;
    samples.push({
      name,
      labels: Object.fromEntries(Array.from(labels.matchAll(LABEL), ([, key = '', quoted = '']) => [key, unescaped(quoted)])),
      value,
    });
  }
  return samples;
}

/** The sum of all lines of a name; null without any. */
export function sumOf(samples: readonly Sample[], name: string): number | null {
  const found = samples.filter((sample) => sample.name === name);
  return found.length === 0 ? null : found.reduce((sum, { value }) => sum + value, 0);
}

/** A histogram: the count up to each bound, by ascending bounds. Empty: no such histogram. */
export type Buckets = readonly (readonly [bound: number, count: number])[];

/** The buckets of a histogram without other labels. */
export function bucketsOf(samples: readonly Sample[], name: string): Buckets {
  return samples
    .filter((sample) => sample.name === `${name}_bucket`)
    .map(({ labels, value }) => [Number((labels['le'] ?? '').replace(/^\+?Inf$/, 'Infinity')), value] as const)
    .sort(([a], [b]) => a - b);
}

/**
 * The quantile of the observations since `before`, interpolated linearly between bounds; null without observations or without the
 * histogram.
 */
export function quantileSince(now: Buckets, before: Buckets | null, part: number): number | null {
  if (before === null || before.length !== now.length) return null;
  const fresh = now.map(([bound, count], n) => [bound, count - (before[n]?.[1] ?? 0)] as const);
  const total = fresh.at(-1)?.[1] ?? 0;
  if (total <= 0) return null;
  let below = 0;
  let lower = 0;
  for (const [bound, count] of fresh) {
    if (count >= total * part)
      return Number.isFinite(bound) ? lower + ((bound - lower) * (total * part - below)) / Math.max(count - below, 1) : lower;
    [lower, below] = [bound, count];
  }
  return lower;
}

function unescaped(text: string): string {
  return text.replace(/\\(.)/g, (_escape, character: string) => (character === 'n' ? '\n' : character));
}
