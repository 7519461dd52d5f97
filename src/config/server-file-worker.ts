/** The thread that reads large configuration files: see `server-file-thread.ts`. */
import { serialize } from 'node:v8';
import { answerWork } from '../util/work-answer.ts';
import { type ConfigError, ConfigErrors, type ConfigWarning, type Place } from './problem.ts';
import type { Resource } from './resources.ts';
import { useKeySalt } from './schema/access-keys.ts';
import type { ApplicationConfig } from './schema/application.ts';
import { type LoadedServer, loadServerConfig } from './server-file.ts';
import type { ObjectPlaces, ReadApplication, ServerFileAnswer, ServerFileJob } from './server-file-thread.ts';

answerWork(({ file, keySalt }: ServerFileJob): ServerFileAnswer => {
  useKeySalt(keySalt);
  try {
    const { placeOf, ...loaded } = loadServerConfig(file);
    const applications = loaded.virtualHosts.map((host) => host.applications.map((resource) => bytesOf(resource, placeOf)));
    const rest = withoutApplications(loaded);
    return { loaded: rest, places: placesIn(rest.config, placeOf), applications };
  } catch (error) {
    if (!(error instanceof ConfigErrors)) throw error;
    return { errors: error.errors.map(plain), warnings: error.warnings };
  }
});

/** Only the places of MPEG-TS streams are asked for, of the thousands of objects of applications. */
function bytesOf(resource: Resource<ApplicationConfig>, placeOf: LoadedServer['placeOf']): Uint8Array {
  return serialize({ resource, places: placesIn(resource.typed.providers?.mpegts?.streams, placeOf) } satisfies ReadApplication);
}

/** Takes the applications out of the configuration. */
function withoutApplications<Loaded extends Pick<LoadedServer, 'config' | 'virtualHosts'>>(loaded: Loaded): Loaded {
  for (const { typed } of loaded.virtualHosts) (typed.applications as ApplicationConfig[]).length = 0;
  return { ...loaded, virtualHosts: loaded.virtualHosts.map((host) => ({ ...host, applications: [] })) };
}

function placesIn(root: unknown, placeOf: LoadedServer['placeOf']): Map<object, ObjectPlaces> {
  const places = new Map<object, ObjectPlaces>();
  const note = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return;
    const members: [string, Place][] = [];
    for (const [key, member] of Object.entries(value)) {
      members.push([key, placeOf(value, key)]);
      note(member);
    }
    if (!Array.isArray(value)) places.set(value, { own: placeOf(value), members: Object.fromEntries(members) });
  };
  note(root);
  return places;
}

function plain({ message, path, file, line }: ConfigError): ConfigWarning {
  return { message, path, ...(file !== undefined && { file }), ...(line !== undefined && { line }) };
}
