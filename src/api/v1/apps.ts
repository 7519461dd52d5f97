import { Type } from '@sinclair/typebox';
import type { ApplicationView, ControlPlane } from '../control.ts';
import { acknowledge, type BatchItem, batch, batchFailure, batchSuccess, ok } from '../envelope.ts';
import { ApiError } from '../errors.ts';
import { isJsonObject, type JsonObject, type JsonValue, memberOf } from '../json/json-value.ts';
import { mergeJson } from '../json/merge-json.ts';
import { changed, refusal, requireArray, requireObject, requireWritable } from '../refusals.ts';
import type { Route } from '../route.ts';
import { Application } from '../schemas.ts';
import { withApplicationDefaults } from './application-defaults.ts';
import { nameIn, namesOf } from './names.ts';
import { printedProfile } from './output-profiles.ts';

/** Members that PATCH refuses, in the order they are looked for. */
const FIXED_MEMBERS = ['name', 'dynamic', 'outputProfiles'] as const;

export const appRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: '/v1/vhosts/{vhost}/apps',
    level: 'vhost',
    summary: 'Names of all applications',
    response: Type.Array(Type.String()),
    handle: ({ vhost }) => ok(namesOf(vhost.applications)),
  },
  {
    method: 'POST',
    path: '/v1/vhosts/{vhost}/apps',
    level: 'vhost',
    summary: 'Create applications',
    body: Type.Array(Application),
    response: Application,
    batch: true,
    changes: true,
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
    response: Application,
    handle: ({ app }) => ok(printedApplication(app)),
  },
  {
    method: 'PATCH',
    path: '/v1/vhosts/{vhost}/apps/{app}',
    level: 'app',
    summary: 'Change an application; it restarts and all its sessions are closed',
    body: Type.Partial(Application),
    response: Application,
    changes: true,
    handle: async ({ control, vhost, app, body }) => {
      requireWritable(vhost);
      const patch = requireObject(body);
      for (const member of FIXED_MEMBERS) {
        if (memberOf(patch, member) !== undefined) throw new ApiError('APP_MEMBER_FIXED', member);
      }
      const restarted = await changed(control.replaceApplication(vhost.name, app.name, mergeJson(app.definition, patch)), {
        failed: () => new ApiError('APP_CREATE_FAILED', vhost.name, app.name),
      });
      return ok(printedApplication(restarted));
    },
  },
  {
    method: 'DELETE',
    path: '/v1/vhosts/{vhost}/apps/{app}',
    level: 'app',
    summary: 'Delete an application',
    changes: true,
    handle: async ({ control, vhost, app }) => {
      requireWritable(vhost);
      await changed(control.deleteApplication(vhost.name, app.name), {
        failed: () => new ApiError('APP_DELETE_FAILED', vhost.name, app.name),
      });
      return acknowledge();
    },
  },
];

async function createOne(control: ControlPlane, vhost: string, definition: JsonValue): Promise<BatchItem> {
  const name = nameIn(definition);
  try {
    const app = await control.createApplication(vhost, withApplicationDefaults(isJsonObject(definition) ? definition : {}));
    return batchSuccess(printedApplication(app));
  } catch (error) {
    return batchFailure(
      refusal(error, {
        exists: () => new ApiError('APP_EXISTS', vhost, name),
        failed: () => new ApiError('APP_CREATE_FAILED', vhost, name),
      }),
    );
  }
}

/** An application as every answer prints it: what was configured, and whether it came from a template. */
function printedApplication(app: ApplicationView): JsonObject {
  const printed: JsonObject = { ...app.definition, dynamic: app.dynamic };
  const container = memberOf(app.definition, 'outputProfiles');
  const profiles = isJsonObject(container) ? memberOf(container, 'outputProfile') : undefined;
  if (isJsonObject(container) && Array.isArray(profiles)) {
    printed['outputProfiles'] = { ...container, outputProfile: profiles.map(printedProfile) };
  }
  return printed;
}
