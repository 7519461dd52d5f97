/** Finishes MP4 recordings without holding up the event loop. */
import { stat } from 'node:fs/promises';
import type { Worker } from 'node:worker_threads';
import { entryFile } from '../../util/entry-file.ts';
import { WorkThread } from '../../util/work-thread.ts';
import { type Finalised, finaliseMp4 } from './mp4-finaliser.ts';

/** Sample tables of a larger file take more than a few milliseconds to write at once (measured: 8 ms for an hour of 30 fps). */
const LARGE = 64 * 1024 * 1024;
/** While one waits for the disk the next is processed; the tables of many would need much memory at once. */
const MAX_AT_ONCE = 2;
const IDLE_MS = 60_000;
const ENTRY = entryFile('./mp4-finaliser-worker', import.meta.url);

/** Finishes the file of each path. It takes as long as the disk does, so there is no deadline. `start` is for tests. */
export function finaliserThread(start?: () => Worker): WorkThread<string, Finalised> {
  return new WorkThread({ entry: ENTRY, name: 'finaliser', most: MAX_AT_ONCE, idle: IDLE_MS, start });
}

const shared = finaliserThread();

/** Like `finaliseMp4`; large files are finished in a thread of their own, and rejected as well when it ends meanwhile. */
export async function finalise(path: string, large = LARGE): Promise<Finalised> {
  const { size } = await stat(path);
  return size < large ? finaliseMp4(path) : shared.run(path);
}
