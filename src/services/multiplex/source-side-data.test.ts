/** The side data of the sources of a multiplex channel: events, breaks, subtitles. */
import { afterEach, expect, it } from 'vitest';
import { LEFT, ladder, seconds, setUp, source, tearDown } from '../../../test/fakes/multiplex-core.ts';
import { audioTrack, videoTrack } from '../../../test/fakes/source.ts';
import { buildCue, parseCue } from '../../containers/markers/cue.ts';
import { readCuePayload } from '../../containers/webvtt/cue-payload.ts';
import type { Application } from '../../core/application.ts';
import { MILLISECONDS } from '../../media/timebase.ts';
import { EventFormat } from '../../media/timed-event.ts';
import { readDefinition } from './channel-definition.ts';

afterEach(tearDown);

const SUBTITLES = {
  outputProfiles: {
    outputProfile: [
      {
        ...{ name: 'p', outputStreamName: '${OriginStreamName}' },
        encodes: { videos: [{ name: 'video', bypass: true }], audios: [{ name: 'audio', bypass: true }] },
      },
    ],
    mediaOptions: { subtitles: { enable: true, defaultLabel: 'English', rendition: [{ language: 'en', label: 'English' }] } },
  },
};

function inject(app: Application, stream: string, format: EventFormat, data: Uint8Array): void {
  expect(app.stream(stream)?.inject({ format, target: 'all', data, at: null }, true)).toBe(true);
}

/** A channel of two sources, the first of which began 1.7 s before the second. */
async function onAir(options: Parameters<typeof setUp>[0] = {}) {
  const core = await setUp(options);
  const { app, of, encoder, clock } = core;
  const one = encoder('one');
  await one.run(17);
  const two = encoder('two');
  await two.frame();
  await of(app).save(ladder('ch', 'one', 'two'));
  clock.advance(100);
  // The first of them to deliver tells where the time of the channel begins.
  await two.run(5, [one]);
  const served = core.stream('app/ch');
  const events = () => core.stream('app/ch').packets.filter(({ event }) => event !== undefined);
  const cues = () => events().flatMap(({ event, data, pts }) => (event?.format === 'cue' ? [[parseCue(data).type, pts]] : []));
  return { ...core, one, two, served, events, cues };
}

it('passes on events of the first source once, at the time of the channel, except for the end of its playlists', async () => {
  const { app, one, two, events, served } = await onAir();
  const tag = Buffer.from('ID3 one');
  inject(app, 'one', EventFormat.ID3, tag);
  inject(app, 'one', EventFormat.CONCLUSION, Buffer.of());
  inject(app, 'two', EventFormat.ID3, Buffer.from('ID3 two'));
  await one.run(1, [two]);
  expect(events().map(({ event, data }) => [event?.format, String(data)])).toEqual([['id3v2', 'ID3 one']]);
  // It has the time at which the last frame ended that there was.
  const frames = served.packets.filter(({ track }) => track.variantName === 'one_video').map(seconds);
  expect(events().map(seconds)).toEqual([expect.closeTo((frames.at(-2) ?? 0) + 0.1, 2)]);
  two.ingest.close(LEFT);
  inject(app, 'one', EventFormat.ID3, tag);
  await one.run(1);
  expect(events()).toHaveLength(2);
});

