/** Hardening of the built addon, as its ELF file shows. */
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const BUILT = fileURLToPath(new URL('../../../../../native/build/millrace.node', import.meta.url));

/** `readelf` comes with the compiler that built it. */
function elf(option: string): string {
  return execFileSync('readelf', ['-W', option, BUILT], { encoding: 'latin1', maxBuffer: 64 << 20 });
}

test.skipIf(!existsSync(BUILT))(
  'the addon is linked so that its tables are read-only, and compiled with checks of stack and buffers',
  () => {
    expect(elf('--dynamic')).toMatch(/\bBIND_NOW\b|\bNOW\b/);
    const segments = elf('--program-headers');
    expect(segments).toMatch(/GNU_RELRO/);
    expect(segments).toMatch(/GNU_STACK\s.*\sRW\s/);
    const symbols = elf('--dyn-syms');
    expect(symbols).toMatch(/\b__stack_chk_fail\b/);
    expect(symbols).toMatch(/\b__mem\w+_chk\b/);
  },
);
