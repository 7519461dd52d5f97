import { queueStatuses } from '../../monitoring/queues.ts';
import { Type } from '../../util/typebox.ts';
import { ok } from '../envelope.ts';
import type { Route } from '../route.ts';
import { CodecModuleSchema, QueueStatusSchema } from '../schemas.ts';

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
];
