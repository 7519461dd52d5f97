import { OutputProfileSchema } from '../../config/index.ts';
import { ineffectiveInProfile } from '../../config/ineffective.ts';
import type { Application } from '../../core/application.ts';
import type { JsonObject } from '../../core/definition.ts';
import { Type } from '../../util/typebox.ts';
import { acknowledge, type BatchItem, batch, batchFailure, batchSuccess, ok } from '../envelope.ts';
import { ApiError } from '../errors.ts';
import { isJsonObject, memberOf, nameIn } from '../json/json-value.ts';
import { changed, refusal, requireArray, requireObject, requireWritable } from '../refusals.ts';
import type { AppRequest, Route } from '../route.ts';
import { OutputProfile } from '../schemas.ts';

const COLLECTION = '/v1/vhosts/{vhost}/apps/{app}/outputProfiles';
const ITEM = `${COLLECTION}/{profile}`;

/** Output profiles of an application. Every change restarts the application with its streams. */
export const outputProfileRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: COLLECTION,
    level: 'app',
    summary: 'Names of all output profiles',
    response: Type.Array(Type.String()),
    handle: ({ app }) => ok(profilesIn(app.definition.echo).map(nameIn)),
  },
  {
    method: 'POST',
    path: COLLECTION,
    level: 'app',
    summary: 'Create output profiles; the application restarts',
    body: Type.Array(OutputProfileSchema),
    response: OutputProfile,
    batch: true,
    handle: createProfiles,
  },
  {
    method: 'GET',
    path: ITEM,
    level: 'app',
    summary: 'An output profile',
    response: OutputProfile,
    handle: (request) => {
      const profiles = profilesIn(request.app.definition.echo);
      return ok(profiles[indexOfNamed(profiles, request)], ineffectiveKeys(request.app, request.parameter('profile')));
    },
  },
  {
    method: 'PATCH',
    path: ITEM,
    level: 'app',
    summary: 'Replace an output profile, except for its name; the application restarts',
    body: Type.Partial(OutputProfileSchema),
    response: OutputProfile,
    handle: replaceProfile,
  },
  {
    method: 'DELETE',
    path: ITEM,
    level: 'app',
    summary: 'Delete an output profile; the application restarts',
    handle: async (request) => {
      requireWritable(request.vhost);
      await restart(request, (profiles) => profiles.toSpliced(indexOfNamed(profiles, request), 1));
      return acknowledge();
    },
  },
];

/** Thrown to leave the application unchanged. */
const NOTHING_TO_ADD = Symbol('no profile of the batch can be added');

async function createProfiles(request: AppRequest) {
  requireWritable(request.vhost);
  const candidates = requireArray(request.body);
  let results: readonly (string | ApiError)[] = [];
  let { app } = request;
  try {
    app = await restart(request, (present) => {
      const additions = addingTo(present, candidates, request);
      results = additions.results;
      if (additions.profiles.length === present.length) throw NOTHING_TO_ADD;
      return additions.profiles;
    });
  } catch (error) {
    if (error !== NOTHING_TO_ADD) throw error;
  }
  const stored = new Map(profilesIn(app.definition.echo).map((profile) => [nameIn(profile), profile]));
  const created = (name: string): BatchItem => batchSuccess(stored.get(name), ineffectiveKeys(app, name));
  return batch(results.map((result) => (result instanceof ApiError ? batchFailure(result) : created(result))));
}

/** The profiles extended by the valid `candidates`, and for each candidate its name or its error. */
function addingTo(present: readonly unknown[], candidates: readonly unknown[], { control, vhost, app }: AppRequest) {
  const names = new Set(present.map(nameIn));
  const streams = new Set(present.map(outputOf));
  const profiles = [...present];
  const results = candidates.map((candidate): string | ApiError => {
    try {
      requireProfile(candidate);
      const name = nameIn(candidate);
      if (names.has(name)) return new ApiError('PROFILE_EXISTS', name);
      control.checkOutputProfile(candidate);
      // Rules about all profiles of an application together.
      const stream = outputOf(candidate);
      if (streams.has(stream)) return new ApiError('PROFILE_CONFIG_INVALID', `Duplicate output stream name: ${stream}`);
      names.add(name);
      streams.add(stream);
      profiles.push(candidate);
      return name;
    } catch (error) {
      return refusal(error, { vhost: vhost.name, app: app.name, failed: 'APP_CREATE_FAILED', invalid: 'PROFILE_CONFIG_INVALID' });
    }
  });
  return { profiles, results };
}

function outputOf(profile: unknown): unknown {
  return memberOf(profile, 'outputStreamName');
}

function ineffectiveKeys({ definition }: Application, name: string): string[] {
  const profile = definition.config.outputProfiles.outputProfile.find((candidate) => candidate.name === name);
  return profile === undefined ? [] : ineffectiveInProfile(profile).map(({ key }) => key);
}

async function replaceProfile(request: AppRequest) {
  requireWritable(request.vhost);
  const profiles = profilesIn(request.app.definition.echo);
  const index = indexOfNamed(profiles, request);
  const replacement = requireObject(request.body);
  const named = Object.keys(replacement).find((key) => key.toLowerCase() === 'name');
  if (named !== undefined) throw new ApiError('PROFILE_NAME_FIXED', named);
  const name = request.parameter('profile');
  const app = await restart(request, (present) => present.with(indexOfNamed(present, request), { ...replacement, name }));
  return ok(profilesIn(app.definition.echo)[index], ineffectiveKeys(app, name));
}

/** Restarts the application with the result of `change` for its profiles. */
function restart({ control, vhost, app }: AppRequest, change: (profiles: readonly unknown[]) => unknown[]): Promise<Application> {
  const restarted = control.changeApplication(vhost.name, app.name, (echo) => {
    const container = memberOf(echo, 'outputProfiles');
    return { ...echo, outputProfiles: { ...(isJsonObject(container) ? container : {}), outputProfile: change(profilesIn(echo)) } };
  });
  return changed(restarted, { vhost: vhost.name, app: app.name, failed: 'APP_CREATE_FAILED', invalid: 'PROFILE_CONFIG_INVALID' });
}

function profilesIn(application: JsonObject): readonly unknown[] {
  const profiles = memberOf(memberOf(application, 'outputProfiles'), 'outputProfile');
  return Array.isArray(profiles) ? profiles : [];
}

/** Index of the profile in the path. */
function indexOfNamed(profiles: readonly unknown[], { vhost, app, parameter }: AppRequest): number {
  const name = parameter('profile');
  const index = profiles.findIndex((profile) => nameIn(profile) === name);
  if (index < 0) throw new ApiError('PROFILE_NOT_FOUND', vhost.name, app.name, name);
  return index;
}

/** Checks the members that this endpoint requires. */
function requireProfile(candidate: unknown): void {
  const name = memberOf(candidate, 'name');
  const outputStreamName = memberOf(candidate, 'outputStreamName');
  const encodes = memberOf(candidate, 'encodes');
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
}
