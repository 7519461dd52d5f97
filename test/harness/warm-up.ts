/**
 * Runs once before the end-to-end tests: a server starts and stops, so that the servers of the tests find its compiled code, and the films
 * that most encoders send are made.
 */
import { makeFilms } from './sent-films.ts';
import { startServer } from './server.ts';

export async function setup(): Promise<void> {
  await makeFilms();
  const server = await startServer({ webrtc: {} });
  // Only an orderly stop writes it.
  await server.close();
}
