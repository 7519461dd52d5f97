/** The credential that is good for `/metrics` only. */
import type { ServerConfig } from '../config/index.ts';
import type { AccessToken } from './auth.ts';
import { metricsRoute } from './metrics-route.ts';

/** That of `Managers/Metrics`; none where it has none. */
export function metricsTokens({ managers }: ServerConfig): AccessToken[] {
  const { accessToken: value } = managers.metrics;
  return value === '' ? [] : [{ name: 'Managers/Metrics', value, mayWrite: false, path: metricsRoute.path }];
}
