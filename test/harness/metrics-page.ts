/** Figures of `/metrics`, read as Prometheus reads them. */
import type { TestServer } from './server.ts';

/** The text of `/metrics`, requested with the token of the API. */
export async function metricsPage({ api }: TestServer): Promise<string> {
  return await (await fetch(`${api.base}/metrics`, { headers: { authorization: api.authorization } })).text();
}

/** Sum of a metric over all lines with these labels; null if there is none. */
export function figure(text: string, name: string, ...labels: readonly string[]): number | null {
  const lines = [...text.matchAll(/^(\w+)(?:\{(.*)\})? (\S+)$/gm)];
  const own = lines.filter(([, found, told = '']) => found === name && labels.every((label) => told.includes(label)));
  return own.length === 0 ? null : own.reduce((sum, [, , , value]) => sum + Number(value), 0);
}
