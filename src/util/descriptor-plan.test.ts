import { spawnSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { DescriptorLedger } from './descriptor-ledger.ts';
import { descriptorLimit, planDescriptors } from './descriptor-plan.ts';

describe('a plan of descriptors', () => {
  it.each([
    { limit: 200, used: 26, threads: 2, plan: { viewers: 66, encoders: 32, reserve: 32 } },
    { limit: 1024, used: 24, threads: 4, plan: { viewers: 468, encoders: 234, reserve: 234 } },
    { limit: 1_048_576, used: 24, threads: 16, plan: { viewers: 1_040_176, encoders: 4096, reserve: 4096 } },
    { limit: 20, used: 24, threads: 2, plan: { viewers: 2, encoders: 1, reserve: 1 } },
  ])('of $limit leaves viewers $plan.viewers', ({ plan, ...given }) => {
    expect(planDescriptors(given)).toEqual(plan);
  });

  it.runIf(process.platform === 'linux')('reads the limit of the process, which Node.js has raised', () => {
    const source = `import(${JSON.stringify(new URL('./descriptor-plan.ts', import.meta.url).href)}).then((m) => console.log(m.descriptorLimit().limit))`;
    const run = spawnSync('bash', ['-c', 'ulimit -Sn 123; ulimit -Hn 321; exec "$0" -e "$1"', process.execPath, source], {
      encoding: 'utf8',
    });
    expect(run.stdout.trim()).toBe('321');
    expect(descriptorLimit()?.used).toBeGreaterThan(3);
  });
});

describe('DescriptorLedger', () => {
  it('counts the descriptors of all threads against one limit', () => {
    const shared = DescriptorLedger.open(3, 2);
    const [first, second] = [new DescriptorLedger(shared, 0), new DescriptorLedger(shared, 1)];
    expect([first.take(2), second.take(), second.take(), first.take()]).toEqual([true, true, false, false]);
    expect([first.held, first.refused, second.refused]).toEqual([3, 1, 1]);
    first.give(2);
    expect([second.take(2), second.held]).toEqual([true, 3]);
  });

  it('restarts at 0 for a thread that replaces a dead one', () => {
    const shared = DescriptorLedger.open(2, 2);
    const first = new DescriptorLedger(shared, 0);
    expect([first.take(), new DescriptorLedger(shared, 1).take()]).toEqual([true, true]);
    const restarted = new DescriptorLedger(shared, 1);
    expect([restarted.held, restarted.take(), restarted.take()]).toEqual([1, true, false]);
    expect(() => new DescriptorLedger(shared, 2)).toThrow(RangeError);
  });
});
