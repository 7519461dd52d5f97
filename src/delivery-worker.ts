/** What a delivery thread starts with. */

import { runDeliveryWorker } from './delivery/thread/worker-shell.ts';
import { VIEWS } from './delivery-views.ts';

runDeliveryWorker(VIEWS);
