/** Many streams in one answer, for pages that show them and reload often. An extension of Millrace. */
import { statisticsV1 } from '../../monitoring/stats-v1.ts';
import { streamInformation, waitingStreamInformation } from '../../monitoring/stream-info.ts';
import { Type } from '../../util/typebox.ts';
import { type Answer, ok } from '../envelope.ts';
import { ApiError } from '../errors.ts';
import type { AppRequest, Route } from '../route.ts';
import { StatisticsV1Schema, StreamInformation } from '../schemas.ts';

/** Limit of streams, because an answer occupies the main thread: for less than a turn of it. */
const MAX_STREAMS = 50;
/** A character that names of streams never contain. */
const SEPARATOR = '/';

/** A stream in the answer. */
const StreamFiguresSchema = Type.Object(
  { information: StreamInformation, statistics: Type.Optional(StatisticsV1Schema) },
  { additionalProperties: false },
);

/** Streams of an application with their figures. */
export const streamFiguresRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: '/v2/vhosts/{vhost}/apps/{app}/streams',
    level: 'app',
    summary: 'Information and statistics of several streams at once',
    query: {
      names: `Names of the streams, at most ${MAX_STREAMS}, separated by slashes; default: the first ${MAX_STREAMS}. Missing streams are left out`,
    },
    response: Type.Array(StreamFiguresSchema),
    handle: figures,
  },
];

function figures({ control, server, app, query }: AppRequest): Answer {
  const masked = server.privacyProtection;
  const waiting = control.waitingStreams(app);
  const names = query('names')?.split(SEPARATOR) ?? firstOf([...app.streams, ...waiting].map(({ name }) => name));
  if (names.length > MAX_STREAMS) throw new ApiError('STREAMS_TOO_MANY', String(MAX_STREAMS), String(names.length));
  return ok(
    names.flatMap((name) => {
      const stream = app.stream(name);
      if (stream !== undefined) return [{ information: streamInformation(stream, { masked }), statistics: statisticsV1(stream.meter) }];
      const later = waiting.find((each) => each.name === name);
      return later === undefined ? [] : [{ information: waitingStreamInformation(later, { masked }) }];
    }),
  );
}

function firstOf(names: readonly string[]): readonly string[] {
  return names.slice(0, MAX_STREAMS);
}
