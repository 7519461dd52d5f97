import { ineffectiveInApplication, ineffectiveInVirtualHost } from '../../config/ineffective.ts';
import type { VirtualHost } from '../../core/virtual-host.ts';
import { Type } from '../../util/typebox.ts';
import type { ControlPlane } from '../control.ts';
import { acknowledge, type BatchItem, batch, batchFailure, batchSuccess, ok } from '../envelope.ts';
import { nameIn } from '../json/json-value.ts';
import { changed, refusal, requireArray, requireWritable } from '../refusals.ts';
import type { Route } from '../route.ts';
import { VirtualHostAnswer, VirtualHostDefinition } from '../schemas.ts';

/** Virtual hosts. Those declared by a configuration file cannot be deleted. */
export const vhostRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: '/v1/vhosts',
    level: 'server',
    summary: 'Names of all virtual hosts',
    response: Type.Array(Type.String()),
    handle: ({ control }) => ok(control.virtualHosts.map(({ name }) => name)),
  },
  {
    method: 'POST',
    path: '/v1/vhosts',
    level: 'server',
    summary: 'Create virtual hosts',
    body: Type.Array(VirtualHostDefinition),
    response: VirtualHostAnswer,
    batch: true,
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
    response: VirtualHostAnswer,
    // `distribution` is in this answer even if it was not given.
    handle: ({ vhost }) => ok({ distribution: '', ...vhost.definition.echo }, ineffectiveKeys(vhost)),
  },
  {
    method: 'DELETE',
    path: '/v1/vhosts/{vhost}',
    level: 'vhost',
    summary: 'Delete a virtual host and everything in it',
    handle: async ({ control, vhost }) => {
      requireWritable(vhost);
      await changed(control.deleteVirtualHost(vhost.name), { vhost: vhost.name, app: '', failed: 'VHOST_DELETE_FAILED' });
      return acknowledge();
    },
  },
];

function ineffectiveKeys({ definition }: VirtualHost): string[] {
  return ineffectiveInVirtualHost(definition.config).map(({ key }) => key);
}

async function createOne(control: ControlPlane, definition: unknown): Promise<BatchItem> {
  try {
    const vhost = await control.createVirtualHost(definition);
    const inside = [...vhost.applications.values()].flatMap(({ definition: { config } }) => ineffectiveInApplication(config));
    return batchSuccess(vhost.definition.echo, [...ineffectiveKeys(vhost), ...inside.map(({ key }) => `applications.${key}`)]);
  } catch (error) {
    return batchFailure(refusal(error, { vhost: nameIn(definition), app: '', failed: 'VHOST_NOT_SAVED' }));
  }
}
