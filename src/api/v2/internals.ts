import { SAMPLE_MS } from '../../monitoring/figure-history.ts';
import { queueStatus } from '../../monitoring/queues.ts';
import type { LogLevel } from '../../util/gated-lines.ts';
import { LOG_LEVELS } from '../../util/log-levels.js';
import { formatTimestamp } from '../../util/timestamp.ts';
import { Type } from '../../util/typebox.ts';
import { ok } from '../envelope.ts';
import { ApiError } from '../errors.ts';
import { memberOf } from '../json/json-value.ts';
import { okList } from '../long-answers.ts';
import { requireObject } from '../refusals.ts';
import type { Route } from '../route.ts';
import { CodecModuleSchema, QueueStatusSchema, Timestamp } from '../schemas.ts';

const LogSchema = Type.Object({ level: Type.Unsafe<LogLevel>({ type: 'string', enum: [...LOG_LEVELS] }) }, { additionalProperties: false });

const HistorySchema = Type.Object(
  {
    intervalMs: Type.Integer({ description: 'Time between two samples' }),
    samples: Type.Array(
      Type.Object({
        time: Timestamp,
        throughputIn: Type.Integer({ description: 'Bytes received per second since the previous sample', minimum: 0 }),
        throughputOut: Type.Integer({ description: 'Bytes sent per second since the previous sample', minimum: 0 }),
        connections: Type.Unsafe<Readonly<Record<string, number>>>({
          type: 'object',
          additionalProperties: { type: 'integer', minimum: 1 },
          description: 'Viewers, pushes and recordings by publisher; a publisher without any is absent',
        }),
        cpu: Type.Number({ description: 'Cores in use by the server, without transcoder processes', minimum: 0 }),
        eventLoop: Type.Number({
          description: 'Share of the time in which the event loop of the main thread was busy',
          minimum: 0,
          maximum: 1,
        }),
        memory: Type.Integer({ description: 'Resident, bytes', minimum: 0 }),
      }),
      { description: 'Samples, the oldest first' },
    ),
  },
  { description: 'Figures of the last hour' },
);

/** Internals of the server: queues and codecs, to find the cause of a delay. */
export const internalsV2Routes: readonly Route[] = [
  {
    method: 'GET',
    path: '/v2/internals/queues',
    level: 'server',
    summary: 'State of all internal queues',
    response: Type.Array(QueueStatusSchema),
    handle: ({ control }) => okList(control.queues, (queue) => queueStatus(queue.status())),
  },
  {
    method: 'GET',
    path: '/v2/internals/codecs',
    level: 'server',
    summary: 'Codec modules of this machine, and the codecs in use',
    response: Type.Array(CodecModuleSchema),
    handle: async ({ control }) => ok(await control.codecModules()),
  },
  {
    method: 'GET',
    path: '/v2/internals/history',
    level: 'server',
    summary: 'Throughput, connections, CPU, event loop and memory of the last hour',
    response: HistorySchema,
    handle: ({ control }) =>
      ok({
        intervalMs: SAMPLE_MS,
        samples: control.history.samples.map(({ at, ...figures }) => ({ time: formatTimestamp(at), ...figures })),
      }),
  },
  {
    method: 'GET',
    path: '/v2/internals/log',
    level: 'server',
    summary: 'Level of the log',
    response: LogSchema,
    handle: ({ control }) => ok({ level: control.logLevel.get() }),
  },
  {
    method: 'PATCH',
    path: '/v2/internals/log',
    level: 'server',
    summary: 'Change the level of the log until the next start',
    body: LogSchema,
    response: LogSchema,
    handle: ({ control, body }) => {
      const wanted = memberOf(requireObject(body), 'level');
      const level = LOG_LEVELS.find((known) => known === wanted);
      if (level === undefined) throw new ApiError('MEMBER_INVALID', 'level', `one of ${LOG_LEVELS.join(', ')}`);
      control.logLevel.set(level);
      return ok({ level });
    },
  },
];
