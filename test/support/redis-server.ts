/** A real Redis server on a free port, that keeps nothing on disk. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import net from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { requireProgram } from '../../scripts/ensure-tools.ts';
import { freePorts } from '../harness/ports.ts';

export class RedisServer {
  readonly port: number;
  readonly #password: string | null;
  readonly #more: readonly string[];
  #child: ChildProcess;

  private constructor(port: number, password: string | null, more: readonly string[]) {
    this.port = port;
    this.#password = password;
    this.#more = more;
    this.#child = this.#spawn();
  }

  /** `more`: further arguments of the program; `--sentinel` needs the file of its configuration as the first. */
  static async start(password: string | null = null, more: readonly string[] = [], ownPort?: number): Promise<RedisServer> {
    const port = ownPort ?? (await freePorts(1))[0] ?? 0;
    const server = new RedisServer(port, password, more);
    await server.#listens();
    return server;
  }

  get address(): string {
    return `127.0.0.1:${this.port}`;
  }

  /** Sends one command as words; resolves with the text of the answer. */
  async ask(...words: string[]): Promise<string> {
    const socket = net.connect(this.port, '127.0.0.1');
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

  /** It takes connections and answers nothing. */
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

  /** Starts it again, empty. */
  async restart(): Promise<void> {
    await this.stop();
    this.#child = this.#spawn();
    await this.#listens();
  }

  #spawn(): ChildProcess {
    const isSentinel = this.#more.includes('--sentinel');
    const own = ['--port', `${this.port}`, '--bind', '127.0.0.1'];
    const options = isSentinel ? own : [...own, '--save', '', '--appendonly', 'no'];
    const password = this.#password === null ? [] : ['--requirepass', this.#password];
    const [file = '', ...others] = this.#more;
    const all = file.startsWith('-') ? [...options, ...password, ...this.#more] : [file, ...options, ...password, ...others];
    return spawn(
      requireProgram('redis-server'),
      all.filter((word, index) => index > 0 || word !== ''),
      { stdio: 'ignore', cwd: '/tmp' },
    );
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
