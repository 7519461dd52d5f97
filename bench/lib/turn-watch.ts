/** Measures the turns of a server's main thread with a timer of the bench, which `turn-watch.mjs` adds to the server. */
import { connect } from 'node:net';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';

/** `env` is for the server; `delays` takes the delays of the timer since the last call, ms, in which a long turn counts each 10 ms. */
export interface TurnWatch {
  readonly env: Readonly<Record<string, string>>;
  delays(): Promise<readonly number[]>;
}

/** `options`: further options of Node.js for the server. */
export function turnWatch(options = ''): TurnWatch {
  const preload = fileURLToPath(new URL('./turn-watch.mjs', import.meta.url));
  const socket = path.join('/tmp', `turn-watch-${process.pid}-${Date.now()}.sock`);
  return {
    env: { NODE_OPTIONS: `--import ${preload} ${options}`, TURN_WATCH: socket },
    delays: async () => JSON.parse(await text(connect(socket))) as number[],
  };
}
