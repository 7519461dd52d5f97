/** A viewer over SRT that is not ours: `srt-live-transmit`. */
import { statSync } from 'node:fs';
import path from 'node:path';
import { requireProgram } from '../../scripts/ensure-tools.ts';
import { Child } from './child.ts';

/** Reads a stream of the application `app` over SRT into a file, and measures the longest time without data. The caller closes it. */
export class SrtViewer {
  readonly child: Child;
  readonly #file: string;
  readonly #looking: NodeJS.Timeout;
  #size = 0;
  #grewAt = performance.now();
  /** ms, since the first data or `forget`. */
  longest = 0;

  /** `folder`: for the file. */
  constructor(folder: string, port: number, stream: string) {
    this.#file = path.join(folder, `${port}.ts`);
    const url = `srt://127.0.0.1:${port}?mode=caller&streamid=default/app/${stream}`;
    const command = `exec ${requireProgram('srt-live-transmit')} -a no -q '${url}' file://con > '${this.#file}'`;
    this.child = new Child('sh', ['-c', command], { cwd: folder, name: 'srt-live-transmit' });
    this.#looking = setInterval(() => this.#look(), 20);
  }

  /** Bytes received. */
  get size(): number {
    return this.#size;
  }

  /** Measures from now on. */
  forget(): void {
    this.longest = 0;
  }

  async close(): Promise<void> {
    clearInterval(this.#looking);
    await this.child.kill();
  }

  #look(): void {
    const { size } = statSync(this.#file, { throwIfNoEntry: false }) ?? { size: 0 };
    const now = performance.now();
    if (this.#size > 0) this.longest = Math.max(this.longest, now - this.#grewAt);
    if (size === this.#size) return;
    this.#size = size;
    this.#grewAt = now;
  }
}
