/** Media files that ffmpeg encodes for the tests of one file. */
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

/** A temporary folder of files made from one source. What several tests need is encoded once; each gets a copy. */
export class EncodedFiles {
  readonly folder = mkdtempSync(path.join(tmpdir(), 'millrace-encoded-'));
  readonly #source: readonly string[];
  /** Originals by suffix and options. */
  readonly #made = new Map<string, string>();

  /** `source`: arguments of ffmpeg for the input. */
  constructor(source: readonly string[]) {
    this.#source = source;
  }

  /** Path of a new file of this name. `options`: arguments of ffmpeg for the output. */
  encode(name: string, options: readonly string[]): string {
    const file = path.join(this.folder, name);
    copyFileSync(this.#original(path.extname(name), options), file);
    return file;
  }

  /** Removes the folder. */
  close(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }

  #original(suffix: string, options: readonly string[]): string {
    const key = JSON.stringify([suffix, ...options]);
    const made = this.#made.get(key);
    if (made !== undefined) return made;
    const original = path.join(this.folder, `original-${this.#made.size}${suffix}`);
    execFileSync('ffmpeg', ['-v', 'error', '-y', ...this.#source, ...options, original]);
    this.#made.set(key, original);
    return original;
  }
}
