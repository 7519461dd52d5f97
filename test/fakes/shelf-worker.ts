/** Starts an egress worker whose LL-HLS, HLS and thumbnail views are shelves. */
import { runEgressWorker } from '../../src/delivery/thread/worker-shell.ts';
import { SHELF_VIEWS } from './shelf-views.ts';

runEgressWorker(SHELF_VIEWS);
