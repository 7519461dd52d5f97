/** Finishes one recording in a thread of its own: see `finalise.ts`. */
import { parentPort, workerData } from 'node:worker_threads';
import { finaliseMp4 } from './mp4-finaliser.ts';

const { path } = workerData as { readonly path: string };
parentPort?.postMessage(await finaliseMp4(path));
