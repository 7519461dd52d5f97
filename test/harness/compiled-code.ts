/** Compiled code shared by all processes of the tests: it halves the work of a start, and no test waits for it to be written. */
import { fileURLToPath } from 'node:url';

/** Environment of a process that uses the shared code; `warm-up.ts` has written the server's. */
export const COMPILED: NodeJS.ProcessEnv = {
  NODE_COMPILE_CACHE: fileURLToPath(new URL('../../node_modules/.cache/millrace-tests', import.meta.url)),
};
