/** The entry point of a delivery thread. */

import { runDeliveryWorker } from './delivery/thread/worker-shell.ts';
import { VIEWS } from './delivery-views.ts';

runDeliveryWorker(VIEWS);
