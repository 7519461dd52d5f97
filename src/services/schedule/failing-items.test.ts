/** How a scheduled channel handles unplayable items. */
import { describe, expect, test } from 'vitest';
import { FakeStation, MIDNIGHT, schedule } from '../../../test/fakes/fake-station.ts';

const FILES = { a: 10, b: 20, c: 5, long: 600, '@cam': 0 };

describe('failing items', () => {
  test('a missing file is replaced by the fallback program on time with a log line, and plays as soon as it exists', async () => {
    const station = new FakeStation({ a: 10, c: 5 });
    await station.start(schedule([{ items: ['a', { url: 'b', duration: 20_000 }] }], ['c']));
    await station.until(20);
    station.media.set('file://b', { length: 60_000 });
    await station.until(35);
    expect(station.aired.slice(0, 3)).toEqual(['a 0-10', 'c 10-15', 'c 15-20']);
    // Where it would be by now, within the second between two tries.
    expect(station.aired.slice(4)).toEqual([expect.stringMatching(/^b\+1[01](\.\d)? 2[01](\.\d)?-30$/), 'a 30-']);
    expect(station.holes(100)).toEqual([]);
    expect(station.lines('warn')).toEqual(['file://b cannot be played, the fallback program is on instead: there is no such file']);
    expect(station.lines('info')).toContain('file://b is on air again');
  });

  test('a file that breaks off is replaced within a second', async () => {
    const station = new FakeStation({ a: 10, b: 20, c: 5 });
    station.media.set('file://b', { length: 20_000, breaksAt: 8000 });
    await station.start(schedule([{ items: ['b', 'a'] }], ['c']));
    await station.until(25);
    expect(station.aired).toEqual(['b 0-8', 'c 8-13', 'c 13-18', 'c 18-20', 'a 20-']);
    expect(station.holes(100)).toEqual([]);
  });

  test('with fallbackOnErr false, or without a fallback program, the next item is on at once', async () => {
    for (const fallback of [['c'], []]) {
      const station = new FakeStation({ a: 10, b: 20, c: 5 });
      station.media.set('file://b', { length: 20_000, breaksAt: 8000 });
      const fallbackOnErr = fallback.length === 0;
      const items = ['a', { url: 'missing', duration: 30_000, fallbackOnErr }, { url: 'b', fallbackOnErr }, { url: 'a', start: 5000 }];
      await station.start(schedule([{ items }], fallback));
      await station.until(25);
      expect(station.aired).toEqual(['a 0-10', 'b 10-18', 'a+5 18-23', 'a 23-']);
      expect(station.holes(100)).toEqual([]);
      expect(station.lines('warn')).toEqual([
        'file://missing cannot be played, the next item is on instead: there is no such file',
        'file://b cannot be played, the next item is on instead: it cannot be read any further',
      ]);
    }
  });

  test('an absent live stream is replaced, and plays within a second of its return', async () => {
    const station = new FakeStation(FILES);
    await station.start(schedule([{ items: ['@cam'] }], ['c']));
    await station.until(10);
    station.media.set('stream://default/app/cam', { missing: true });
    await station.until(22);
    station.media.set('stream://default/app/cam', {});
    await station.until(30);
    expect(station.aired.slice(0, 3)).toEqual(['@cam 0-10', 'c 10-15', 'c 15-20']);
    expect(station.aired.at(-1)).toMatch(/^@cam 2[23](\.\d)?-$/);
    expect(station.holes(100)).toEqual([]);
  });

  test('a live stream without a fallback program is waited for', async () => {
    const station = new FakeStation(FILES);
    await station.start(schedule([{ repeat: false, items: ['@cam'] }]));
    await station.until(10);
    station.media.set('stream://default/app/cam', { missing: true });
    await station.until(20);
    station.media.set('stream://default/app/cam', {});
    await station.until(25);
    expect(station.aired).toEqual(['@cam 0-10', expect.stringMatching(/^@cam 2[01](\.\d)?-$/)]);
  });

  test('without a working alternative cost one attempt per second and one log line per minute', async () => {
    const station = new FakeStation({});
    await station.start(schedule([{ items: ['x', { url: 'y', fallbackOnErr: false }] }], ['z']));
    await station.until(100);
    expect(station.aired).toEqual([]);
    expect(station.playout.cues).toBeLessThan(250);
    expect(station.lines('warn').length).toBeLessThanOrEqual(6);
    const alone = new FakeStation({});
    await alone.start(schedule([{ items: ['x', 'y'] }]));
    await alone.until(100);
    expect(alone.playout.cues).toBeLessThan(250);
    alone.media.set('file://y', { length: 10_000 });
    await alone.until(105);
    expect(alone.aired.at(-1)).toMatch(/^y/);
  });

  test('in a long list are skipped slowly, and a working item after them is reached', async () => {
    const station = new FakeStation({ a: 60, b: 60 });
    const gone = Array.from({ length: 60 }, (_, index) => `gone${index}`);
    await station.start(schedule([{ items: ['b'] }, { at: 10, repeat: false, items: [...gone, 'a'] }]));
    // They are opened some seconds before.
    await station.until(4.9);
    const { cues } = station.playout;
    await station.until(6);
    expect(station.playout.cues - cues).toBeLessThanOrEqual(25);
    await station.until(16);
    expect(station.playout.onAir?.url).toBe('file://a');
  });

  test('continue at the scheduled position when they become playable again', async () => {
    const station = new FakeStation({ a: 10, b: 20 });
    // Their lengths are known: a disk that hangs, or a machine that is too busy.
    for (const media of station.media.values()) media.breaksAt = 0;
    await station.start(schedule([{ items: ['a', 'b'] }]), 303);
    await station.until(306.5);
    expect(station.aired).toEqual([]);
    for (const media of station.media.values()) delete media.breaksAt;
    await station.until(345);
    const [first, ...others] = station.aired;
    expect(first).toMatch(/^a\+\d/);
    const { from, position } = station.playout.aired[0]!;
    expect(from - position).toBeCloseTo(MIDNIGHT + 300_000, -2);
    expect(from).toBeLessThan(MIDNIGHT + 309_000);
    expect(others).toEqual(['b 310-330', 'a 330-340', 'b 340-']);
  });

  test('in the fallback program are followed by its next item', async () => {
    const station = new FakeStation({ c: 5 });
    await station.start(schedule([], ['missing', 'c']));
    await station.until(12);
    expect(station.aired).toEqual(['c 0-5', 'c 5-10', 'c 10-']);
    expect(station.holes(1000)).toEqual([]);
  });

  test('a fallback item that is short, or never ends, does not delay the scheduled item', async () => {
    for (const fallback of [{ url: 'c', duration: 1000 }, '@cam']) {
      const station = new FakeStation(FILES);
      await station.start(schedule([{ items: [{ url: 'late', duration: 60_000 }] }], [fallback]));
      await station.until(10);
      station.media.set('file://late', { length: 60_000 });
      await station.until(15);
      expect(station.aired.at(-1)).toMatch(/^late\+1[01](\.\d)? 1[01](\.\d)?-$/);
      expect(station.holes(100)).toEqual([]);
    }
  });

  test('a file with a length that cannot be played interrupts the fallback program for a moment at most', async () => {
    const station = new FakeStation({ b: 60, c: 5 });
    station.media.set('file://b', { length: 60_000, breaksAt: 0 });
    await station.start(schedule([{ items: ['b'] }], ['c']));
    await station.until(50);
    expect(station.aired.slice(0, 4)).toEqual(['c 0-5', 'c 5-10', 'c 10-15', 'c 15-20']);
    expect(station.holes(100)).toEqual([]);
  });

  test('do not delay the opening of items in the fallback program', async () => {
    for (const length of [8000, 6000, 4000]) {
      const station = new FakeStation({ b: 60 });
      // Conversion takes its time; the last file exists, and is unplayable.
      const opens = Math.min(3500, length - 3500);
      for (const name of ['c', 'd']) station.media.set(`file://${name}`, { length, opens });
      if (length !== 8000) station.media.set('file://b', { length: 60_000, breaksAt: 0, opens: 300 });
      else station.media.delete('file://b');
      await station.start(schedule([{ items: [{ url: 'b', duration: 600_000 }] }], ['c', 'd']));
      await station.until(60);
      expect(station.aired.length).toBeGreaterThan(6);
      expect(station.holes(100)).toEqual([]);
      for (const { from, url } of station.playout.aired.slice(1)) {
        const since = [...station.playout.cuedAt].findLast(([cued]) => cued.url === url && cued.at === from)?.[1] ?? from;
        expect(from - since).toBeGreaterThanOrEqual(2000);
      }
    }
  });

  test('that open slowly are not delayed by the items of the fallback program', async () => {
    const station = new FakeStation({ c: 6 });
    await station.start(schedule([{ items: [{ url: 'late', duration: 60_000 }] }], ['c']));
    await station.until(10);
    station.media.set('file://late', { length: 60_000, opens: 2500 });
    await station.until(25);
    expect(station.aired.at(-1)).toMatch(/^late\+1[2-6]/);
    expect(station.holes(100)).toEqual([]);
  });

  test('an unknown length does not delay the start of an item', async () => {
    const station = new FakeStation(FILES);
    station.lengths.hangs = true;
    await station.start(schedule([{ items: ['a', 'b'] }]));
    await station.until(15);
    expect(station.aired).toEqual(['a 2-12', 'b 12-']);
  });

  test('a slow item is replaced by the fallback program within a second, whether it opens later or not', async () => {
    for (const missing of [false, true]) {
      const station = new FakeStation({ c: 10 });
      station.media.set('file://late', { length: 60_000, opens: 3000, missing });
      station.lengths.hangs = missing;
      await station.start(schedule([{ items: [{ url: 'late', duration: 60_000 }] }], ['c']), 20);
      await station.until(40);
      // Its definition waits two seconds for unknown lengths.
      const begins = missing ? 22 : 20;
      const [first, second] = station.aired;
      expect(first).toMatch(missing ? /^c 22(\.9)?-|^c 23-/ : /^c 20\.9-|^c 21-/);
      expect(station.playout.aired[0]?.from).toBeLessThanOrEqual(MIDNIGHT + (begins + 1) * 1000);
      expect(second).toMatch(missing ? /^c / : /^late\+2[456]/);
      expect(station.holes(100)).toEqual([]);
      const reason = 'it is not ready 900 ms after its time';
      expect(station.lines('warn')[0]).toBe(`file://late cannot be played, the fallback program is on instead: ${reason}`);
    }
  });

  test('a slow item is awaited when the fallback program cannot be played either', async () => {
    const station = new FakeStation({});
    station.media.set('file://late', { length: 60_000, opens: 3000 });
    await station.start(schedule([{ items: [{ url: 'late', duration: 60_000 }] }], ['gone']), 20);
    await station.until(30);
    expect(station.aired).toEqual([expect.stringMatching(/^late\+2[4-6]/)]);
  });

  test('a fallback program that fails once is retried a second later while a slow item opens', async () => {
    const station = new FakeStation({ c: 10 });
    station.media.set('file://broken', { length: 60_000, opens: 60_000 });
    station.media.get('file://c')!.missing = true;
    await station.start(schedule([{ items: [{ url: 'broken', duration: 60_000 }] }], ['c']), 20);
    await station.until(21.2);
    expect(station.lines('warn').at(-1)).toMatch(/c of the fallback program cannot be played/);
    delete station.media.get('file://c')!.missing;
    await station.until(30);
    expect(station.playout.aired[0]?.url).toBe('file://c');
    expect(station.playout.aired[0]?.from).toBeLessThan(MIDNIGHT + 22_500);
  });

  test('an exception of the playout is logged, and the next change of the schedule plays', async () => {
    const station = new FakeStation({ a: 10, c: 5 });
    await station.start(schedule([{ items: ['a'] }]));
    await station.until(2);
    const cue = station.playout.cue.bind(station.playout);
    station.playout.cue = () => {
      station.playout.cue = cue;
      throw new Error('it is broken');
    };
    await station.update(schedule([{ items: ['c'] }]));
    expect(station.lines('error')).toEqual(['a scheduled channel failed inside the server']);
    await station.until(8);
    expect(station.playout.onAir?.url).toBe('file://c');
  });
});
