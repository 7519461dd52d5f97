import { PublisherKind } from '../../core/kinds.ts';
import type { Session } from '../../core/session-registry.ts';
import { sessionStatistics } from '../../monitoring/session-stats.ts';
import { Type } from '../../util/typebox.ts';
import { acknowledge, ok } from '../envelope.ts';
import { ApiError } from '../errors.ts';
import { okList } from '../long-answers.ts';
import type { Route, StreamRequest } from '../route.ts';
import { SessionStatisticsSchema } from '../schemas.ts';

const STREAM = 'vhosts/{vhost}/apps/{app}/streams/{stream}';
const COLLECTION = `/v1/${STREAM}/sessions`;

/** Value of `protocol` for the sessions of all protocols. */
export const EVERY_PROTOCOL = 'all';
const WORDS: ReadonlySet<string> = new Set(Object.values(PublisherKind));
const QUERY = {
  protocol: `Protocols of the sessions: \`${EVERY_PROTOCOL}\`, or names as in \`connections\` of the statistics, separated by commas; default: \`webrtc\``,
};

/** Viewer sessions of an inbound stream over all its outputs: by default those of WebRTC, others by query. */
export const sessionRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: COLLECTION,
    level: 'stream',
    summary: 'Names of the sessions of a stream: WebRTC by default, other protocols by `protocol`',
    query: QUERY,
    response: Type.Array(Type.String()),
    handle: (request) => okList(sessionsIn(request), ({ id }) => id),
  },
  {
    method: 'DELETE',
    path: `${COLLECTION}/{session}`,
    level: 'stream',
    summary: 'Terminate a viewer session',
    query: QUERY,
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
    query: QUERY,
    response: SessionStatisticsSchema,
    handle: (request) => ok(sessionStatistics(sessionOf(request))),
  },
];

/** Sessions of the protocols in the query `protocol`, oldest first; without it those of `usual`. Throws for an unknown protocol. */
export function sessionsIn(request: StreamRequest, usual: string = PublisherKind.WEBRTC): Session[] {
  return request.stream.sessions.all.filter(wantedBy(request, usual));
}

function sessionOf(request: StreamRequest): Session {
  const wanted = wantedBy(request);
  const session = request.stream.sessions.find(request.parameter('session'));
  if (session === undefined || !wanted(session)) throw new ApiError('SESSION_NOT_FOUND');
  return session;
}

/** The contract has only sessions of WebRTC; an additional query selects the others. */
function wantedBy({ query }: StreamRequest, usual: string = PublisherKind.WEBRTC): (session: Session) => boolean {
  const given = query('protocol') ?? usual;
  if (given === EVERY_PROTOCOL) return () => true;
  const kinds = new Set(given.split(','));
  for (const kind of kinds) {
    if (!WORDS.has(kind)) throw new ApiError('MEMBER_INVALID', 'protocol', `${EVERY_PROTOCOL}, or of ${[...WORDS].join(', ')}`);
  }
  return ({ kind }) => kinds.has(kind);
}
