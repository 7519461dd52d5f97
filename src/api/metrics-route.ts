import { Type } from '../util/typebox.ts';
import type { Route } from './route.ts';

/** `GET /metrics`, with the same checks of host and token as every other route. */
export const metricsRoute: Route = {
  method: 'GET',
  path: '/metrics',
  level: 'server',
  summary:
    'Newcomers that wait or were refused, SRT connections, refusals of access control and control servers, for Prometheus, in its text format, without an envelope',
  plain: { 200: Type.String() },
  type: 'text/plain',
  handle: ({ control }) => ({
    status: 200,
    body: Buffer.from(control.metrics()).toString('latin1'),
    type: 'text/plain; version=0.0.4; charset=utf-8',
  }),
};
