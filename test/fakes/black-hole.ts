/** A host on which connections hang: its queue is full, so the kernel drops new connections. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import net from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

/** A program that listens, prints its address, and never accepts a connection. */
const PROGRAM = `
  const server = require('node:net').createServer();
  server.listen({ host: '127.0.0.1', port: 0, backlog: 1 }, () => {
    require('node:fs').writeSync(1, server.address().port + '\\n');
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  });`;
/** More connections than fit into the queue. */
const MAX_FILLERS = 16;
/** On loopback an accepted connection is reported within this time. */
const CONNECT_MS = 300;

export class BlackHole {
  readonly port: number;
  readonly #child: ChildProcess;
  readonly #fillers: readonly net.Socket[];

  private constructor(port: number, child: ChildProcess, fillers: readonly net.Socket[]) {
    this.port = port;
    this.#child = child;
    this.#fillers = fillers;
  }

  static async start(): Promise<BlackHole> {
    const child = spawn(process.execPath, ['-e', PROGRAM], { stdio: ['ignore', 'pipe', 'inherit'] });
    const [told] = (await once(child.stdout, 'data')) as [Buffer];
    const port = Number(told.toString());
    const fillers: net.Socket[] = [];
    for (let isFull = false; !isFull; ) {
      const socket = net.connect(port, '127.0.0.1').on('error', () => undefined);
      fillers.push(socket);
      await Promise.race([once(socket, 'connect'), delay(CONNECT_MS)]);
      // After a stall of the process, timers run before the connection is reported.
      await new Promise((resolve) => setImmediate(resolve));
      isFull = socket.connecting;
      if (fillers.length > MAX_FILLERS) throw new Error('the queue of connections has no end');
    }
    return new BlackHole(port, child, fillers);
  }

  async stop(): Promise<void> {
    for (const socket of this.#fillers) socket.destroy();
    const exit = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await exit;
  }
}
