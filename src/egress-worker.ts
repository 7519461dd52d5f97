/** What an egress worker thread starts with. */

import { runEgressWorker } from './delivery/thread/worker-shell.ts';
import { VIEWS } from './egress-views.ts';

runEgressWorker(VIEWS);
