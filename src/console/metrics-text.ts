/** Reads the text format of Prometheus (version 0.0.4), as far as `/metrics` uses it. */

/** One line. */
export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** More lines than a server of ours has; what is behind them is not read. */
const MAX_LINES = 50_000;
const LINE = /^([A-Za-z_:][\w:]*)(?:\{(.*)\})? (\S+)(?: \d+)?$/;
const LABEL = /([A-Za-z_]\w*)="((?:[^"\\]|\\.)*)"/g;

/** Lines that are no samples are passed over. */
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

function unescaped(text: string): string {
  return text.replace(/\\(.)/g, (_escape, character: string) => (character === 'n' ? '\n' : character));
}
