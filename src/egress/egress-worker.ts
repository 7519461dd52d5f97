/** What an egress worker thread starts with: the compile cache of the process first, then everything else. */
import { enableCompileCache } from 'node:module';
import { workerData } from 'node:worker_threads';

const { codeCache } = workerData as { codeCache?: string };
if (codeCache !== undefined) enableCompileCache(codeCache);

const [{ VIEWS }, { runEgressWorker }] = await Promise.all([import('./views.ts'), import('./worker-shell.ts')]);
runEgressWorker(VIEWS);
