/** The main thread's end of a delivery thread that is a worker; `local-thread.ts` has the other kind. */
import { getCompileCacheDir } from 'node:module';
import { dirname } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { FromThread, ThreadSettings, ToThread } from '../thread-protocol.ts';

/** Delivers messages in order. Messages of the thread go to the `ThreadLinkOwner` it was started with. */
export interface ThreadLink {
  post(messages: readonly ToThread[]): void;
  /** Ends the thread without waiting for anything. */
  terminate(): Promise<void>;
}

/** Listener of a thread. */
export interface ThreadLinkOwner {
  message(message: FromThread): void;
  /** The thread is gone, asked for or not; `reason` for the log. */
  exited(reason: string): void;
}

/** Starts a thread from the file `entry`. That it could not start, or has ended, comes as `exited`. */
export function startWorker(entry: URL, settings: ThreadSettings, owner: ThreadLinkOwner): ThreadLink {
  const compiled = getCompileCacheDir();
  const worker = new Worker(entry, {
    workerData: settings,
    name: `delivery-${settings.incarnation}`,
    // Its first file is looked for there, too.
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
