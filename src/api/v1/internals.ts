import { queueStatus } from '../../monitoring/queues.ts';
import { Type } from '../../util/typebox.ts';
import { ok } from '../envelope.ts';
import { okList } from '../long-answers.ts';
import type { Route } from '../route.ts';
import { QueueStatusSchema } from '../schemas.ts';

const ROOT = '/v1/stats/current/internals';
const QUEUES = `${ROOT}/queues`;

/** Aliases of the internals for clients of version 1. */
export const internalsV1Routes: readonly Route[] = [
  {
    method: 'GET',
    path: ROOT,
    level: 'server',
    summary: 'Paths of the internals',
    response: Type.Array(Type.String()),
    handle: () => ok([QUEUES]),
  },
  {
    method: 'GET',
    path: QUEUES,
    level: 'server',
    summary: 'State of all internal queues',
    response: Type.Array(QueueStatusSchema),
    handle: ({ control }) => okList(control.queues, (queue) => queueStatus(queue.status())),
  },
];
