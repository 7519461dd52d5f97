import { NOTICE_TYPES, type NoticeGroup, type NoticeType } from '../../core/notices/notice.ts';
import { Type } from '../../util/typebox.ts';
import { ApiError } from '../errors.ts';
import { noticeFilter } from '../live/notice-filter.ts';
import { countIn } from '../request-path.ts';
import type { Route } from '../route.ts';

const GROUPS: readonly NoticeGroup[] = [...new Set(Object.values(NOTICE_TYPES))];
/** Messages about the connection itself. */
const OWN_TYPES = ['hello', 'gap', 'end'] as const;
/** The number of events that the board keeps. */
const MAX_BACK = 4096;
const Count = Type.Integer({ minimum: 0 });
const text = (description: string) => Type.Optional(Type.String({ description }));

/** The data of one event. Its members depend on its type. */
export const LiveEventSchema = Type.Object({
  type: Type.Union(
    ([...OWN_TYPES, ...Object.keys(NOTICE_TYPES)] as (NoticeType | (typeof OWN_TYPES)[number])[]).map((type) => Type.Literal(type)),
  ),
  id: text('Same as the `id` of the event; absent in `hello`, `gap` and `end`'),
  time: text('Time of the event'),
  vhost: text('Name of the virtual host'),
  app: text('Name of the application'),
  stream: text('Name of the stream in the lists of the API; for a task, the name of its output stream'),
  output: text('`stream.ready`: name of the output stream that can be played'),
  sourceType: text('As in the information about the stream'),
  sourceUrl: text('As in the information about the stream'),
  reason: text('Reason of an end; code of a refusal; error of a task in the state `error`'),
  detail: text('The reason in words'),
  session: text('Name of the viewer session'),
  publisher: text('Protocol of the viewer, as in `connections` of the statistics'),
  seconds: Type.Optional(Count),
  bytes: Type.Optional(Count),
  started: Type.Optional(Count),
  ended: Type.Optional(Count),
  task: text('`recording`, `push` or `dump`'),
  state: text('State of the task, as in the API'),
  direction: text('`incoming` for publishers, `outgoing` for viewers'),
  protocol: text('Protocol of the refused client'),
  count: Type.Optional(Count),
  codes: Type.Optional(Type.Array(Type.String(), { description: 'Problems by the rules of `Alert`; `OK`: all problems are over' })),
  profile: text('Name of the output profile'),
  kind: text('`scheduled` or `multiplex`'),
  missed: Type.Optional(Type.Union([Count, Type.Null()], { description: '`gap`: number of missing events; null: unknown' })),
});

/** Live events, an addition to the contract. */
export const liveEventsRoute: Route = {
  method: 'GET',
  path: '/v1/events',
  level: 'server',
  summary: 'Events of the server as they happen: server-sent events, without an envelope',
  query: {
    types: `Types or groups (${GROUPS.map((group) => `\`${group}\``).join(', ')}), separated by commas; default: all`,
    vhost: 'Only events of this virtual host',
    app: 'Only events of applications of this name',
    stream: 'Only events of streams of this name',
    back: `Number of earlier events that come first, from 0 to ${MAX_BACK}; default 0`,
  },
  events: LiveEventSchema,
  handle: ({ control: { live }, query, lastEventId }) => {
    const wants = noticeFilter(query);
    const back = countIn(query('back') ?? '', 'back', { usual: 0, most: MAX_BACK });
    if (live.isFull) throw new ApiError('EVENT_FOLLOWERS_FULL');
    return {
      status: 200,
      body: '',
      type: 'text/event-stream; charset=utf-8',
      stream: (response) => live.follow(response, { wants, after: lastEventId, back }),
    };
  },
};
