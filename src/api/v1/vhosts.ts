import { Type } from '@sinclair/typebox';
import type { ControlPlane } from '../control.ts';
import { acknowledge, type BatchItem, batch, batchFailure, batchSuccess, ok } from '../envelope.ts';
import { ApiError } from '../errors.ts';
import { isJsonObject, type JsonValue } from '../json/json-value.ts';
import { changed, refusal, requireArray, requireWritable } from '../refusals.ts';
import type { Route } from '../route.ts';
import { VirtualHost } from '../schemas.ts';
import { nameIn, namesOf } from './names.ts';

export const vhostRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: '/v1/vhosts',
    level: 'server',
    summary: 'Names of all virtual hosts',
    response: Type.Array(Type.String()),
    handle: ({ control }) => ok(namesOf(control.virtualHosts)),
  },
  {
    method: 'POST',
    path: '/v1/vhosts',
    level: 'server',
    summary: 'Create virtual hosts',
    body: Type.Array(VirtualHost),
    response: VirtualHost,
    batch: true,
    changes: true,
    handle: async ({ control, body }) => {
      const items: BatchItem[] = [];
      for (const definition of requireArray(body)) items.push(await createOne(control, definition));
      return batch(items);
    },
  },
  {
    method: 'GET',
    path: '/v1/vhosts/{vhost}',
    level: 'vhost',
    summary: 'A virtual host',
    response: VirtualHost,
    handle: ({ vhost }) => ok(vhost.definition),
  },
  {
    method: 'DELETE',
    path: '/v1/vhosts/{vhost}',
    level: 'vhost',
    summary: 'Delete a virtual host and everything in it',
    changes: true,
    handle: async ({ control, vhost }) => {
      requireWritable(vhost);
      await changed(control.deleteVirtualHost(vhost.name), { failed: () => new ApiError('VHOST_DELETE_FAILED', vhost.name) });
      return acknowledge();
    },
  },
];

async function createOne(control: ControlPlane, definition: JsonValue): Promise<BatchItem> {
  const name = nameIn(definition);
  try {
    const vhost = await control.createVirtualHost(isJsonObject(definition) ? definition : {});
    return batchSuccess(vhost.definition);
  } catch (error) {
    return batchFailure(
      refusal(error, {
        exists: () => new ApiError('VHOST_EXISTS', name),
        failed: () => new ApiError('VHOST_CREATE_FAILED', name),
      }),
    );
  }
}
