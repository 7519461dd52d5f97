/** Compiled code that all servers of the tests share: a start is half the work with it, and no test waits for it to be written. */
import { fileURLToPath } from 'node:url';

/** For the environment of a server that is to find the shared code; `warm-up.ts` has written it. */
export const COMPILED: NodeJS.ProcessEnv = {
  NODE_COMPILE_CACHE: fileURLToPath(new URL('../../node_modules/.cache/millrace-tests', import.meta.url)),
};
