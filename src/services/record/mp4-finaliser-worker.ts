/** The thread that finishes recordings: see `finalise.ts`. */
import { parentPort } from 'node:worker_threads';
import { Semaphore } from '../../util/semaphore.ts';
import type { FinaliserAnswer, FinaliserJob } from './finalise.ts';
import { finaliseMp4 } from './mp4-finaliser.ts';

/** While one waits for the disk the next is processed; the tables of many would need much memory at once. */
const MAX_AT_ONCE = 2;
const semaphore = new Semaphore(MAX_AT_ONCE);

parentPort?.on('message', async ({ id, path }: FinaliserJob) => parentPort?.postMessage(await answerFor(id, path)));

async function answerFor(id: number, path: string): Promise<FinaliserAnswer> {
  try {
    return { id, finalised: await semaphore.take(() => finaliseMp4(path)) };
  } catch (error) {
    const { code, errno } = error as NodeJS.ErrnoException;
    return { id, error, code, errno };
  }
}
