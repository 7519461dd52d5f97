/** What vitest does once before end-to-end tests: a server starts and stops, so that those of the tests find its compiled code. */
import { startServer } from './server.ts';

export async function setup(): Promise<void> {
  const server = await startServer({ webrtc: {} });
  // Only an orderly stop writes it.
  await server.close();
}
