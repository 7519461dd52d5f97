/** The viewers of a stream with their figures in one answer. An extension of Millrace. */
import type { Session } from '../../core/session-registry.ts';
import { sessionStatistics } from '../../monitoring/session-stats.ts';
import { HIDDEN_ADDRESS } from '../../util/private-logger.ts';
import { Type } from '../../util/typebox.ts';
import { type Answer, ok } from '../envelope.ts';
import { countIn } from '../request-path.ts';
import type { Route, StreamRequest } from '../route.ts';
import { SessionStatisticsSchema } from '../schemas.ts';
import { EVERY_PROTOCOL, sessionsIn } from '../v1/sessions.ts';

/** Limits of one answer, which occupies the main thread. */
const LIMIT = { usual: 100, most: 1000 };
/** More viewers than a stream can have. */
const MAX_OFFSET = 100_000_000;

const ViewerSchema = Type.Object(
  {
    client: Type.Optional(
      Type.String({ description: 'Address of the viewer, with the port if the session is one connection; `PrivacyProtection` hides it' }),
    ),
    protocol: Type.String({ description: 'Protocol, as in `connections` of the statistics' }),
    session: Type.String(),
    statistics: SessionStatisticsSchema,
  },
  { additionalProperties: false },
);

/** Viewers of an inbound stream, of any of its outputs. */
export const viewerRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: '/v2/vhosts/{vhost}/apps/{app}/streams/{stream}/sessions',
    level: 'stream',
    summary: 'Viewers of a stream with their addresses and statistics, in pages',
    query: {
      protocol: `Protocols of the viewers, as in \`connections\` of the statistics, separated by commas; default: \`${EVERY_PROTOCOL}\``,
      offset: 'Number of viewers to skip, the oldest first; default: 0',
      limit: `Maximum number of viewers in the answer, up to ${LIMIT.most}; default: ${LIMIT.usual}`,
    },
    response: Type.Object(
      {
        sessions: Type.Array(ViewerSchema, { description: 'Samples, the oldest first' }),
        total: Type.Integer({ description: 'Number of viewers on all pages', minimum: 0 }),
      },
      { additionalProperties: false },
    ),
    handle: viewers,
  },
];

function viewers(request: StreamRequest): Answer {
  const { query, server } = request;
  const offset = countIn(query('offset') ?? '', 'offset', { usual: 0, most: MAX_OFFSET });
  const limit = countIn(query('limit') ?? '', 'limit', LIMIT);
  const all = sessionsIn(request, EVERY_PROTOCOL);
  return ok({ sessions: all.slice(offset, offset + limit).map((session) => viewer(session, server.privacyProtection)), total: all.length });
}

/** Members in byte order. */
function viewer(session: Session, masked: boolean): object {
  const { client, id, kind } = session;
  return {
    ...(client === undefined ? {} : { client: masked ? HIDDEN_ADDRESS : client }),
    protocol: kind,
    session: id,
    statistics: sessionStatistics(session),
  };
}
