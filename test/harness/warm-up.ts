/**
 * Runs once before the end-to-end tests: starts and stops a server and transcoder processes, whose compiled code later ones use, and makes
 * the films that most encoders send.
 */
import { makeFilms } from './sent-films.ts';
import { startServer } from './server.ts';
import { setup as warmTranscoder } from './warm-transcoder.ts';

const KEY = Symbol.for('millrace.warm-up');
/** Each project loads this file anew. */
const shared = globalThis as typeof globalThis & { [KEY]?: Promise<void> };

export async function setup(): Promise<void> {
  shared[KEY] ??= warmUp();
  await shared[KEY];
}

async function warmUp(): Promise<void> {
  await Promise.all([makeFilms(), warmTranscoder()]);
  const server = await startServer({ webrtc: {} });
  // Compiled code is only written by an orderly stop.
  await server.close();
}
