/** C++ programs of the benches, compiled at the start of a bench. */
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';

/** The caller of `compile` closes them. */
export class CompiledPrograms {
  readonly #folder: string;

  private constructor(folder: string) {
    this.#folder = folder;
  }

  /** Compiles `bench/lib/NAME.cc` for each name. Rejects with the compiler's message. */
  static async compile(names: readonly string[]): Promise<CompiledPrograms> {
    const programs = new CompiledPrograms(await mkdtemp(path.join(tmpdir(), 'millrace-bench-')));
    try {
      for (const name of names) {
        const source = path.join(import.meta.dirname, `${name}.cc`);
        await promisify(execFile)('g++', ['-std=c++17', '-O2', '-pthread', '-o', programs.path(name), source]);
      }
      return programs;
    } catch (error) {
      await programs.close();
      throw error;
    }
  }

  path(name: string): string {
    return path.join(this.#folder, name);
  }

  /** Deletes the programs. Idempotent. */
  async close(): Promise<void> {
    await rm(this.#folder, { recursive: true, force: true });
  }
}
