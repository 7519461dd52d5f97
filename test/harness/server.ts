/** Starts the real server as a child process, on free ports, with its own state folder. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { ApiClient } from './api-client.ts';
import { Child, type ChildExit } from './child.ts';
import { COMPILED } from './compiled-code.ts';
import { freePorts } from './ports.ts';
import { ACCESS_TOKEN, type ServerPorts, type ServerSettings, serverXml } from './server-xml.ts';

export const ROOT = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
export const MAIN = path.join(ROOT, 'scripts/start.mjs');

/** The server prints this when every port listens. */
const READY = /\bready\b/i;
const READY_DEADLINE_MS = 45_000;

export interface StartOptions extends ServerSettings {
  /** Ports to use in place of free ones. */
  readonly ports?: Partial<ServerPorts>;
  /** Working folder of the process; default: its temporary folder. */
  readonly cwd?: string;
  readonly env?: NodeJS.ProcessEnv;
  /** The program; default: the one in `src`. */
  readonly main?: string;
  /** State folder; default: a new one, deleted with the server. */
  readonly state?: string;
  /** Descriptor of its log; default: a pipe whose text is captured. */
  readonly stderr?: number;
  /** Keeps compiled code in its own state folder. Default: the folder in `COMPILED`, which saves each start and stop a second. */
  readonly compileCache?: boolean;
  /** Runs the server on this CPU only; it then has one delivery thread. */
  readonly cpu?: number;
  /** Limit of file descriptors (`ulimit -n`). */
  readonly descriptors?: number;
  /** Another host: its address, and the prefix of a command line that runs there. */
  readonly host?: { readonly address: string; readonly at: readonly string[] };
}

/** A server with its folders. `close` ends it and removes them. */
export class TestServer {
  readonly folder: string;
  readonly config: string;
  readonly state: string;
  readonly ports: ServerPorts;
  readonly api: ApiClient;
  readonly #options: StartOptions;
  readonly #address: string;
  #child: Child;
  #startedAt = 0;

  constructor(folder: string, ports: ServerPorts, options: StartOptions) {
    this.folder = folder;
    this.config = path.join(folder, 'Server.xml');
    this.state = options.state ?? path.join(folder, 'state');
    this.ports = ports;
    this.#options = options;
    this.#address = options.host?.address ?? '127.0.0.1';
    this.api = new ApiClient(`http://${this.#address}:${ports.api}`, options.accessToken ?? ACCESS_TOKEN);
    mkdirSync(this.state, { recursive: true });
    writeFileSync(this.config, serverXml(ports, options));
    this.#child = this.#spawn();
  }

  get child(): Child {
    return this.#child;
  }

  get pid(): number {
    return this.#child.pid;
  }

  /** `performance.now()` just before the process was last started. */
  get startedAt(): number {
    return this.#startedAt;
  }

  /** Everything printed since the last start. */
  get log(): string {
    return this.#child.output;
  }

  /** `rtmp://…/app/stream`. */
  rtmp(stream: string, app = 'app', host = this.#address): string {
    return `rtmp://${host}:${this.ports.rtmp}/${app}/${stream}`;
  }

  /** `http://…/app/stream/file`. */
  http(stream: string, file: string, app = 'app', host = this.#address): string {
    return `http://${host}:${this.ports.http}/${app}/${stream}/${file}`;
  }

  /** Waits until the server reports that it is ready. */
  async ready(): Promise<void> {
    await this.#child.printed(READY, READY_DEADLINE_MS);
  }

  /** Restarts with the same configuration and state after the process has ended; `args` are additional arguments. */
  async restart(...args: string[]): Promise<void> {
    await this.respawn(...args);
    await this.ready();
  }

  /** As `restart`, without waiting until the server is ready. */
  async respawn(...args: string[]): Promise<void> {
    await this.#child.stop();
    this.#child = this.#spawn(args);
  }

  /** `kill -9`. */
  async kill(): Promise<ChildExit> {
    return await this.#child.kill();
  }

  async stop(): Promise<ChildExit> {
    return await this.#child.stop();
  }

  async close(): Promise<void> {
    await this.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }

  #spawn(args: readonly string[] = []): Child {
    this.#startedAt = performance.now();
    const { cpu, descriptors, main = MAIN, compileCache = false } = this.#options;
    const command = [process.execPath, main, 'serve', '--config', this.config, '--state', this.state, ...args];
    const limited = descriptors === undefined ? command : ['prlimit', `--nofile=${descriptors}`, ...command];
    const placed = cpu === undefined ? limited : ['taskset', '-c', `${cpu}`, ...limited];
    const [program = '', ...rest] = [...(this.#options.host?.at ?? []), ...placed];
    return new Child(program, rest, {
      cwd: this.#options.cwd ?? this.folder,
      env: {
        ...process.env,
        NODE_ENV: 'production',
        ...(compileCache ? { NODE_COMPILE_CACHE: undefined } : COMPILED),
        ...this.#options.env,
      },
      name: 'millrace',
      stderr: this.#options.stderr,
    });
  }
}

/** Resolves when the server answers on all its ports. */
export async function startServer(options: StartOptions = {}): Promise<TestServer> {
  const server = await spawnServer(options);
  try {
    await server.ready();
  } catch (error) {
    await server.close();
    throw error;
  }
  return server;
}

/** Starts a server without waiting until it is ready. */
export async function spawnServer(options: StartOptions = {}): Promise<TestServer> {
  const [rtmp = 0, http = 0, api = 0, ice = 0, relay = 0] = await freePorts(5);
  const folder = mkdtempSync(path.join(tmpdir(), 'millrace-e2e-'));
  return new TestServer(folder, { rtmp, http, api, ice, relay, ...options.ports }, options);
}

/** Runs a short command of the server to its end. */
export async function runCommand(args: readonly string[], deadlineMs = 15_000): Promise<ChildExit & { stdout: string; stderr: string }> {
  const child = new Child(process.execPath, [MAIN, ...args], {
    cwd: tmpdir(),
    env: { ...process.env, ...COMPILED },
    name: `millrace ${args.join(' ')}`,
  });
  try {
    const exit = await child.ended(deadlineMs);
    return { ...exit, stdout: child.stdout, stderr: child.stderr };
  } finally {
    await child.kill();
  }
}
