import { Type } from '@sinclair/typebox';
import type { ApplicationView } from '../control.ts';
import { acknowledge, type BatchItem, batch, batchFailure, batchSuccess, ok } from '../envelope.ts';
import { ApiError } from '../errors.ts';
import { isJsonObject, type JsonObject, type JsonValue, memberOf } from '../json/json-value.ts';
import { changed, requireArray, requireObject, requireWritable } from '../refusals.ts';
import type { AppRequest, Route } from '../route.ts';
import { OutputProfile } from '../schemas.ts';
import { nameIn } from './names.ts';

const COLLECTION = '/v1/vhosts/{vhost}/apps/{app}/outputProfiles';
const ITEM = `${COLLECTION}/{profile}`;

export const outputProfileRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: COLLECTION,
    level: 'app',
    summary: 'Names of all output profiles',
    response: Type.Array(Type.String()),
    handle: ({ app }) => ok(profilesOf(app).map(nameIn)),
  },
  {
    method: 'POST',
    path: COLLECTION,
    level: 'app',
    summary: 'Create output profiles; the application restarts',
    body: Type.Array(OutputProfile),
    response: OutputProfile,
    batch: true,
    changes: true,
    handle: createProfiles,
  },
  {
    method: 'GET',
    path: ITEM,
    level: 'app',
    summary: 'An output profile',
    response: OutputProfile,
    handle: (request) => ok(printedProfile(findProfile(request).profile)),
  },
  {
    method: 'PATCH',
    path: ITEM,
    level: 'app',
    summary: 'Replace an output profile, except for its name; the application restarts',
    body: Type.Partial(OutputProfile),
    response: OutputProfile,
    changes: true,
    handle: replaceProfile,
  },
  {
    method: 'DELETE',
    path: ITEM,
    level: 'app',
    summary: 'Delete an output profile; the application restarts',
    changes: true,
    handle: async (request) => {
      requireWritable(request.vhost);
      const { index } = findProfile(request);
      await restart(request, profilesOf(request.app).toSpliced(index, 1));
      return acknowledge();
    },
  },
];

/** An output profile as answers print it: both encode arrays, empty where unused. */
export function printedProfile(profile: JsonValue): JsonValue {
  const encodes = isJsonObject(profile) ? memberOf(profile, 'encodes') : undefined;
  if (!isJsonObject(profile) || !isJsonObject(encodes)) return profile;
  return { ...profile, encodes: { audios: [], videos: [], ...encodes } };
}

async function createProfiles(request: AppRequest) {
  requireWritable(request.vhost);
  const candidates = requireArray(request.body).map(requireProfile);
  const profiles = [...profilesOf(request.app)];
  const results = candidates.map((candidate): string | ApiError => {
    const name = nameIn(candidate);
    if (profiles.some((profile) => nameIn(profile) === name)) return new ApiError('PROFILE_EXISTS', name);
    profiles.push(candidate);
    return name;
  });
  const stored = profilesOf(await restart(request, profiles));
  return batch(results.map((result) => (result instanceof ApiError ? batchFailure(result) : createdItem(stored, result))));
}

function createdItem(stored: readonly JsonValue[], name: string): BatchItem {
  return batchSuccess(printedProfile(stored.find((profile) => nameIn(profile) === name) ?? null));
}

async function replaceProfile(request: AppRequest) {
  requireWritable(request.vhost);
  const { profile, index } = findProfile(request);
  const replacement = requireObject(request.body);
  const named = Object.keys(replacement).find((key) => key.toLowerCase() === 'name');
  if (named !== undefined) throw new ApiError('PROFILE_NAME_FIXED', named);
  const next = { ...replacement, name: nameIn(profile) };
  const stored = profilesOf(await restart(request, profilesOf(request.app).with(index, next)));
  return ok(printedProfile(stored[index] ?? null));
}

/** Restarts the application with other profiles. */
function restart({ control, vhost, app }: AppRequest, profiles: JsonValue[]): Promise<ApplicationView> {
  const container = memberOf(app.definition, 'outputProfiles');
  const outputProfiles = { ...(isJsonObject(container) ? container : {}), outputProfile: profiles };
  return changed(control.replaceApplication(vhost.name, app.name, { ...app.definition, outputProfiles }), {
    config: (detail) => new ApiError('PROFILE_CONFIG_INVALID', detail),
    failed: () => new ApiError('APP_CREATE_FAILED', vhost.name, app.name),
  });
}

function profilesOf(app: ApplicationView): JsonValue[] {
  const container = memberOf(app.definition, 'outputProfiles');
  const profiles = isJsonObject(container) ? memberOf(container, 'outputProfile') : undefined;
  return Array.isArray(profiles) ? profiles : [];
}

function findProfile(request: AppRequest): { readonly profile: JsonValue; readonly index: number } {
  const name = request.parameter('profile');
  const profiles = profilesOf(request.app);
  const index = profiles.findIndex((profile) => nameIn(profile) === name);
  const profile = profiles[index];
  if (profile === undefined) throw new ApiError('PROFILE_NOT_FOUND', request.vhost.name, request.app.name, name);
  return { profile, index };
}

/** Checks the members this endpoint insists on; any fault refuses the whole request. */
function requireProfile(candidate: JsonValue): JsonObject {
  const profile = isJsonObject(candidate) ? candidate : {};
  const name = memberOf(profile, 'name');
  const outputStreamName = memberOf(profile, 'outputStreamName');
  const encodes = memberOf(profile, 'encodes');
  if (name === undefined || outputStreamName === undefined || encodes === undefined) throw new ApiError('PROFILE_MEMBERS_MISSING');
  if (typeof name !== 'string' || typeof outputStreamName !== 'string' || !isJsonObject(encodes)) {
    throw new ApiError('PROFILE_MEMBERS_WRONG');
  }
  const videos = memberOf(encodes, 'videos');
  const audios = memberOf(encodes, 'audios');
  if (videos === undefined && audios === undefined) throw new ApiError('PROFILE_ENCODES_MISSING');
  if (videos !== undefined && !Array.isArray(videos)) throw new ApiError('PROFILE_VIDEOS_WRONG');
  if (audios !== undefined && !Array.isArray(audios)) throw new ApiError('PROFILE_AUDIOS_WRONG');
  if ((videos?.length ?? 0) + (audios?.length ?? 0) === 0) throw new ApiError('PROFILE_ENCODES_EMPTY');
  return profile;
}
