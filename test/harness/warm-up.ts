/**
 * Runs once before the end-to-end tests: starts and stops a server, whose compiled code later servers use, and makes the films that most
 * encoders send.
 */
import { makeFilms } from './sent-films.ts';
import { startServer } from './server.ts';

export async function setup(): Promise<void> {
  await makeFilms();
  const server = await startServer({ webrtc: {} });
  // Compiled code is only written by an orderly stop.
  await server.close();
}
