/** What an egress worker thread starts with. */
import { VIEWS } from './views.ts';
import { runEgressWorker } from './worker-shell.ts';

runEgressWorker(VIEWS);
