import { describe, expect, it } from 'vitest';
import { FakeChannel, gaps, isMonotonic, TICKS } from '../../test/fakes/fake-channel.ts';
import type { FilmOptions } from '../../test/fakes/film.ts';
import { Urgency } from '../core/urgency.ts';
import { ProtocolError } from '../util/protocol-error.ts';

const ODD: Readonly<Record<string, FilmOptions>> = {
  a: { seconds: 7.36, fps: 25, sampleRate: 44_100 },
  b: { seconds: 5.1, fps: 30, bframes: 2, gop: 30, sampleRate: 48_000, start: 1.4 },
  c: { seconds: 6.234, fps: 24, bframes: 3, gop: 48, sampleRate: 32_000, audioDelay: 0.011 },
};

describe('a channel', () => {
  it('plays odd items without a gap, each with its audio in sync', async () => {
    const channel = new FakeChannel(ODD);
    channel.loop(['a', 'b', 'c']);
    await channel.timers.pass(60_000);
    const video = channel.track(0);
    const audio = channel.track(100);
    expect(isMonotonic(video.map(({ dts }) => dts))).toBe(true);
    expect(isMonotonic(audio.map(({ dts }) => dts))).toBe(true);
    expect(video.every(({ pts, dts }) => pts >= dts)).toBe(true);
    // Where hls.js begins anew it takes the time of decoding for that of showing.
    const firsts = video.filter(({ number }) => number === 0);
    expect(firsts.length).toBe(10);
    for (const { pts, dts } of firsts) expect(pts - dts).toBeLessThan(0.1);
    const shown = gaps(video.map(({ pts }) => pts));
    expect(shown.most).toBeLessThan(1000 / 24 + 1);
    const heard = gaps(audio.map(({ pts }) => pts));
    expect(heard.most).toBeLessThan(1024 / 32 + 0.1);
    expect(heard.least).toBeGreaterThan(1024 / 48 - 0.1);
    // Frame and sample numbers begin again with each item: where they say that a moment of the film is.
    const names = channel.told.filter(([what]) => what === 'on air').map(([, url]) => url.slice(-1));
    expect(names).toEqual(['a', 'b', 'c', 'a', 'b', 'c', 'a', 'b', 'c', 'a']);
    let begin = 0;
    const offsets: number[] = [];
    for (const name of names) {
      const { fps = 25, sampleRate = 48_000, audioDelay = 0 } = ODD[name]!;
      const length = channel.sources.length(`file://${name}`);
      const of = <T extends { pts: number }>(list: readonly T[]): T[] =>
        list.filter(({ pts }) => pts >= begin + 100 && pts < begin + length - 100);
      for (const { pts, number } of of(video)) expect(Math.abs(pts - begin - (number * 1000) / fps)).toBeLessThan(0.1);
      for (const { pts, number } of of(audio)) offsets.push(pts - begin - ((number * 1024) / sampleRate + audioDelay) * 1000);
      begin += length;
    }
    expect(Math.max(...offsets.map(Math.abs))).toBeLessThan(40);
    expect(channel.stream.trackSets.length).toBe(names.length);
  });

  it.each([
    ['nobody watches', Urgency.NONE, 100],
    ['a viewer waits for parts', Urgency.LOW_LATENCY, 10],
    ['a viewer waits for packets', Urgency.REAL_TIME, 1],
  ])('sends together with other channels, and no later, when %s', async (_who, urgency, bundle) => {
    const channels = [0.3, 37.7].map(async (later) => {
      const channel = new FakeChannel(ODD);
      const zero = channel.clock.monotonic();
      channel.stream.urgency = urgency;
      channel.clock.advance(later);
      // Without frames that are decoded at other times than they are due.
      channel.loop(['a']);
      await channel.timers.pass(20_000);
      return { sentAt: channel.sentAt, stream: channel.stream, zero };
    });
    for (const { sentAt, stream, zero } of await Promise.all(channels)) {
      const begins = sentAt[0] ?? 0;
      const going = sentAt.filter((at) => at > begins);
      const isInStep = (at: number): boolean => Math.abs(at - Math.round(at / bundle) * bundle) < 0.001;
      expect(going.length).toBeGreaterThan(1000);
      expect(going.every(isInStep)).toBe(true);
      // The clock of the channel began to count before. Sound is moved a little at splices.
      const late = stream.packets
        .map(({ dts, trackId }, index) => ({ trackId, ms: (sentAt[index] ?? 0) + zero - dts / TICKS }))
        .slice(-going.length)
        .flatMap(({ trackId, ms }) => (trackId === 0 ? [ms] : []));
      expect(Math.min(...late)).toBeGreaterThan(-0.1);
      expect(Math.max(...late)).toBeLessThan(1.5 * bundle + 0.1);
    }
  });

  it('is at most a packet away from the wall clock after a day of items', async () => {
    const sparse: Readonly<Record<string, FilmOptions>> = {
      a: { seconds: 17.3333, fps: 3, gop: 3, sampleRate: 0 },
      b: { seconds: 31.1, fps: 2, gop: 10, bframes: 1, sampleRate: 0 },
      c: { seconds: 23.777, fps: 1, gop: 8, sampleRate: 0 },
    };
    const channel = new FakeChannel(sparse, { audio: [] });
    channel.stream.urgency = Urgency.NONE;
    channel.loop(['a', 'b', 'c']);
    await channel.timers.pass(86_400_000);
    const last = channel.told.filter(([what]) => what === 'on air').at(-1)!;
    const video = channel.track(0);
    const begins = video.findLast(({ number, keyframe }) => number === 0 && keyframe === true)!;
    const items = channel.told.filter(([what]) => what === 'on air').length;
    expect(items).toBeGreaterThan(3500);
    const planned = Array.from({ length: items - 1 }, (_, index) => channel.sources.length(`file://${'abc'[index % 3]}`)).reduce(
      (a, b) => a + b,
      0,
    );
    expect(Math.abs(begins.pts - planned)).toBeLessThan(50);
    expect(Math.abs(last[2] - planned)).toBeLessThan(1000);
    expect(isMonotonic(video.map(({ dts }) => dts))).toBe(true);
    expect(channel.stream.packets.length).toBeGreaterThan(150_000);
  }, 60_000);
});

