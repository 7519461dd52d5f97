import { isAtLeast, type LineLevel } from '../../util/log-tail.ts';
import { Type } from '../../util/typebox.ts';
import { ApiError } from '../errors.ts';
import { countIn } from '../request-path.ts';
import type { Route } from '../route.ts';

const LEVELS: readonly LineLevel[] = ['debug', 'info', 'warn', 'error'];
/** Number of past lines sent first: default and maximum. */
const BACK = { usual: 100, most: 1000 };

/** The data of one event. */
export const LogEventSchema = Type.Object({
  type: Type.Union((['hello', 'gap', 'end', 'log'] as const).map((type) => Type.Literal(type))),
  id: Type.Optional(Type.String({ description: 'Same as the `id` of the event' })),
  time: Type.Optional(Type.String({ description: 'Time at which the line was written' })),
  level: Type.Optional(Type.Union(LEVELS.map((level) => Type.Literal(level)))),
  message: Type.Optional(Type.String()),
  fields: Type.Optional(
    Type.Unsafe<Readonly<Record<string, string | number | boolean | null>>>({
      type: 'object',
      additionalProperties: { type: ['string', 'number', 'boolean', 'null'] },
      description: 'Fields of the line: `part`, `vhost`, `app`, `stream`, `peer` and others',
    }),
  ),
  missed: Type.Optional(
    Type.Union([Type.Integer({ minimum: 0 }), Type.Null()], { description: '`gap`: number of missing lines; null: unknown' }),
  ),
});

/** The live log; needs a token with write access, because it contains data of all clients. An extension of Millrace. */
export const logsRoute: Route = {
  method: 'GET',
  path: '/v2/logs',
  level: 'server',
  needsWrite: true,
  summary: 'Lines of the log as they are written: server-sent events, without an envelope, for tokens that may write',
  query: {
    level: `Lowest level of the lines: ${LEVELS.map((level) => `\`${level}\``).join(', ')}; default \`info\`, independent of the level of the log`,
    lines: `Number of earlier lines that come first, from 0 to ${BACK.most}; default ${BACK.usual}`,
  },
  events: LogEventSchema,
  handle: ({ control: { logs }, query, lastEventId }) => {
    const asked = query('level') ?? '';
    const least = asked === '' ? 'info' : LEVELS.find((level) => level === asked);
    if (least === undefined) throw new ApiError('MEMBER_INVALID', 'level', `one of ${LEVELS.join(', ')}`);
    const back = countIn(query('lines') ?? '', 'lines', BACK);
    if (logs.isFull) throw new ApiError('LOG_FOLLOWERS_FULL');
    return {
      status: 200,
      body: '',
      type: 'text/event-stream; charset=utf-8',
      stream: (response) =>
        logs.follow(response, {
          wants: ({ level }) => isAtLeast(level, least),
          after: lastEventId,
          back,
          ...(least === 'debug' && { onGone: logs.board.wantDebug() }),
        }),
    };
  },
};
