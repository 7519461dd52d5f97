import type { Session } from '../../core/session-registry.ts';
import { sessionStatistics } from '../../monitoring/session-stats.ts';
import { Type } from '../../util/typebox.ts';
import { acknowledge, ok } from '../envelope.ts';
import { ApiError } from '../errors.ts';
import type { Route, StreamRequest } from '../route.ts';
import { SessionStatisticsSchema } from '../schemas.ts';

const STREAM = 'vhosts/{vhost}/apps/{app}/streams/{stream}';
const COLLECTION = `/v1/${STREAM}/sessions`;

/** Viewer sessions of an inbound stream, whatever publisher serves them and from which of its outputs. */
export const sessionRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: COLLECTION,
    level: 'stream',
    summary: 'Names of all viewer sessions of a stream',
    response: Type.Array(Type.String()),
    handle: ({ stream }) => ok(stream.sessions.ids),
  },
  {
    method: 'DELETE',
    path: `${COLLECTION}/{session}`,
    level: 'stream',
    summary: 'Terminate a viewer session',
    handle: (request) => {
      const { id } = sessionOf(request);
      request.stream.sessions.terminate(id, 'terminated through the API');
      return acknowledge();
    },
  },
  {
    method: 'GET',
    path: `/v1/stats/current/${STREAM}/sessions/{session}`,
    level: 'stream',
    summary: 'Statistics of a viewer session',
    response: SessionStatisticsSchema,
    handle: (request) => ok(sessionStatistics(sessionOf(request))),
  },
];

function sessionOf({ stream, parameter }: StreamRequest): Session {
  const session = stream.sessions.find(parameter('session'));
  if (session === undefined) throw new ApiError('SESSION_NOT_FOUND');
  return session;
}
