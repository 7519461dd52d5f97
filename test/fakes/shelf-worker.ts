/** Starts a delivery worker whose LL-HLS, HLS and thumbnail views are shelves. */
import { runDeliveryWorker } from '../../src/delivery/thread/worker-shell.ts';
import { SHELF_VIEWS } from './shelf-views.ts';

runDeliveryWorker(SHELF_VIEWS);