it('switches to the next source when the first ends, ends its breaks, and switches back when it returns', async () => {
  const { app, of, one, two, encoder, cues, events } = await onAir();
  inject(app, 'two', EventFormat.CUE, buildCue({ type: 'out', duration: 60_000, elapsed: 0 }));
  inject(app, 'one', EventFormat.CUE, buildCue({ type: 'in', duration: 0, elapsed: 0 }));
  inject(app, 'one', EventFormat.CUE, buildCue({ type: 'out', duration: 60_000, elapsed: 0 }));
  await one.run(3, [two]);
  expect(cues()).toEqual([['out', expect.any(Number)]]);
  one.ingest.close(LEFT);
  await two.frame();
  expect(cues().map(([type]) => type)).toEqual(['out', 'in']);
  inject(app, 'two', EventFormat.ID3, Buffer.from('ID3 two'));
  await two.frame();
  expect(events().map(({ event }) => event?.format)).toEqual(['cue', 'cue', 'id3v2']);
  const again = encoder('one');
  await two.run(1, [again]);
  of(app).look();
  inject(app, 'two', EventFormat.ID3, Buffer.from('ID3 two'));
  // Before its first frame its time is not known.
  inject(app, 'one', EventFormat.ID3, Buffer.from('ID3 early'));
  await two.run(2, [again]);
  inject(app, 'one', EventFormat.ID3, Buffer.from('ID3 one'));
  await two.run(2, [again]);
  expect(
    events()
      .slice(3)
      .map(({ data }) => String(data)),
  ).toEqual(['ID3 one']);
});

it('passes the end of a break on once, when the source ends it', async () => {
  const { app, one, two, cues } = await onAir();
  inject(app, 'one', EventFormat.CUE, buildCue({ type: 'out', duration: 500, elapsed: 0 }));
  await one.run(30, [two]);
  const [[, out = 0] = [], [, back = 0] = []] = cues() as [string, number][];
  expect(cues().map(([type]) => type)).toEqual(['out', 'in']);
  expect(Math.abs(back - out - 500)).toBeLessThanOrEqual(100);
});

it('starts a new stream without the break of the previous stream', async () => {
  const { app, of, one, two, cues } = await onAir();
  inject(app, 'one', EventFormat.CUE, buildCue({ type: 'out', duration: 60_000, elapsed: 0 }));
  await one.run(2, [two]);
  expect(cues()).toHaveLength(1);
  app.stream('ch')?.terminate({ code: 'deleted', detail: 'deleted through the API' });
  of(app).look();
  await one.run(5, [two]);
  one.ingest.close(LEFT);
  await two.run(3);
  expect(app.stream('ch')?.closed).toBe(false);
  expect(cues()).toEqual([]);
});

it('passes cues to the rendition of their language', async () => {
  const { app, one, two, events, served } = await onAir({ more: SUBTITLES });
  app.stream('two')?.subtitles.send([{ label: 'English', cues: [{ text: 'two', startOffset: 0, duration: 900, settings: '' }] }]);
  app.stream('one')?.subtitles.send([{ label: 'English', cues: [{ text: 'one', startOffset: 200, duration: 900, settings: 'line:0' }] }]);
  await one.run(1, [two]);
  expect(events()).toMatchObject([{ duration: 900, track: { type: 'subtitle', publicName: 'English' }, event: { format: 'webvtt' } }]);
  expect(readCuePayload(events()[0]?.data ?? Buffer.of())).toEqual({ settings: 'line:0', text: 'one' });
  const frames = served.packets.filter(({ track }) => track.variantName === 'one_video').map(seconds);
  expect(events().map(seconds)).toEqual([expect.closeTo((frames.at(-2) ?? 0) + 0.3, 2)]);
});

it.each(['video', 'audio'])('passes on the ID3 tags of mapped tracks, to the %s', async (target) => {
  const { app, of, encoder, stream } = await setUp();
  const one = encoder('one', [videoTrack(), audioTrack(), { type: 'data', id: 2, timebase: MILLISECONDS, bitrateConf: 0 }]);
  await one.frame({ audio: true });
  const trackMap = [{ sourceTrackName: target, newTrackName: 'a' }];
  await of(app).save(readDefinition({ outputStream: { name: 'ch' }, sourceStreams: [{ ...source('one'), trackMap }] }));
  await one.frame({ audio: true });
  for (const text of ['ID3 tag', 'no tag']) one.ingest.push({ trackId: 2, pts: 150, dts: 150, keyframe: true, data: Buffer.from(text) });
  await one.frame({ audio: true });
  const events = stream('app/ch').packets.filter(({ track }) => track.type === 'data');
  expect(events.map(({ event, data }) => [event, String(data)])).toEqual([[{ format: 'id3v2', target }, 'ID3 tag']]);
});
