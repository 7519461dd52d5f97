/** Starts a delivery worker whose LL-HLS, HLS and thumbnail views are shelves. */
import { runDeliveryWorker } from '../../src/delivery/thread/worker-shell.ts';
import { BLOB_VIEWS } from './blob-views.ts';

runDeliveryWorker(BLOB_VIEWS);
