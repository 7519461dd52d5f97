/** Runs a delivery thread inside a worker. The file a worker starts with calls this with its table of views. */
import { parentPort, workerData } from 'node:worker_threads';
import { systemClock } from '../../util/clock.ts';
import type { ViewFactories } from '../feed/view.ts';
import type { FromThread, ThreadSettings, ToThread } from '../thread-protocol.ts';
import { DeliveryThread } from './delivery-thread.ts';

export function runDeliveryWorker(views: ViewFactories): void {
  const port = parentPort;
  if (port === null) throw new Error('a delivery worker must be started as a worker thread');
  const thread = new DeliveryThread({
    settings: workerData as ThreadSettings,
    views,
    clock: systemClock,
    post: (message: FromThread) => {
      port.postMessage(message);
      if (message.type === 'stopped') port.close();
    },
  });
  port.on('message', (messages: readonly ToThread[]) => thread.receive(messages));
}