describe('an item', () => {
  const films: Readonly<Record<string, FilmOptions>> = {
    a: { seconds: 20, fps: 25, gop: 50, bframes: 2 },
    b: { seconds: 20, fps: 25, gop: 50, bframes: 2 },
    mute: { seconds: 5, sampleRate: 0 },
    sound: { seconds: 5, silentFilm: true },
    three: { seconds: 5, audioTracks: 3 },
    broken: { seconds: 20, brokenAt: 4.01 },
    hangs: { seconds: 20, hangsAt: 4.01 },
    stuck: { seconds: 20, hangsAt: 0 },
    short: { seconds: 0.4 },
  };

  it('that started earlier is joined at the keyframe of its current position', async () => {
    const channel = new FakeChannel(films);
    channel.playout.cue(channel.item('a', { at: -7000, from: 500 }));
    await channel.timers.pass(1000);
    expect(channel.sources.opened).toEqual([{ url: 'file://a', position: 7500 }]);
    const [first] = channel.track(0);
    expect(first).toMatchObject({ number: 150, keyframe: true });
    // Where frames are on the clock is where they would be had it played since then.
    const clock = channel.clock.monotonic() - channel.now;
    expect(channel.stream.packets[0]!.pts / TICKS - clock).toBeCloseTo(6000 - 500 - 7000, 0);
    expect(channel.playout.position).toBeCloseTo(8500, 0);
  });

  it('that is joined in its middle shows no frame that refers to earlier frames', async () => {
    const channel = new FakeChannel({ open: { seconds: 20, gop: 51, bframes: 2, openGop: true } });
    channel.playout.cue(channel.item('open', { from: 5000 }));
    await channel.timers.pass(2000);
    const numbers = channel.track(0).map(({ number }) => number);
    expect(numbers[0]).toBe(102);
    expect(Math.min(...numbers)).toBe(102);
    expect(numbers).toContain(103);
  });

  it('is cut at its end, with the frames that others refer to, and its audio with it', async () => {
    for (const until of [3000, 3040, 3080, 3113]) {
      const channel = new FakeChannel(films);
      channel.playout.cue(channel.item('a', { until }));
      channel.onEndingHook = () => channel.playout.cue(channel.item('b', { at: until }));
      await channel.timers.pass(6000);
      expect(channel.told.filter(([what]) => what === 'ending').map(([, , , at]) => at)).toEqual([until]);
      const video = channel.track(0);
      const second = video.findIndex(({ number }, index) => index > 0 && number === 0);
      const shown = new Set(video.slice(0, second).map(({ number }) => number));
      for (let frame = 0; frame < until / 40; frame += 1) expect(shown).toContain(frame);
      expect(video[second]!.pts).toBeCloseTo(until, 1);
      // Those behind the cut are there for a moment only.
      const behind = video.slice(0, second).filter(({ number }) => number * 40 >= until);
      for (const { pts } of behind) expect(pts).toBeGreaterThan(until - 3);
      // 75 and 76 refer to 77.
      expect(behind.map(({ number }) => number)).toEqual(until === 3040 || until === 3080 ? [77] : []);
      expect(Math.max(...video.slice(0, second).map(({ pts }) => pts))).toBeLessThan(until);
      expect(isMonotonic(video.map(({ dts }) => dts))).toBe(true);
      expect(video.every(({ pts, dts }) => pts >= dts)).toBe(true);
      const { most, least } = gaps(channel.track(100).map(({ pts }) => pts));
      expect([most, least].map((gap) => Math.round(gap))).toEqual([21, 21]);
    }
  });

  it('starts at once when the previous item is stopped or must end now', async () => {
    const channel = new FakeChannel(films);
    channel.playout.cue(channel.item('a'));
    await channel.timers.pass(5010);
    channel.playout.cue(channel.item('b', { at: 5010 }));
    await channel.timers.pass(500);
    expect(channel.playout.onAir?.url).toBe('file://b');
    channel.playout.stop();
    expect([channel.playout.onAir, channel.playout.position]).toEqual([null, null]);
    channel.playout.cue(channel.item('a', { at: 5510 }));
    await channel.timers.pass(1000);
    const video = channel.track(0);
    // Of the last frames some are on their way.
    const shown = video.map(({ pts }) => pts).filter((pts) => pts < video.at(-1)!.dts);
    expect(gaps(shown).most).toBeLessThan(41);
    expect(video.length).toBeGreaterThan(160);
    expect(isMonotonic(video.map(({ dts }) => dts))).toBe(true);
    expect(channel.told.map(([what, url]) => `${what} ${url.slice(-1)}`)).toEqual(['on air a', 'on air b', 'on air a']);
  });

  it('continues when its successor is cancelled', async () => {
    const channel = new FakeChannel(films);
    channel.playout.cue(channel.item('a'));
    await channel.timers.pass(1000);
    channel.playout.cue(channel.item('b', { at: 2000 }));
    await channel.timers.pass(500);
    channel.playout.cue(null);
    await channel.timers.pass(19_500);
    expect(channel.told.map(([what, url]) => `${what} ${url.slice(-1)}`)).toEqual(['on air a', 'ending a', 'ended a']);
    expect(channel.told.at(-1)![2]).toBeLessThan(20_000);
    expect(channel.told.at(-1)![2]).toBeGreaterThan(19_800);
    expect(channel.track(0).length).toBe(500);
    expect(channel.sources.closed).toBe(2);
  });

  it('announces its end at least a second before, also a changed end', async () => {
    const channel = new FakeChannel(films);
    channel.playout.cue(channel.item('a'));
    await channel.timers.pass(1000);
    channel.playout.endAt(channel.startedAt + 9000);
    await channel.timers.pass(30_000);
    const [, ending, ended] = channel.told;
    expect(ending).toEqual(['ending', 'file://a', expect.any(Number), 9000, null]);
    expect(ending![2]).toBeGreaterThan(6000);
    expect(ending![2]).toBeLessThan(8000);
    expect(ended![0]).toBe('ended');
    expect(Math.abs(ended![2] - 9000)).toBeLessThan(300);
  });

  it('starts and ends on time when the process stalls between its readings of the clocks', async () => {
    const begins: number[] = [];
    const endings: number[] = [];
    for (let each = 20; each < 60; each += 1) {
      const channel = new FakeChannel(films);
      const { clock } = channel;
      const now = clock.now.bind(clock);
      let readings = 0;
      clock.now = () => {
        // Another process has the core.
        readings += 1;
        const isHeldUp = readings % each === 0;
        if (isHeldUp) clock.advance(200);
        const wall = now();
        if (isHeldUp) clock.advance(200);
        return wall;
      };
      channel.playout.cue(channel.item('a', { at: 3000 }));
      await channel.timers.pass(24_000);
      clock.now = now;
      const zero = clock.monotonic() - channel.now;
      begins.push((channel.stream.packets[0]?.pts ?? 0) / TICKS - zero);
      for (const [what, , , endsAt] of channel.told) if (what === 'ending') endings.push(Number(endsAt));
    }
    for (const begin of begins) expect(begin).toBeCloseTo(3000, -1);
    expect(endings.length).toBeGreaterThan(20);
    for (const endsAt of endings) expect(endsAt).toBeCloseTo(23_000, -1);
  });

  it('reports the end of its media in the file, independent of the wall clock', async () => {
    const channel = new FakeChannel(films);
    channel.playout.cue(channel.item('a', { from: 4000 }));
    await channel.timers.pass(1000);
    channel.clock.setOn(-3000);
    await channel.timers.pass(20_000);
    const [, , , endsAt, mediaEnd] = channel.told.find(([what]) => what === 'ending')!;
    expect(Number(endsAt)).toBeCloseTo(13_000, -1);
    expect(mediaEnd).toBeCloseTo(20_000, -1);
  });

  it('without audio is silent, with fewer audio tracks repeats one, and with more leaves the others out', async () => {
    const channel = new FakeChannel(films, { audio: [{ language: 'en' }, { language: 'de' }] });
    channel.loop(['a', 'mute', 'three']);
    await channel.timers.pass(29_000);
    expect(channel.stream.tracks.map(({ id, language, publicName }) => [id, language, publicName])).toEqual([
      [0, undefined, 'Video_0'],
      [100, 'en', 'Audio_100'],
      [101, 'de', 'Audio_101'],
      [200, undefined, 'Data_200'],
    ]);
    for (const id of [100, 101]) {
      const { most, least } = gaps(channel.track(id).map(({ pts }) => pts));
      expect([most, least].map((gap) => Math.round(gap))).toEqual([21, 21]);
    }
    const carried = new Set(
      channel.stream.packets.filter(({ trackId, data }) => trackId === 101 && data.length === 12).map(({ data }) => data[4]),
    );
    expect(carried).toEqual(new Set([1, 2]));
  });

  it('without video fails when the channel has video, before it is on air', async () => {
    const channel = new FakeChannel(films);
    channel.playout.cue(channel.item('sound', { at: 5000 }));
    await channel.timers.pass(100);
    expect(channel.told).toEqual([['failed', 'file://sound', expect.any(Number), expect.stringContaining('no video')]]);
    const radio = new FakeChannel(films, { video: false });
    radio.loop(['sound', 'a']);
    await radio.timers.pass(20_000);
    expect(new Set(radio.stream.packets.map(({ trackId }) => trackId))).toEqual(new Set([100]));
    expect(Math.round(gaps(radio.track(100).map(({ pts }) => pts)).most)).toBe(21);
  });

  it.each([
    ['missing', 'no such file', 0, 0],
    ['stuck', 'nothing of it came', 0, 900],
    ['broken', 'the sample is broken', 3900, 4100],
    ['hangs', 'nothing could be read', 4400, 4700],
  ])('that is %s fails with a reason, in time', async (name, reason, from, to) => {
    const channel = new FakeChannel(films);
    channel.playout.cue(channel.item(name));
    channel.onFailedHook = () => channel.playout.cue(channel.item('b', { at: channel.now }));
    await channel.timers.pass(8000);
    const failed = channel.told.find(([what]) => what === 'failed')!;
    expect(failed[3]).toContain(reason);
    expect(failed[2]).toBeGreaterThanOrEqual(from);
    expect(failed[2]).toBeLessThanOrEqual(to);
    const onAir = channel.told.findLast(([what]) => what === 'on air')!;
    expect(onAir[1]).toBe('file://b');
    expect(onAir[2] - failed[2]).toBeLessThan(100);
    expect(channel.logger.lines.filter(({ level }) => level === 'warn').length).toBe(1);
  });

  it('with unreadable tracks fails, and the next item plays', async () => {
    const channel = new FakeChannel(films);
    channel.stream.fault = new ProtocolError('AVCC', 'its configuration is broken');
    channel.playout.cue(channel.item('a'));
    await channel.timers.pass(100);
    expect(channel.told).toEqual([['failed', 'file://a', expect.any(Number), 'its configuration is broken']]);
    channel.stream.fault = null;
    channel.playout.cue(channel.item('b', { at: channel.now }));
    await channel.timers.pass(100);
    expect(channel.playout.onAir?.url).toBe('file://b');
  });

  it('shorter than the read-ahead is played completely', async () => {
    const channel = new FakeChannel(films);
    channel.loop(['short']);
    await channel.timers.pass(4000);
    expect(gaps(channel.track(0).map(({ pts }) => pts)).most).toBeCloseTo(40, 1);
    expect(channel.told.filter(([what]) => what === 'on air').length).toBeGreaterThan(8);
  });

  it('is sent at the pace of the clock, regardless of the read-ahead', async () => {
    const channel = new FakeChannel(films);
    channel.playout.cue(channel.item('a'));
    await channel.timers.pass(10_000);
    channel.stream.packets.forEach(({ dts }, index) => {
      const late = channel.sentAt[index]! + (channel.clock.monotonic() - channel.now) - dts / TICKS;
      expect(late).toBeGreaterThan(-0.1);
      expect(late).toBeLessThan(60);
    });
  });

  it('makes no further callback after the channel is closed', async () => {
    const channel = new FakeChannel(films);
    channel.loop(['a', 'b']);
    await channel.timers.pass(1000);
    channel.playout.close();
    channel.playout.close();
    const sent = channel.stream.packets.length;
    channel.playout.cue(channel.item('b'));
    channel.playout.stop();
    channel.playout.endAt(0);
    await channel.timers.pass(30_000);
    expect(channel.stream.packets.length).toBe(sent);
    expect(channel.told.map(([what]) => what)).toEqual(['on air']);
    expect(channel.sources.closed).toBe(1);
  });
});
