/** Programs compiled for the WebRTC benches, and a server in a process of its own. */
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import type { FanoutOrder, FanoutResult } from './webrtc-orders.ts';

const DEADLINE_MS = 120_000;

/** Compiled by `compile`; whoever did so closes it. */
export class WebrtcTools {
  /** Path of `rtp-drain`. */
  readonly drain: string;
  /** Path of `bare-sender`. */
  readonly bareSender: string;
  readonly #folder: string;

  private constructor(folder: string) {
    this.#folder = folder;
    this.drain = path.join(folder, 'rtp-drain');
    this.bareSender = path.join(folder, 'bare-sender');
  }

  static async compile(): Promise<WebrtcTools> {
    const tools = new WebrtcTools(await mkdtemp(path.join(tmpdir(), 'millrace-bench-')));
    try {
      for (const program of [tools.drain, tools.bareSender]) {
        const source = path.join(import.meta.dirname, `${path.basename(program)}.cc`);
        await promisify(execFile)('g++', ['-O2', '-pthread', '-o', program, source]);
      }
      return tools;
    } catch (error) {
      await tools.close();
      throw error;
    }
  }

  /** Deletes them. Idempotent. */
  async close(): Promise<void> {
    await rm(this.#folder, { recursive: true, force: true });
  }
}

/** Where the server runs. */
export interface FanoutPlace {
  /** In front of the command line. */
  readonly prefix?: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
}

/** Runs an order in a server process. Rejects if that fails. */
export async function measureFanout(order: FanoutOrder, { prefix = [], env = {} }: FanoutPlace = {}): Promise<FanoutResult> {
  const line = [...prefix, process.execPath, '--expose-gc', path.join(import.meta.dirname, 'webrtc-origin.ts'), JSON.stringify(order)];
  const [program = '', ...args] = line;
  const options = { env: { ...process.env, ...env }, timeout: DEADLINE_MS };
  const { stdout } = await promisify(execFile)(program, args, options);
  return JSON.parse(stdout) as FanoutResult;
}
