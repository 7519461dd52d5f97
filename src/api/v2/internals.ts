import { queueStatuses } from '../../monitoring/queues.ts';
import type { LogLevel } from '../../util/gated-lines.ts';
import { LOG_LEVELS } from '../../util/log-levels.js';
import { Type } from '../../util/typebox.ts';
import { ok } from '../envelope.ts';
import { ApiError } from '../errors.ts';
import { memberOf } from '../json/json-value.ts';
import { requireObject } from '../refusals.ts';
import type { Route } from '../route.ts';
import { CodecModuleSchema, QueueStatusSchema } from '../schemas.ts';

const LogSchema = Type.Object({ level: Type.Unsafe<LogLevel>({ type: 'string', enum: [...LOG_LEVELS] }) }, { additionalProperties: false });

/** What the server looks like inside: queues and codecs, for those who look for the cause of a delay. */
export const internalsV2Routes: readonly Route[] = [
  {
    method: 'GET',
    path: '/v2/internals/queues',
    level: 'server',
    summary: 'State of all internal queues',
    response: Type.Array(QueueStatusSchema),
    handle: ({ control }) => ok(queueStatuses(control.queueStatuses())),
  },
  {
    method: 'GET',
    path: '/v2/internals/codecs',
    level: 'server',
    summary: 'Codec modules of this machine and the codecs at work',
    response: Type.Array(CodecModuleSchema),
    handle: async ({ control }) => ok(await control.codecModules()),
  },
  {
    method: 'GET',
    path: '/v2/internals/log',
    level: 'server',
    summary: 'From which level on the log tells what happens',
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
