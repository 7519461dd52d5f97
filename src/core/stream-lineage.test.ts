import { expect, it } from 'vitest';
import { StreamLineage } from './stream-lineage.ts';

const at = (stream: string) => ({ vhost: 'v', app: 'a', stream });

it('describes how a stream would be made of itself, through any number of streams', () => {
  const lineage = new StreamLineage();
  expect(lineage.loopOf(at('x'), at('x'))).toBe('v/a/x would be made of itself: v/a/x <- v/a/x');
  lineage.add(at('mux'), at('camera'));
  lineage.add(at('mux'), at('tv'));
  lineage.add(at('show'), at('mux'));
  expect(lineage.loopOf(at('tv'), at('show'))).toBe('v/a/tv would be made of itself: v/a/tv <- v/a/show <- v/a/mux <- v/a/tv');
  expect([lineage.loopOf(at('tv'), at('camera')), lineage.loopOf(at('show'), at('mux'))]).toEqual([null, null]);
  expect(lineage.loopOf({ ...at('tv'), app: 'b' }, at('show'))).toBeNull();
});

it('forgets an ended use, once per use', () => {
  const lineage = new StreamLineage();
  const [first, second] = [lineage.add(at('b'), at('a')), lineage.add(at('b'), at('a'))];
  first();
  first();
  expect(lineage.loopOf(at('a'), at('b'))).not.toBeNull();
  second();
  expect(lineage.loopOf(at('a'), at('b'))).toBeNull();
});

it('terminates in a graph with cycles, and visits each stream once', () => {
  const lineage = new StreamLineage();
  // There are 2^40 paths.
  for (let step = 0; step < 40; step += 1)
    for (const from of ['l', 'r']) for (const to of ['l', 'r']) lineage.add(at(`${from}${step}`), at(`${to}${step + 1}`));
  lineage.add(at('l40'), at('l0'));
  expect(lineage.loopOf(at('tv'), at('l0'))).toBeNull();
});
