import { expect, it } from 'vitest';
import { FakeIngestStream } from '../../test/fakes/fake-ingest-gate.ts';
import { ProviderKind, SourceType } from '../core/kinds.ts';
import { EventFormat } from '../media/timed-event.ts';
import { type ItemAside, ItemAsides } from './item-asides.ts';

const stream = () =>
  new FakeIngestStream(
    { host: 'localhost', app: 'app' },
    { streamName: 'tv', provider: ProviderKind.SCHEDULED, sourceType: SourceType.SCHEDULED, sourceUrl: '', onClose: () => undefined },
  );
const event = (at: number): ItemAside => ({ type: 'event', at, event: { format: EventFormat.ID3, target: 'all' }, data: new Uint8Array() });

it('sends each once, when its time has come, and none that lies outside of the time of the item', () => {
  const asides = new ItemAsides();
  const to = stream();
  for (const at of [900, 1000, 1500, 3000, 2999, 1200]) asides.add(event(at));
  const send = (until: number): number[] => {
    asides.send(to, { offset: 10_000, from: 11_000, until, cut: 13_000 });
    return to.events.splice(0).map(({ at }) => at ?? -1);
  };
  expect(send(11_200)).toEqual([11, 11.2]);
  expect(send(11_200)).toEqual([]);
  expect(send(99_000)).toEqual([11.5, 12.999]);
  expect(send(99_000)).toEqual([]);
});

it('shows no cue behind the cut', () => {
  const asides = new ItemAsides();
  const to = stream();
  asides.add({ type: 'cue', at: 500, language: 'en', duration: 900, settings: '', text: 'Hello' });
  asides.send(to, { offset: 0, from: 0, until: 500, cut: 1000 });
  expect(to.cues).toEqual([{ language: 'en', at: 0.5, duration: 500, settings: '', text: 'Hello' }]);
});

it('keeps the last hundred', () => {
  const asides = new ItemAsides();
  const to = stream();
  for (let at = 0; at < 250; at += 1) asides.add(event(at));
  asides.send(to, { offset: 0, from: 0, until: 1000, cut: 1000 });
  expect(to.events.map(({ at }) => (at ?? 0) * 1000)).toEqual(Array.from({ length: 100 }, (_, index) => 150 + index));
});
