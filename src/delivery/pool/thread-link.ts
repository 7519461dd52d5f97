/** The main thread's end of a delivery thread in a worker; `local-thread.ts` has the other kind. */
import { getCompileCacheDir } from 'node:module';
import { dirname } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { FromThread, ThreadSettings, ToThread } from '../thread-protocol.ts';

/** Delivers messages in order. Messages of the thread go to the `ThreadLinkOwner` it was started with. */
export interface ThreadLink {
  post(messages: readonly ToThread[]): void;
  /** Ends the thread at once. */
  terminate(): Promise<void>;
}

/** Receives messages and the end of a thread. */
export interface ThreadLinkOwner {
  message(message: FromThread): void;
  /** The thread has ended, on request or not; `reason` is for the log. */
  exited(reason: string): void;
}

/** Starts a thread from the file `entry`. A failed start is reported by `exited` too. */
export function startWorker(entry: URL, settings: ThreadSettings, owner: ThreadLinkOwner): ThreadLink {
  const compiled = getCompileCacheDir();
  const worker = new Worker(entry, {
    workerData: settings,
    name: `delivery-${settings.incarnation}`,
    // Set by the environment, because the first file of the worker is compiled before it could enable the cache.
    ...(compiled !== undefined && { env: { ...process.env, NODE_COMPILE_CACHE: dirname(compiled) } }),
  });
  let reason = '';
  // The owner must catch its own exceptions: see DeliveryPool.
  worker.on('message', (message: FromThread) => owner.message(message));
  worker.on('error', (error) => {
    reason = error instanceof Error ? (error.stack ?? error.message) : String(error);
  });
  worker.on('exit', (code) => owner.exited(reason === '' ? `exit code ${code}` : reason));
  return {
    post: (messages) => worker.postMessage(messages),
    terminate: async () => {
      await worker.terminate();
    },
  };
}
