/** A child process with captured output. */
import { type ChildProcess, spawn } from 'node:child_process';
import { until, within } from './poll.ts';

export interface ChildExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** Limit of captured output per stream, characters; older text is dropped. */
const MAX_OUTPUT = 4_000_000;
const STOP_DEADLINE_MS = 10_000;

export interface ChildOptions {
  readonly cwd?: string;
  readonly env?: NodeJS.ProcessEnv;
  readonly name?: string;
  /** Descriptor of its standard error; default: a pipe whose text is captured. */
  readonly stderr?: number | undefined;
  /** It leads its own process group, which `signalGroup` signals. Default: the group of the tests. */
  readonly ownGroup?: boolean;
}

/** One running program. Its creator ends it with `stop` or `kill`. */
export class Child {
  readonly name: string;
  readonly exited: Promise<ChildExit>;
  readonly #process: ChildProcess;
  #stdout = '';
  #stderr = '';
  #exit: ChildExit | null = null;

  constructor(command: string, args: readonly string[], options: ChildOptions = {}) {
    this.name = options.name ?? command;
    this.#process = spawn(command, args, {
      cwd: options.cwd,
      env: options.env,
      stdio: ['ignore', 'pipe', options.stderr ?? 'pipe'],
      detached: options.ownGroup === true,
    });
    this.#process.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.#stdout = (this.#stdout + text).slice(-MAX_OUTPUT);
    });
    this.#process.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#stderr = (this.#stderr + text).slice(-MAX_OUTPUT);
    });
    this.exited = new Promise((resolve) => {
      this.#process.once('error', (error) => {
        this.#stderr += `${this.name} did not start: ${error.message}\n`;
        this.#exit = { code: null, signal: null };
        resolve(this.#exit);
      });
      this.#process.once('close', (code, signal) => {
        this.#exit = { code, signal };
        resolve(this.#exit);
      });
    });
  }

  get pid(): number {
    const { pid } = this.#process;
    if (pid === undefined) throw new Error(`${this.name} did not start`);
    return pid;
  }

  get stdout(): string {
    return this.#stdout;
  }

  get stderr(): string {
    return this.#stderr;
  }

  /** Both outputs, for messages of failed tests. */
  get output(): string {
    return `${this.#stdout}\n${this.#stderr}`;
  }

  /** Its exit, or null while it runs. */
  get exit(): ChildExit | null {
    return this.#exit;
  }

  signal(name: NodeJS.Signals): void {
    if (this.#exit === null) this.#process.kill(name);
  }

  /** Signals the process and all its descendants; requires `ownGroup`. */
  signalGroup(name: NodeJS.Signals): void {
    if (this.#exit === null) process.kill(-this.pid, name);
  }

  /** Waits for `pattern` in the output; throws at once if the program ends without printing it. Errors contain the last output. */
  async printed(pattern: RegExp, deadlineMs: number): Promise<RegExpMatchArray> {
    const look = (): RegExpMatchArray | null => {
      const match = pattern.exec(this.output);
      if (match === null && this.#exit !== null) throw new ChildEnded(this);
      return match;
    };
    try {
      return await until(`${this.name} prints ${pattern}`, look, { deadlineMs, giveUp: (error) => error instanceof ChildEnded });
    } catch (error) {
      if (error instanceof ChildEnded) throw error;
      throw new Error(`${String(error)}\n${this.output.slice(-2000)}`, { cause: error });
    }
  }

  /** Waits until it ends by itself. */
  async ended(deadlineMs: number): Promise<ChildExit> {
    return await within(`${this.name} ends\n${this.output.slice(-2000)}`, deadlineMs, this.exited);
  }

  /** Asks it to end, and kills it if it does not. Idempotent. */
  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<ChildExit> {
    this.signal(signal);
    const hard = setTimeout(() => this.signal('SIGKILL'), STOP_DEADLINE_MS);
    try {
      return await this.exited;
    } finally {
      clearTimeout(hard);
    }
  }

  /** `kill -9`. */
  async kill(): Promise<ChildExit> {
    return await this.stop('SIGKILL');
  }
}

/** A program ended before it printed the awaited line. */
class ChildEnded extends Error {
  override readonly name = 'ChildEnded';
  constructor(child: Child) {
    super(`${child.name} ended with ${JSON.stringify(child.exit)}:\n${child.output.slice(-4000)}`);
  }
}
