/** A real Redis server on a free port, which keeps nothing on disk. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import net from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { requireProgram } from '../../scripts/ensure-tools.ts';
import { freePorts } from '../harness/ports.ts';

/** Its host, and how programs are run there. */
export interface RedisHost {
  readonly address: string;
  readonly at: readonly string[];
}

const THIS_HOST: RedisHost = { address: '127.0.0.1', at: [] };

export class RedisServer {
  readonly port: number;
  readonly #password: string | null;
  readonly #more: readonly string[];
  readonly #host: RedisHost;
  #child: ChildProcess;

  private constructor(port: number, password: string | null, more: readonly string[], host: RedisHost) {
    this.port = port;
    this.#password = password;
    this.#more = more;
    this.#host = host;
    this.#child = this.#spawn();
  }

  /** `more`: further arguments of the program; `--sentinel` needs the path of its configuration first. */
  static async start(
    password: string | null = null,
    more: readonly string[] = [],
    ownPort?: number,
    host: RedisHost = THIS_HOST,
  ): Promise<RedisServer> {
    const port = ownPort ?? (await freePorts(1))[0] ?? 0;
    const server = new RedisServer(port, password, more, host);
    await server.#listens();
    return server;
  }

  get address(): string {
    return `${this.#host.address}:${this.port}`;
  }

  /** Sends a command given as words; resolves with the text of the answer. */
  async ask(...words: string[]): Promise<string> {
    const socket = net.connect(this.port, this.#host.address);
    const lines = [...(this.#password === null ? [] : [`AUTH ${this.#password}`]), words.join(' '), 'QUIT'];
    socket.end(lines.map((line) => `${line}\r\n`).join(''));
    let text = '';
    for await (const piece of socket) text += String(piece);
    return text
      .split('\r\n')
      .slice(this.#password === null ? 0 : 1, -2)
      .join('\n');
  }

  /** The value of a key; null when there is none. */
  async value(key: string): Promise<string | null> {
    const [head, value = ''] = (await this.ask('GET', key)).split('\n');
    return head === '$-1' ? null : value;
  }

  /** From now on it accepts connections but answers nothing. */
  hang(): void {
    this.#child.kill('SIGSTOP');
  }

  wakeUp(): void {
    this.#child.kill('SIGCONT');
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exit = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await exit;
  }

  /** Restarts it without its data. */
  async restart(): Promise<void> {
    await this.stop();
    this.#child = this.#spawn();
    await this.#listens();
  }

  #spawn(): ChildProcess {
    const isSentinel = this.#more.includes('--sentinel');
    const own = ['--port', `${this.port}`, '--bind', this.#host.address];
    const options = isSentinel ? own : [...own, '--save', '', '--appendonly', 'no'];
    const password = this.#password === null ? [] : ['--requirepass', this.#password];
    const [file = '', ...others] = this.#more;
    const all = file.startsWith('-') ? [...options, ...password, ...this.#more] : [file, ...options, ...password, ...others];
    const words = all.filter((word, index) => index > 0 || word !== '');
    const [program = '', ...args] = [...this.#host.at, requireProgram('redis-server'), ...words];
    return spawn(program, args, { stdio: 'ignore', cwd: '/tmp' });
  }

  async #listens(): Promise<void> {
    for (;;) {
      const answer = await this.ask('PING').catch(() => '');
      if (answer === '+PONG') return;
      if (this.#child.exitCode !== null) throw new Error(`redis-server ended with ${this.#child.exitCode}`);
      await delay(20);
    }
  }
}
