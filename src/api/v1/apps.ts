import { ApplicationSchema, applicationDefaults, mergePatch } from '../../config/index.ts';
import { ineffectiveInApplication } from '../../config/ineffective.ts';
import type { Application } from '../../core/application.ts';
import type { VirtualHost } from '../../core/virtual-host.ts';
import { Type } from '../../util/typebox.ts';
import type { ControlPlane } from '../control.ts';
import { acknowledge, type BatchItem, batch, batchFailure, batchSuccess, ok } from '../envelope.ts';
import { ApiError } from '../errors.ts';
import { isJsonObject, memberOf, nameIn } from '../json/json-value.ts';
import { spelledLike } from '../json/spelling.ts';
import { withKnownHashes, withoutHashes } from '../key-lists.ts';
import { okList } from '../long-answers.ts';
import { changed, refusal, requireArray, requireObject, requireWritable } from '../refusals.ts';
import type { Route } from '../route.ts';
import { ApplicationAnswer } from '../schemas.ts';

/** Members that PATCH refuses, in the order of the checks. */
const FIXED_MEMBERS = ['name', 'dynamic', 'outputProfiles'] as const;

/** Applications of a virtual host. Everything but reading is refused if a configuration file declares the virtual host. */
export const appRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: '/v1/vhosts/{vhost}/apps',
    level: 'vhost',
    summary: 'Names of all applications',
    response: Type.Array(Type.String()),
    handle: ({ vhost }) => okList([...vhost.applications.keys()], (name) => name),
  },
  {
    method: 'POST',
    path: '/v1/vhosts/{vhost}/apps',
    level: 'vhost',
    summary: 'Create applications',
    body: Type.Array(ApplicationSchema),
    response: ApplicationAnswer,
    batch: true,
    handle: async ({ control, vhost, body }) => {
      requireWritable(vhost);
      const items: BatchItem[] = [];
      for (const definition of requireArray(body)) items.push(await createOne(control, vhost.name, definition));
      return batch(items);
    },
  },
  {
    method: 'GET',
    path: '/v1/vhosts/{vhost}/apps/{app}',
    level: 'app',
    summary: 'An application',
    response: ApplicationAnswer,
    handle: ({ vhost, app }) => ok(printed(app, vhost), ineffectiveKeys(app)),
  },
  {
    method: 'PATCH',
    path: '/v1/vhosts/{vhost}/apps/{app}',
    level: 'app',
    summary: 'Change an application; it restarts and all its sessions are closed',
    body: Type.Partial(ApplicationSchema),
    response: ApplicationAnswer,
    handle: async ({ control, vhost, app, body }) => {
      requireWritable(vhost);
      const patch = requireObject(body);
      for (const member of FIXED_MEMBERS) {
        if (memberOf(patch, member) !== undefined) throw new ApiError('APP_MEMBER_FIXED', member);
      }
      const restarted = control.changeApplication(vhost.name, app.name, (echo) =>
        withKnownHashes(echo, mergePatch(echo as Echo, spelledLike(ApplicationSchema, echo, patch))),
      );
      const restartedApp = await changed(restarted, { vhost: vhost.name, app: app.name, failed: 'APP_CREATE_FAILED' });
      return ok(printed(restartedApp), ineffectiveKeys(restartedApp));
    },
  },
  {
    method: 'DELETE',
    path: '/v1/vhosts/{vhost}/apps/{app}',
    level: 'app',
    summary: 'Delete an application',
    handle: async ({ control, vhost, app }) => {
      requireWritable(vhost);
      await changed(control.deleteApplication(vhost.name, app.name), { vhost: vhost.name, app: app.name, failed: 'APP_DELETE_FAILED' });
      return acknowledge();
    },
  },
];

type Echo = Parameters<typeof mergePatch>[0];

async function createOne(control: ControlPlane, vhost: string, given: unknown): Promise<BatchItem> {
  try {
    const app = await control.createApplication(vhost, withDefaults(given));
    return batchSuccess(printed(app), ineffectiveKeys(app));
  } catch (error) {
    return batchFailure(refusal(error, { vhost, app: nameIn(given), failed: 'APP_CREATE_FAILED' }));
  }
}

/** A member given as null gets no default. */
function withDefaults(given: unknown): unknown {
  const nulls = isJsonObject(given) ? Object.entries(given).filter(([, value]) => value === null) : [];
  return { ...(applicationDefaults(given) as object), ...Object.fromEntries(nulls) };
}

function ineffectiveKeys({ definition }: Application): string[] {
  return ineffectiveInApplication(definition.config).map(({ key }) => key);
}

/** The definition, and whether it was made from the template of its virtual host. */
function printed(app: Application, vhost?: VirtualHost): object {
  return { ...withoutHashes(app.definition.echo), dynamic: vhost?.dynamic.has(app) === true };
}
