/**
 * Preloaded into the server by `NODE_OPTIONS=--import`. After a garbage collection, tells each client of the Unix socket
 * `MILLRACE_DIAGNOSTICS` the heap of JavaScript and the resources that keep the process alive, as a line of JSON.
 */
import { createServer } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { isMainThread } from 'node:worker_threads';

/** The server's own figures. */
export interface Diagnostics {
  readonly heapUsed: number;
  readonly external: number;
  readonly arrayBuffers: number;
  /** Number of resources by kind: `Timeout`, `TCPSocketWrap`, …. */
  readonly resources: Readonly<Record<string, number>>;
}

const { MILLRACE_DIAGNOSTICS: place } = process.env;
const COLLECTIONS = 3;

// Transcoder processes inherit the option, and threads load it as well.
if (place !== undefined && isMainThread && process.argv.includes('serve')) {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    void (async () => {
      // Finalizers of native handles run between two collections.
      for (let round = 0; round < COLLECTIONS; round += 1) {
        collect();
        await new Promise((resolve) => setImmediate(resolve));
      }
      const { heapUsed, external, arrayBuffers } = process.memoryUsage();
      const resources: Record<string, number> = {};
      for (const kind of process.getActiveResourcesInfo()) resources[kind] = (resources[kind] ?? 0) + 1;
      socket.end(JSON.stringify({ heapUsed, external, arrayBuffers, resources } satisfies Diagnostics));
    })();
  });
  server.listen(place).unref();
}
