/**
 * Inputs found by guided fuzzing, kept in the repository: `corpus/reached/NAME.br`, inputs with their lengths, compressed. Written by the
 * engine only.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { brotliCompressSync, brotliDecompressSync } from 'node:zlib';
import type { Coverage } from './coverage.ts';
import { InputPool } from './input-pool.ts';

const FOLDER = path.join(import.meta.dirname, '../corpus/reached');
const LENGTH_BYTES = 4;
/** Limit of one compressed file: all files together stay below 300 KiB. */
export const MAX_REACHED_BYTES = 2600;
/** Longer inputs are left out; mutations of shorter ones find them again. */
const MAX_INPUT_BYTES = 16_384;

/** The kept inputs of a target; empty without a file. */
export function reachedBy(name: string): Uint8Array[] {
  const file = path.join(FOLDER, `${name}.br`);
  if (!existsSync(file)) return [];
  const all = brotliDecompressSync(readFileSync(file));
  const inputs: Uint8Array[] = [];
  for (let at = 0; at + LENGTH_BYTES <= all.length; ) {
    const length = all.readUInt32BE(at);
    inputs.push(new Uint8Array(all.subarray(at + LENGTH_BYTES, at + LENGTH_BYTES + length)));
    at += LENGTH_BYTES + length;
  }
  return inputs;
}

/** Writes as many of `inputs` as fit, from the first on. Returns their number. */
export function keepReached(name: string, inputs: readonly Uint8Array[]): number {
  let kept = inputs.length;
  let bytes = pack(inputs);
  while (bytes.length > MAX_REACHED_BYTES && kept > 1) {
    kept = Math.min(kept - 1, Math.floor((kept * MAX_REACHED_BYTES) / bytes.length));
    bytes = pack(inputs.slice(0, kept));
  }
  mkdirSync(FOLDER, { recursive: true });
  writeFileSync(path.join(FOLDER, `${name}.br`), bytes);
  return kept;
}

function pack(inputs: readonly Uint8Array[]): Buffer {
  return brotliCompressSync(
    Buffer.concat(
      inputs.flatMap((input) => {
        const length = Buffer.alloc(LENGTH_BYTES);
        length.writeUInt32BE(input.length);
        return [length, input];
      }),
    ),
  );
}

/** Inputs of `pool` that together reach everything it reached, chosen by new features per byte. `run` runs an input again. */
export async function fewest(pool: InputPool, cover: Coverage, run: (input: Uint8Array) => Promise<void>): Promise<Uint8Array[]> {
  const candidates: { readonly input: Uint8Array; features: number[] }[] = [];
  for (const { bytes } of pool.inputs) {
    if (bytes.length > MAX_INPUT_BYTES) continue;
    await run(bytes);
    candidates.push({ input: bytes, features: InputPool.featuresOf(cover.counts, cover.used) });
  }
  const reached = new Set<number>();
  const chosen: Uint8Array[] = [];
  for (;;) {
    let best: (typeof candidates)[number] | null = null;
    let bestWorth = 0;
    for (const candidate of candidates) {
      candidate.features = candidate.features.filter((feature) => !reached.has(feature));
      const worth = candidate.features.length / (16 + candidate.input.length);
      if (worth > bestWorth) [best, bestWorth] = [candidate, worth];
    }
    if (best === null) return chosen;
    for (const feature of best.features) reached.add(feature);
    chosen.push(best.input);
  }
}
