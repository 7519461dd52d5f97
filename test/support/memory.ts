/** Memory of this process after garbage collection, for tests that look for growth. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

let collect: (() => void) | null = null;

/** Bytes: the heap of JavaScript, and the whole process including threads of the addon. */
export async function memoryInUse(): Promise<{ readonly held: number; readonly resident: number }> {
  if (collect === null) {
    setFlagsFromString('--expose-gc');
    collect = runInNewContext('gc') as () => void;
  }
  // Finalizers of native handles run between two collections.
  for (let round = 0; round < 3; round += 1) {
    collect();
    await new Promise((resolve) => setImmediate(resolve));
  }
  const { heapUsed, external, rss } = process.memoryUsage();
  return { held: heapUsed + external, resident: rss };
}
