import { expect, it } from 'vitest';
import { FakeIngestStream } from '../../test/fakes/fake-ingest-gate.ts';
import { buildCue, parseCue } from '../containers/markers/cue.ts';
import { buildSpliceInsert, parseSplice } from '../containers/markers/splice-info.ts';
import { ProviderKind, SourceType } from '../core/kinds.ts';
import type { StreamSideData } from '../core/stream-side-data.ts';
import { EventFormat } from '../media/timed-event.ts';
import { ItemSideData } from './item-side-data.ts';

const stream = () =>
  new FakeIngestStream(
    { host: 'localhost', app: 'app' },
    { streamName: 'tv', provider: ProviderKind.SCHEDULED, sourceType: SourceType.SCHEDULED, sourceUrl: '', onClose: () => undefined },
  );
const event = (at: number): StreamSideData => ({
  type: 'event',
  at,
  event: { format: EventFormat.ID3, target: 'all' },
  data: new Uint8Array(),
});

it('sends each event once when it is due, and none outside of the item', () => {
  const sideData = new ItemSideData();
  const to = stream();
  for (const at of [900, 1000, 1500, 3000, 2999, 1200]) sideData.add(event(at));
  const send = (until: number): number[] => {
    sideData.send(to, { offset: 10_000, from: 11_000, until, cut: 13_000 });
    return to.events.splice(0).map(({ at }) => at ?? -1);
  };
  expect(send(11_200)).toEqual([11, 11.2]);
  expect(send(11_200)).toEqual([]);
  expect(send(99_000)).toEqual([11.5, 12.999]);
  expect(send(99_000)).toEqual([]);
});

it('cuts a cue at the cut of the item', () => {
  const sideData = new ItemSideData();
  const to = stream();
  sideData.add({ type: 'cue', at: 500, language: 'en', duration: 900, settings: '', text: 'Hello' });
  sideData.send(to, { offset: 0, from: 0, until: 500, cut: 1000 });
  expect(to.cues).toEqual([{ language: 'en', at: 0.5, duration: 500, settings: '', text: 'Hello' }]);
});

it('keeps the last hundred', () => {
  const sideData = new ItemSideData();
  const to = stream();
  for (let at = 0; at < 250; at += 1) sideData.add(event(at));
  sideData.send(to, { offset: 0, from: 0, until: 1000, cut: 1000 });
  expect(to.events.map(({ at }) => (at ?? 0) * 1000)).toEqual(Array.from({ length: 100 }, (_, index) => 150 + index));
});

const cue = (at: number, type: 'out' | 'in' | 'cont'): StreamSideData => ({
  ...{ type: 'event', at, event: { format: EventFormat.CUE, target: 'all' }, data: buildCue({ type, duration: 5000, elapsed: 0 }) },
});
const splice = (at: number, id: number, type: 'out' | 'in'): StreamSideData => ({
  ...{ type: 'event', at, event: { format: EventFormat.SCTE35, target: 'all' } },
  data: buildSpliceInsert({ id, type, time: 0, duration: null, autoReturn: false }),
});
const told = (to: FakeIngestStream) =>
  to.events.splice(0).map(({ format, data, at, settled }) => {
    expect(settled).toBe(true);
    return [format === EventFormat.CUE ? parseCue(data).type : `${parseSplice(data)?.type} ${parseSplice(data)?.id}`, at];
  });

it('sends markers ahead of time, and the end of a break only after its start', () => {
  const sideData = new ItemSideData();
  const to = stream();
  const send = (cut: number) => {
    sideData.send(to, { offset: 0, from: 1000, until: 1000, cut });
    return told(to);
  };
  for (const data of [cue(900, 'out'), cue(1500, 'in'), splice(1000, 7, 'in'), cue(2000, 'out'), splice(2000, 7, 'out')])
    sideData.add(data);
  expect(send(9000)).toEqual([
    ['out', 2],
    ['out 7', 2],
  ]);
  for (const data of [splice(2500, 8, 'in'), splice(3000, 7, 'in'), cue(4000, 'in')]) sideData.add(data);
  // The item is shortened, and continues.
  expect(send(4000)).toEqual([['in 7', 3]]);
  expect(send(4001)).toEqual([['in', 4]]);
  sideData.leave(to, 4001);
  expect(to.events).toEqual([]);
});

it('ends the breaks of an item that leaves the air in the middle of them, once', () => {
  const sideData = new ItemSideData();
  const to = stream();
  for (const data of [cue(1000, 'cont'), splice(1000, 7, 'out'), splice(1000, 8, 'out'), splice(1500, 8, 'in'), splice(3500, 9, 'out')]) {
    sideData.add(data);
  }
  sideData.send(to, { offset: 0, from: 1000, until: 2000, cut: 3000 });
  expect(to.events.splice(0)).toHaveLength(4);
  sideData.leave(to, 3000);
  expect(told(to)).toEqual([
    ['in', 3],
    ['in 7', 3],
  ]);
  sideData.leave(to, 3000);
  expect(to.events).toEqual([]);
});

it('starts at most sixteen breaks, and none for malformed markers', () => {
  const sideData = new ItemSideData();
  const to = stream();
  for (let id = 0; id < 20; id += 1) sideData.add(splice(1000, id, 'out'));
  sideData.add(splice(1000, 3, 'out'));
  sideData.add({ type: 'event', at: 1000, event: { format: EventFormat.SCTE35, target: 'all' }, data: Uint8Array.of(1) });
  sideData.send(to, { offset: 0, from: 0, until: 0, cut: 9000 });
  expect(to.events).toHaveLength(17);
});
