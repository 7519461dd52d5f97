/** Channels of films that differ at random, on a clock that is turned by hand: what players are given around each boundary, to the tick. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { FakeChannel, TICKS } from '../../test/fakes/fake-channel.ts';
import type { FilmOptions } from '../../test/fakes/film.ts';
import { AVCC } from '../../test/fixtures/bitstreams.ts';
import { LlhlsSimulation } from '../../test/validator/llhls-simulation.ts';
import { readBoxes } from '../containers/isobmff/box-reader.ts';
import { readMovieFragment } from '../containers/isobmff/fragment-reader.ts';
import { MediaRouter } from '../core/media-router.ts';

const FRAME_SAMPLES = 1024;
/** Ticks of 1/90000 s are 0.011 ms, those of films up to 0.08 ms; each rounding costs half of one. */
const ROUNDING_MS = 0.1;
const SQUEEZE_MS = 2.1;

/** A film, and how many frames before its end it is cut: where the last one would be shown for a moment only, it is shown whole. */
type CutFilm = FilmOptions & { readonly early: number };

const film: fc.Arbitrary<CutFilm> = fc.record({
  early: fc.oneof(
    fc.constant(0),
    fc.tuple(fc.nat(9), fc.integer({ min: 1, max: 6 })).map(([frames, tenths]) => frames + tenths / 10),
  ),
  seconds: fc.integer({ min: 1100, max: 4700 }).map((ms) => ms / 1000),
  fps: fc.constantFrom(12.5, 15, 23.976, 24, 25, 29.97, 30, 50, 59.94),
  gop: fc.constantFrom(12, 24, 36, 60),
  bframes: fc.constantFrom(0, 0, 1, 2, 3),
  openGop: fc.boolean(),
  sampleRate: fc.constantFrom(32_000, 44_100, 48_000),
  audioDelay: fc.integer({ min: 0, max: 40 }).map((ms) => ms / 1000),
  start: fc.constantFrom(0, 0, 1.4, 7.001),
  config: fc.constantFrom(AVCC.baseline180, AVCC.high720, AVCC.main1080, AVCC.baseline720),
});

/** Plays films one behind the other, on packagers as well. */
async function play(
  films: readonly CutFilm[],
): Promise<{ channel: FakeChannel; places: { begin: number; end: number }[]; runs: ReturnType<VideoParts['runs']> }> {
  const channel = new FakeChannel(Object.fromEntries(films.map((options, index) => [`${index}`, options])));
  let begin = 0;
  const places = films.map(({ early, fps = 25 }, index) => {
    const place = { begin, end: begin + channel.sources.length(`file://${index}`) - (early * 1000) / fps };
    begin = place.end;
    return place;
  });
  const cue = (index: number): void => {
    const place = places[index];
    if (place !== undefined) channel.playout.cue(channel.item(`${index}`, { at: place.begin, until: place.end }));
  };
  let next = 1;
  channel.onEndingHook = () => cue(next++);
  cue(0);
  await channel.timers.pass(begin + 2000);
  expect(channel.told.filter(([what]) => what === 'on air' || what === 'failed')).toHaveLength(films.length);

  const parts = new VideoParts();
  let simulation: LlhlsSimulation | null = null;
  const router = new MediaRouter({
    onTracks: (tracks) => simulation?.stream.onTracks(tracks),
    onPacket: (packet) => {
      if (simulation === null) return;
      simulation.run([packet]);
      parts.look(simulation);
    },
  });
  let set = 0;
  for (const [index, packet] of channel.stream.packets.entries()) {
    for (; (channel.tracksBefore[set] ?? Number.POSITIVE_INFINITY) <= index; set += 1) {
      router.setTracks(channel.stream.trackSets[set] ?? []);
      simulation ??= new LlhlsSimulation(router.tracks, { segmentDuration: 1, segmentCount: 50 });
    }
    router.push(packet);
  }
  if (simulation === null) throw new Error('the channel had no tracks');
  simulation.stream.concludeHlsLive();
  for (const track of simulation.watched) simulation.fetch(track);
  parts.look(simulation);
  return { channel, places, runs: parts.runs(simulation) };
}

/** Parts of the video in the order in which they came, with the init segment of each. Playlists forget parts soon. */
class VideoParts {
  readonly #maps = new Map<string, string | null>();

