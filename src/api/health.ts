/** Whether the server can be used, for load balancers and containers. */
import type { Conditions } from '../util/conditions.ts';
import { Type } from '../util/typebox.ts';
import type { Answer } from './envelope.ts';
import { writeJson } from './json/json-writer.ts';
import type { Route } from './route.ts';

/** Reasons that an answer names at most. */
const MAX_REASONS = 20;

/** How far the server is. */
export type Phase = 'starting' | 'running' | 'stopping';

/** What `/health` tells. One for the whole server; its owner turns the phase. */
export class Health {
  readonly conditions: Conditions;
  phase: Phase = 'starting';

  constructor(conditions: Conditions) {
    this.conditions = conditions;
  }

  /** 503 as long as the server starts or stops; 200 otherwise, also when something is wrong: it serves what it can. */
  answer(): Answer {
    if (this.phase !== 'running') return { status: 503, body: writeJson({ status: this.phase }) };
    const { reasons } = this.conditions;
    if (reasons.length === 0) return { status: 200, body: '{"status":"ok"}' };
    return { status: 200, body: writeJson({ status: 'degraded', reasons: reasons.slice(0, MAX_REASONS) }) };
  }
}

/** The answer to `GET /health`. */
export const HealthSchema = Type.Object(
  {
    status: Type.Union([Type.Literal('ok'), Type.Literal('degraded'), Type.Literal('starting'), Type.Literal('stopping')]),
    reasons: Type.Optional(Type.Array(Type.String({ description: 'What is wrong, when the status is degraded' }))),
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
