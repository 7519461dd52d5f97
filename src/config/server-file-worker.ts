/** The thread that reads large configuration files: see `server-file-thread.ts`. */
import { answerWork } from '../util/work-answer.ts';
import { type ConfigError, ConfigErrors, type ConfigWarning, type Place } from './problem.ts';
import { useKeySalt } from './schema/access-keys.ts';
import { type LoadedServer, loadServerConfig } from './server-file.ts';
import type { ObjectPlaces, ServerFileAnswer, ServerFileJob } from './server-file-thread.ts';

answerWork(({ file, keySalt }: ServerFileJob): ServerFileAnswer => {
  useKeySalt(keySalt);
  try {
    const { placeOf, ...loaded } = loadServerConfig(file);
    return { loaded, places: placesIn(loaded, placeOf) };
  } catch (error) {
    if (!(error instanceof ConfigErrors)) throw error;
    return { errors: error.errors.map(plain), warnings: error.warnings };
  }
});

/** Applications have thousands of objects, whose places nobody asks for, except those of MPEG-TS streams. */
function placesIn({ config }: Pick<LoadedServer, 'config'>, placeOf: LoadedServer['placeOf']): Map<object, ObjectPlaces> {
  const places = new Map<object, ObjectPlaces>();
  const note = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return;
    const members: [string, Place][] = [];
    for (const [key, member] of Object.entries(value)) {
      members.push([key, placeOf(value, key)]);
      if (key !== 'applications') note(member);
    }
    if (!Array.isArray(value)) places.set(value, { own: placeOf(value), members: Object.fromEntries(members) });
  };
  note(config);
  for (const { applications } of config.virtualHosts) {
    for (const { providers } of applications) note(providers?.mpegts?.streams);
  }
  return places;
}

function plain({ message, path, file, line }: ConfigError): ConfigWarning {
  return { message, path, ...(file !== undefined && { file }), ...(line !== undefined && { line }) };
}
