import { Type } from '../util/typebox.ts';
import type { Route } from './route.ts';

/** The answer to `GET /health`. */
export const HealthSchema = Type.Object(
  {
    status: Type.Union([
      Type.Literal('ok'),
      Type.Literal('degraded'),
      Type.Literal('draining'),
      Type.Literal('starting'),
      Type.Literal('stopping'),
    ]),
    reasons: Type.Optional(Type.Array(Type.String({ description: 'Problems, if the status is degraded or draining' }))),
  },
  { additionalProperties: false },
);

/** Needs no authentication. */
export const healthRoute: Route = {
  method: 'GET',
  path: '/health',
  level: 'server',
  summary: 'Whether the server can be used; without authentication and without an envelope',
  open: true,
  plain: { 200: HealthSchema, 503: HealthSchema },
  handle: ({ server }) => server.health.answer(),
};
