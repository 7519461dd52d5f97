/**
 * Preloaded into a server (`NODE_OPTIONS=--import …`): measures its main thread independently of the server's metric. A timer due every 10
 * ms records its delay; a client of the socket `TURN_WATCH` gets the records since the last connection, as JSON. Plain JavaScript, because
 * the first TypeScript file would load a compiler.
 */
import { createServer } from 'node:net';
import { isMainThread } from 'node:worker_threads';

const INTERVAL_MS = 10;
const path = process.env['TURN_WATCH'];

if (isMainThread && path !== undefined) {
  // Child processes of the server are not watched.
  delete process.env['TURN_WATCH'];
  delete process.env['NODE_OPTIONS'];
  /** @type {number[]} */
  let late = [];
  let due = performance.now() + INTERVAL_MS;
  setInterval(() => {
    const now = performance.now();
    // Timers fire on whole milliseconds. All times that were due meanwhile were late, too.
    if (now <= due) late.push(0);
    else for (; due < now; due += INTERVAL_MS) late.push(now - due);
    due = now + INTERVAL_MS;
  }, INTERVAL_MS).unref();
  createServer((socket) => {
    socket.on('error', () => {});
    socket.end(JSON.stringify(late.map((one) => Math.round(one * 100) / 100)));
    late = [];
  })
    .listen(path)
    .unref();
}
