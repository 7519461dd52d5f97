/** The capacity plan of docs/guide/scale.md: its tables follow from the benches and from the assumptions that it names. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { MEASURED, plan, planArguments, planExample, planInputs, planTables, WAYS } from '../../scripts/cluster-plan.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');
const page = (name: string): string => readFileSync(path.join(ROOT, 'docs', name), 'utf8');

test.each(Object.entries(MEASURED))('the input %s is a figure of the benches', (_name, { row, cell, value }) => {
  const [line = ''] = page('reference/performance.md')
    .split('\n')
    .filter((each) => each.startsWith(`| ${row} |`) && each.includes(cell));
  expect(line).not.toBe('');
  expect(Number.parseFloat(/[\d.]+/.exec(cell)?.[0] ?? '')).toBe(value);
});

test('the page has the tables and the example that the inputs yield', () => {
  const text = page('guide/scale.md');
  for (const table of planTables(planInputs())) expect(text).toContain(table);
  expect(text).toContain(planExample(planInputs()));
});

test('traffic is nearly all of the costs, and grows with viewers and prices', () => {
  const inputs = planInputs();
  for (const way of WAYS) {
    const [few, many] = [plan(10_000, way, inputs), plan(1_000_000, way, inputs)];
    for (const { corePrice, memoryPrice, trafficPrice } of [few, many]) {
      expect(trafficPrice / (corePrice + memoryPrice + trafficPrice)).toBeGreaterThan(0.9);
    }
    expect((many.egress + many.cdnEgress) / (few.egress + few.cdnEgress)).toBeCloseTo(100, -1);
    expect(plan(10_000, way, { ...inputs, egressPrice: 0, cdnPrice: 0 }).trafficPrice).toBe(0);
  }
  const { viewersPerEdge, edges } = plan(1_000_000, 'WebRTC from edges', inputs);
  expect(edges * viewersPerEdge).toBeGreaterThanOrEqual(1_000_000 * (1 + inputs.spare));
  expect(plan(1, 'WebRTC from edges', inputs).edges).toBe(2);
});

test('arguments replace inputs, and wrong arguments are named', () => {
  const { inputs, viewers } = planArguments(['egressPrice=2.5', 'viewers=500']);
  expect([inputs.egressPrice, inputs.cores, viewers]).toEqual([2.5, planInputs().cores, [500]]);
  expect(() => planArguments(['price=1'])).toThrow("there is no input 'price'");
  expect(() => planArguments(['cores=many'])).toThrow("'cores=many' is not of the form name=number");
  expect(() => planArguments(['cores=0'])).toThrow('cores must be above 0');
});