  look({ watched: [video] }: LlhlsSimulation): void {
    for (const { parts, map } of video?.playlist?.segments ?? []) for (const { uri } of parts) this.#maps.set(uri, map);
  }

  /** The runs of frames under one configuration: where decoding begins, and until when frames are shown, ms. */
  runs({ watched: [video] }: LlhlsSimulation): { readonly decodedFrom: number; readonly shownUntil: number }[] {
    const runs: { map: string | null; decodedFrom: number; shownUntil: number }[] = [];
    for (const [uri, map] of this.#maps) {
      const moof = readBoxes(video?.parts.get(uri) ?? new Uint8Array()).find(({ type }) => type === 'moof');
      if (moof === undefined) throw new Error(`${uri} holds no fragment`);
      let at = 0;
      readMovieFragment(moof.body, {
        run: (_id, base) => {
          at = base / TICKS;
          if (runs.at(-1)?.map !== map) runs.push({ map, decodedFrom: at, shownUntil: Number.NEGATIVE_INFINITY });
        },
        sample: (_size, duration, composition) => {
          const run = runs.at(-1);
          if (run !== undefined) run.shownUntil = Math.max(run.shownUntil, at + (composition + duration) / TICKS);
          at += duration / TICKS;
        },
      });
    }
    return runs;
  }
}

it('films of any rate, reordering, size and audio follow each other without a gap or an overlap, in sync', async () => {
  const run = async (films: readonly CutFilm[]): Promise<void> => {
    const { channel, places, runs } = await play(films);
    const video = channel.track(0).sort((a, b) => a.pts - b.pts);
    const audio = channel.track(100);
    for (const [index, { fps = 25, sampleRate = 48_000, audioDelay = 0 }] of films.entries()) {
      const { begin, end } = places[index] ?? { begin: 0, end: 0 };
      // Frames behind a cut that others refer to are shown for a moment before it.
      const isSqueezed = (pts: number, number: number): boolean => Math.abs(pts - begin) < SQUEEZE_MS && number > 0;
      const mine = video.filter(({ pts, number }) => pts > begin - ROUNDING_MS && pts < end - SQUEEZE_MS && !isSqueezed(pts, number));
      expect(mine.length).toBe(Math.ceil(((end - begin - SQUEEZE_MS) * fps) / 1000));
      for (const { pts, number } of mine) expect(Math.abs(pts - begin - (number * 1000) / fps)).toBeLessThan(ROUNDING_MS);
      // Sound cannot be cut but between its frames: it is moved by half of one at most, all of it alike.
      const frame = (FRAME_SAMPLES * 1000) / sampleRate;
      const sound = audio.filter(({ pts, number }) => pts > begin + 100 && pts < end - 100 && number > 0);
      const offsets = sound.map(({ pts, number }) => pts - begin - number * frame - audioDelay * 1000);
      expect(Math.max(...offsets) - Math.min(...offsets)).toBeLessThan(ROUNDING_MS);
      expect(Math.max(...offsets.map(Math.abs))).toBeLessThanOrEqual(frame / 2 + ROUNDING_MS);
    }
    const heard = audio.map(({ pts }) => pts);
    const frames = heard.slice(1).map((at, index) => at - (heard[index] ?? 0));
    const lasting = [32_000, 44_100, 48_000].map((rate) => (FRAME_SAMPLES * 1000) / rate);
    for (const ms of frames) expect(Math.min(...lasting.map((known) => Math.abs(known - ms)))).toBeLessThan(ROUNDING_MS);

    // Where hls.js begins anew it puts what is decoded first where what was shown last has ended.
    expect(runs).toHaveLength(1 + films.filter(({ config }, index) => index > 0 && config !== films[index - 1]?.config).length);
    const changed = films.slice(1).flatMap((next, index) => (next.config === films[index]?.config ? [] : (films[index] ?? [])));
    for (const [index, { fps = 25, bframes = 0, early }] of changed.entries()) {
      const hole = Math.abs((runs[index + 1]?.decodedFrom ?? Number.NaN) - (runs[index]?.shownUntil ?? Number.NaN));
      // The frame that is shown last is not the one that is decoded last: how short it is cut is not known when its part closes.
      expect(hole).toBeLessThan(early > 0 && bframes > 0 ? 1000 / fps : 1);
    }
  };
  await fc.assert(fc.asyncProperty(fc.array(film, { minLength: 3, maxLength: 6 }), run), { numRuns: 40 });
}, 120_000);
