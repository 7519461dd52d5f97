import type { ServerConfig } from '../config/index.ts';
import { METRICS_TYPES, type MetricsFormat } from '../util/metrics.ts';
import { Type } from '../util/typebox.ts';
import type { AccessToken } from './auth.ts';
import type { Route } from './route.ts';

const OPENMETRICS = /^application\/openmetrics-text\b/i;

/** `GET /metrics`, with the same checks of host and token as every other route; the token of `Managers/Metrics` is valid only here. */
export const metricsRoute: Route = {
  method: 'GET',
  path: '/metrics',
  level: 'server',
  summary:
    'Figures of the server, its applications and its streams for Prometheus, in its text format or as OpenMetrics, without an envelope',
  plain: { 200: Type.String() },
  type: 'text/plain',
  handle: async ({ control, header }) => {
    const format = formatFor(header('accept') ?? '');
    const text = await control.metrics.text(format);
    return { status: 200, body: Buffer.from(text).toString('latin1'), type: METRICS_TYPES[format] };
  },
};

/** OpenMetrics for clients that prefer it, or accept it as gladly as plain text. */
function formatFor(accept: string): MetricsFormat {
  const wishes = accept.split(',').map((wish) => ({ wish: wish.trim(), weight: Number(/;\s*q=([\d.]+)/i.exec(wish)?.[1] ?? 1) }));
  const open = wishes.find(({ wish }) => OPENMETRICS.test(wish))?.weight ?? 0;
  const plain = Math.max(0, ...wishes.filter(({ wish }) => /^(text\/plain|text\/\*)/i.test(wish)).map(({ weight }) => weight));
  return open > 0 && open >= plain ? 'openmetrics' : 'prometheus';
}

/** The credential for `/metrics` only, from `Managers/Metrics`; none if it is absent. */
export function metricsTokens({ managers }: ServerConfig): AccessToken[] {
  const { accessToken: value } = managers.metrics;
  return value === '' ? [] : [{ name: 'Managers/Metrics', value, mayWrite: false, path: metricsRoute.path }];
}
