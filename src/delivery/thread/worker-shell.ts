/** Runs an egress thread inside a worker. The file a worker starts with calls this with its table of views. */
import { parentPort, workerData } from 'node:worker_threads';
import { systemClock } from '../../util/clock.ts';
import type { FromThread, ThreadSettings, ToThread } from '../thread-protocol.ts';
import { EgressThread } from './egress-thread.ts';
import type { ViewFactories } from './outlet-registry.ts';

export function runEgressWorker(views: ViewFactories): void {
  const port = parentPort;
  if (port === null) throw new Error('an egress worker must be started as a worker thread');
  const thread = new EgressThread({
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
