/** Finishes MP4 recordings without holding up the event loop. */
import { stat } from 'node:fs/promises';
import { Worker } from 'node:worker_threads';
import { type Finalised, finaliseMp4 } from './mp4-finaliser.ts';

/** Sample tables of a larger file take more than a few milliseconds to write at once (measured: 8 ms for an hour of 30 fps). */
const LARGE = 64 * 1024 * 1024;
/** Also after a build. */
const ENTRY = new URL(import.meta.url.endsWith('.ts') ? './mp4-finaliser-worker.ts' : './mp4-finaliser-worker.js', import.meta.url);

/** Like `finaliseMp4`; a large file is finished in a thread of its own. The thread does not keep the process alive. */
export async function finalise(path: string, large = LARGE): Promise<Finalised> {
  const { size } = await stat(path);
  return size < large ? finaliseMp4(path) : inWorker(path);
}

function inWorker(path: string): Promise<Finalised> {
  const worker = new Worker(ENTRY, { workerData: { path }, name: 'finaliser' });
  worker.unref();
  return new Promise((resolve, reject) => {
    worker.once('message', resolve);
    worker.once('error', reject);
    worker.once('exit', (code) => reject(new Error(`the thread that finishes ${path} ended with ${code}`)));
  });
}
