/** Compiled code that all processes of the tests share: a start of the server is half the work with it, and no test waits for it to be written. */
import { fileURLToPath } from 'node:url';

/** For the environment of a process that is to find the shared code; `warm-up.ts` has written that of the server. */
export const COMPILED: NodeJS.ProcessEnv = {
  NODE_COMPILE_CACHE: fileURLToPath(new URL('../../node_modules/.cache/millrace-tests', import.meta.url)),
};
