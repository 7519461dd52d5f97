/** Compiled programs of the WebRTC benches, and a server in a separate process. */
import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import { CompiledPrograms } from './compiled-programs.ts';
import type { FanoutOrder, FanoutResult } from './webrtc-orders.ts';

const DEADLINE_MS = 120_000;

/** Load clients and yardsticks. The caller of `compile` closes them. */
export class WebrtcTools {
  readonly #programs: CompiledPrograms;

  private constructor(programs: CompiledPrograms) {
    this.#programs = programs;
  }

  static async compile(): Promise<WebrtcTools> {
    return new WebrtcTools(await CompiledPrograms.compile(['rtp-drain', 'bare-sender']));
  }

  /** Path of `rtp-drain`. */
  get drain(): string {
    return this.#programs.path('rtp-drain');
  }

  /** Path of `bare-sender`. */
  get bareSender(): string {
    return this.#programs.path('bare-sender');
  }

  /** Deletes the programs. Idempotent. */
  close(): Promise<void> {
    return this.#programs.close();
  }
}

/** Place of the server process. */
export interface FanoutPlace {
  /** Prefix of its command line. */
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
