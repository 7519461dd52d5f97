/** Shows what a reload of the configuration would change in the running server. */
import { changeSentence, configChanges, keySalt, loadServerConfig, sealed, useKeySalt } from '../config/index.ts';
import { readRunningConfig } from '../state/running-config.ts';
import { StateLock } from '../state/state-lock.ts';
import { counted } from '../util/counted.ts';

/** Lines for the terminal, and whether there is a server to compare with. */
export interface Comparison {
  readonly lines: readonly string[];
  readonly isRunning: boolean;
}

/**
 * Compares `file`, a valid configuration, with the configuration of the server that runs in this state folder: the server keeps a copy
 * there, with sealed secrets. `${env:…}` has the values of this process. Throws the errors of reading either.
 */
export function compareWithRunning(file: string, stateFolder: string): Comparison {
  const holder = StateLock.holder(stateFolder);
  const running = holder === null ? null : readRunningConfig(stateFolder);
  if (running === null) return { lines: [`no server runs with the state folder '${stateFolder}'`], isRunning: false };
  const own = keySalt();
  useKeySalt(running.keySalt);
  try {
    const changes = configChanges(running.config, sealed(loadServerConfig(file).config, running.seal));
    const lines = changes.map((change) => `change: ${changeSentence(change)}`);
    const late = changes.filter(({ effect }) => effect === 'restart').length;
    const applications = new Set(
      changes.flatMap(({ effect, application }) => (effect === 'application' ? [`${application?.vhost}/${application?.app}`] : [])),
    );
    const end = `${counted(changes.length, 'change')} against ${holder}, ${counted(applications.size, 'application')} to restart, ${late} only with a restart of the server`;
    return { lines: [...lines, changes.length === 0 ? `no changes against ${holder}` : end], isRunning: true };
  } finally {
    useKeySalt(own);
  }
}
