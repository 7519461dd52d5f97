import { describe, expect, test } from 'vitest';
import { FakeStation, MIDNIGHT, schedule } from '../../../test/fakes/fake-station.ts';

const FILES = { a: 10, b: 20, c: 5, long: 600, '@cam': 0 };

describe('the running item', () => {
  test('follows the schedule, item after item and round after round, each on its time and opened before', async () => {
    const station = new FakeStation(FILES);
    await station.start(schedule([{ items: ['a', 'b'] }]));
    await station.until(65);
    expect(station.aired).toEqual(['a 0-10', 'b 10-30', 'a 30-40', 'b 40-60', 'a 60-']);
    expect(station.holes()).toEqual([]);
    const { cuedAt } = station.playout;
    expect([...cuedAt].slice(1).map(([{ at }, since]) => at - since >= 2000)).toEqual([true, true, true, true]);
    expect(station.lines('warn')).toEqual([]);
  });

  test('is joined at its scheduled position, and at its start within the first second', async () => {
    for (const [start, expected] of [
      [47, ['b+7 47-60', 'a 60-']],
      [60.6, ['a 60.6-70', 'b 70-']],
      [30 * 100_000 + 5, ['a+5 3000005-3000010', 'b 3000010-']],
    ] as const) {
      const station = new FakeStation(FILES);
      await station.start(schedule([{ items: ['a', 'b'] }]), start);
      await station.until(Math.floor(start) + 14);
      expect(station.aired).toEqual(expected);
    }
  });

  test('begins at `start` and lasts for `duration`, of the file at the most', async () => {
    const station = new FakeStation(FILES);
    await station.start(
      schedule([
        {
          items: [
            { url: 'long', start: 60_000, duration: 5000 },
            { url: 'a', start: 4000, duration: 60_000 },
          ],
        },
      ]),
    );
    await station.until(15);
    expect(station.aired).toEqual(['long+60 0-5', 'a+4 5-11', 'long+60 11-']);
  });

  test('a program cuts the previous one, and the fallback program repeats after a program without repetition', async () => {
    const station = new FakeStation(FILES);
    await station.start(
      schedule([{ items: ['long'] }, { at: 20, repeat: false, items: ['a'] }, { at: 44, items: ['b'] }], ['c', { url: 'c', start: 1000 }]),
    );
    await station.until(50);
    expect(station.aired).toEqual(['long 0-20', 'a 20-30', 'c 30-35', 'c+1 35-39', 'c 39-44', 'b 44-']);
    expect(station.holes()).toEqual([]);
    expect(station.lines('warn')).toEqual([]);
  });

  test('the fallback program plays before the first program; without it the channel waits for the first program', async () => {
    const station = new FakeStation(FILES);
    await station.start(schedule([{ at: 12, items: ['a'] }], ['c']));
    await station.until(15);
    expect(station.aired).toEqual(['c 0-5', 'c 5-10', 'c 10-12', 'a 12-']);
    const silent = new FakeStation(FILES);
    await silent.start(schedule([{ at: 2, repeat: false, items: ['c'] }, { at: 12 }, { at: 20, items: ['a'] }]));
    await silent.until(25);
    expect(silent.aired).toEqual(['c 2-7', 'a 20-']);
  });

  test('a live item lasts as long as its duration or its program', async () => {
    const station = new FakeStation(FILES);
    await station.start(
      schedule([{ items: [{ url: '@cam', duration: 7000 }, 'c'] }, { at: 24, items: ['@cam'] }, { at: 40, items: ['a'] }]),
    );
    await station.until(45);
    expect(station.aired).toEqual(['@cam 0-7', 'c 7-12', '@cam 12-19', 'c 19-24', '@cam 24-40', 'a 40-']);
  });

  test('start times do not drift: items of odd lengths start as scheduled after a simulated day', async () => {
    const station = new FakeStation({ odd: 10.0267, other: 7.3333 });
    const day = 24 * 3600;
    await station.start(schedule([{ items: ['odd', 'other'] }]));
    await station.until(day);
    const round = Math.round(10_026.7 * 1024) / 1024 + Math.round(7333.3 * 1024) / 1024;
    const last = station.playout.aired.findLast(({ url }) => url === 'file://odd');
    const rounds = Math.floor((day * 1000) / round);
    expect(last?.from).toBe(MIDNIGHT + rounds * round);
    expect(station.holes()).toEqual([]);
  }, 60_000);

  test('follows the schedule after any jump of the clock', async () => {
    const station = new FakeStation(FILES);
    await station.start(schedule([{ items: ['a', 'b'] }]));
    await station.until(12);
    const years = 10 * 365 * 24 * 3600;
    station.clock.advance(years * 1000);
    await station.until(years + 15);
    expect(station.playout.onAir).toMatchObject({ url: 'file://b', at: MIDNIGHT + (years + 10) * 1000 });
    station.clock.advance(-(years + 10) * 1000);
    await station.until(7);
    expect(station.playout.onAir).toMatchObject({ url: 'file://a', at: MIDNIGHT });
  });

  test('a first frame sent early does not shift the schedule', async () => {
    const station = new FakeStation({ a: 10, b: 20 });
    for (const media of station.media.values()) media.early = 150;
    await station.start(schedule([{ items: ['a', 'b'] }]));
    await station.until(65);
    expect(station.playout.cues).toBe(5);
    expect(station.aired).toEqual(['a 0-10', 'b 10-30', 'a 30-40', 'b 40-60', 'a 60-']);
  });
});

describe('a file of unexpected length', () => {
  test('is followed at once when it ends early, and by its length from then on', async () => {
    const station = new FakeStation(FILES);
    await station.start(schedule([{ items: ['a', 'b'] }]));
    // Cut short behind its first look-up.
    station.media.set('file://a', { length: 6000 });
    await station.until(50);
    expect(station.aired).toEqual(['a 0-6', 'b 6-26', 'a 26-32', 'b 32-']);
  });

  test('is not affected when the wall clock is set back while it plays', async () => {
    const station = new FakeStation(FILES);
    await station.start(schedule([{ items: ['a', 'b'] }]));
    station.media.set('file://a', { length: 10_000, hurries: 3000 });
    await station.until(8);
    station.media.set('file://a', { length: 10_000 });
    expect(station.lengths.of({ url: 'file://a' })).toBe(10_000);
    await station.until(50);
    expect(station.aired).toEqual(['a 0-7', 'b 7-27', 'a 27-37', 'b 37-']);
  });

  test('is measured again before it plays again', async () => {
    const station = new FakeStation(FILES);
    await station.start(schedule([{ items: ['a', 'b', 'c'] }]));
    await station.until(8);
    station.media.set('file://c', { length: 8000 });
    await station.until(40);
    expect(station.aired).toEqual(['a 0-10', 'b 10-30', 'c 30-38', 'a 38-']);
  });

  test('counts with its real length in the search for a position', async () => {
    const station = new FakeStation(FILES);
    station.media.set('file://a', { length: 6000, says: 10_000 });
    await station.start(schedule([{ items: ['a', 'b'] }]));
    await station.until(30);
    station.clock.advance(26_000 * 100);
    await station.until(2635);
    expect(station.aired.slice(0, 3)).toEqual(['a 0-6', 'b 6-26', 'a 26-32']);
    expect(station.playout.onAir).toMatchObject({ url: 'file://b', at: MIDNIGHT + 2632_000 });
  });
});

describe('a change of the schedule', () => {
  test('keeps the running item when it is unchanged, and replaces the following items', async () => {
    const station = new FakeStation(FILES);
    await station.start(schedule([{ items: ['b', 'a'] }]));
    await station.until(5);
    await station.update(schedule([{ items: ['b', 'c'] }], ['a']));
    await station.until(30);
    expect(station.aired).toEqual(['b 0-20', 'c 20-25', 'b 25-']);
  });

  test('with the same contents does not interrupt the running item, even after a skipped item', async () => {
    const station = new FakeStation(FILES);
    const same = () => schedule([{ items: [{ url: 'missing', fallbackOnErr: false, duration: 9000 }, 'b'] }]);
    await station.start(same());
    await station.until(12);
    await station.update(same());
    await station.until(19.5);
    // The next item is opened already.
    await station.update(same());
    await station.until(21);
    expect(station.aired).toEqual(['b 0-20', 'b 20-']);
  });

  test('does not reopen the next item when it is unchanged', async () => {
    const station = new FakeStation(FILES);
    await station.start(schedule([{ items: ['b', 'a'] }]));
    await station.until(18);
    const { cues } = station.playout;
    await station.update(schedule([{ items: ['b', 'a', 'c'] }]));
    await station.until(19);
    expect(station.playout.cues).toBe(cues);
    await station.until(32);
    expect(station.aired).toEqual(['b 0-20', 'a 20-30', 'c 30-']);
  });

  test('takes effect at once when the running item differs', async () => {
    const station = new FakeStation(FILES);
    await station.start(schedule([{ items: ['b'] }]));
    await station.until(5);
    await station.update(schedule([{ items: ['long'] }]));
    await station.until(8);
    await station.update(schedule([{ items: [{ url: 'long', start: 60_000 }] }]));
    await station.until(10);
    await station.update(schedule([]));
    await station.until(12);
    await station.update(schedule([], ['c']));
    await station.until(14);
    expect(station.aired).toEqual(['b 0-5', 'long+5 5-8', 'long+68 8-10', 'c 12-']);
  });

  test('moves the end of the running item with the next program, even when that is already open', async () => {
    const station = new FakeStation(FILES);
    await station.start(schedule([{ items: ['long'] }, { at: 20, items: ['a'] }]));
    await station.until(18.5);
    await station.update(schedule([{ items: ['long'] }, { at: 30, items: ['a'] }]));
    await station.until(28.5);
    await station.update(schedule([{ items: ['long'] }, { at: 29, items: ['a'] }]));
    await station.until(31);
    expect(station.aired).toEqual(['long 0-29', 'a 29-']);
  });

  test('several simultaneous changes end with the last one', async () => {
    const station = new FakeStation(FILES);
    await station.start(schedule([{ items: ['a'] }]));
    await station.until(5);
    for (const item of ['b', 'c', 'long', 'b']) station.channel.update(schedule([{ items: [item] }]));
    await station.until(8);
    expect(station.aired).toEqual(['a 0-5', 'b+5 5-']);
  });

  test('that finishes measuring lengths after a later change is discarded', async () => {
    const station = new FakeStation(FILES);
    await station.start(schedule([{ items: ['a'] }]));
    await station.until(5);
    const { promise, resolve } = Promise.withResolvers<null>();
    const look = station.lengths.look.bind(station.lengths);
    station.lengths.look = (item) => (item.url === 'file://b' ? promise : look(item));
    await station.update(schedule([{ items: ['b'] }]));
    await station.update(schedule([{ items: ['long'] }]));
    resolve(null);
    await station.until(8);
    expect(station.aired).toEqual(['a 0-5', 'long+5 5-']);
  });

  test('many changes near item boundaries do not interrupt unchanged items, and open each item once', async () => {
    const station = new FakeStation(FILES);
    const items = ['a', 'c', 'b'];
    const change = (turn: number) => schedule([{ items }, { at: 1000 + turn, items: ['c'] }], turn % 2 === 0 ? ['c'] : ['a']);
    await station.start(change(0));
    // Before, at and behind each boundary; some come while the previous change is not in force yet.
    for (let turn = 1; turn < 700; turn += 1) {
      await station.until(turn / 10);
      const latest = change(turn);
      if (turn % 3 === 0) station.channel.update(change(turn + 1));
      await station.update(latest);
    }
    expect(station.aired).toEqual(['a 0-10', 'c 10-15', 'b 15-35', 'a 35-45', 'c 45-50', 'b 50-']);
    expect(station.holes()).toEqual([]);
    expect(station.playout.cues).toBe(7);
    expect(station.lines('warn')).toEqual([]);
  });

  test('starts a fallback program after a failure, and replaces a running fallback program', async () => {
    const station = new FakeStation(FILES);
    const items = [{ url: 'missing', duration: 60_000 }];
    await station.start(schedule([{ items }]));
    await station.until(5);
    await station.update(schedule([{ items }], ['long']));
    await station.until(10);
    await station.update(schedule([{ items }], ['long']));
    await station.until(12);
    await station.update(schedule([{ items }], ['b']));
    await station.until(15);
    expect(station.aired).toEqual([expect.stringMatching(/^long 5/), expect.stringMatching(/^b 12/)]);
    expect(station.holes(100)).toEqual([]);
  });

  test('of the Stream part logs a warning and has no effect on a running channel', async () => {
    const station = new FakeStation(FILES);
    await station.start(schedule([{ items: ['a'] }]));
    const changed = schedule([{ items: ['a'] }]);
    await station.update({ ...changed, stream: { ...changed.stream, videoTrack: false } });
    expect(station.channel.settings.videoTrack).toBe(true);
    expect(station.lines('warn')).toEqual([expect.stringContaining('the Stream part of a running channel cannot be changed')]);
  });
});

describe('the stream', () => {
  test('is retried every second while its name is taken, and after its end from outside', async () => {
    const station = new FakeStation(FILES);
    station.refused = "stream 'tv' is already being published";
    await station.start(schedule([{ items: ['long'] }]));
    await station.until(5);
    station.refused = null;
    await station.until(10);
    station.lose('the application restarts');
    await station.until(15);
    expect(station.playouts.length).toBe(2);
    expect(station.playouts[0]?.closed).toBe(true);
    expect(station.aired.map((each) => each.replaceAll(/\.\d/g, ''))).toEqual(['long+5 5-10', 'long+11 11-']);
    expect(station.lines('warn')).toEqual([
      "the stream cannot begin: stream 'tv' is already being published",
      'the stream was ended: the application restarts',
    ]);
  });

  test('ends with the channel, and no further item plays', async () => {
    const station = new FakeStation(FILES);
    await station.start(schedule([{ items: ['a'] }]));
    await station.until(5);
    station.channel.close();
    station.channel.close();
    await station.until(20);
    expect(station.playouts.length).toBe(1);
    expect(station.aired).toEqual(['a 0-5']);
  });
});

test('logs each program that starts, even without a name', async () => {
  const station = new FakeStation(FILES);
  const named = schedule([{ items: ['a'] }, { at: 10, items: ['a', 'c'] }]);
  await station.start({ ...named, programs: named.programs.map((program, index) => (index === 1 ? { ...program, name: '' } : program)) });
  await station.until(12);
  expect(station.lines('info').filter((line) => line.includes('scheduled for'))).toEqual([
    "program 'p0' with 1 item is on, scheduled for 2026-01-01T00:00:00.000Z",
    'a program with 2 items is on, scheduled for 2026-01-01T00:00:10.000Z',
  ]);
});

test('reports the running item and its position', async () => {
  const station = new FakeStation(FILES);
  await station.start(schedule([{ items: [{ url: 'b', start: 3000 }, '@cam'] }, { at: 60, repeat: false, items: ['a'] }], ['long']), 4);
  const onAir = () => {
    const { item, programStartsAt, position } = station.channel.onAir ?? { item: null, programStartsAt: 0, position: 0 };
    return [item?.url, (programStartsAt - MIDNIGHT) / 1000, Math.round(position / 100) / 10];
  };
  await station.until(6);
  expect(onAir()).toEqual(['file://b', 0, 6]);
  await station.until(30);
  expect(onAir()).toEqual(['stream://default/app/cam', 0, 13]);
  await station.until(61);
  expect(onAir()).toEqual(['file://a', 60, 1]);
  await station.until(75);
  expect(station.channel.onAir).toBeNull();
});

describe('a wall clock that is set back', () => {
  test('does not stop retries of a failed item', async () => {
    const station = new FakeStation({ c: 60, '@cam': 0 });
    const camera = station.media.get('stream://default/app/cam')!;
    camera.missing = true;
    await station.start(schedule([{ items: ['@cam'] }], ['c']), 36_000);
    await station.until(36_003);
    expect(station.playout.onAir?.url).toBe('file://c');
    station.clock.setOn(-7_200_000);
    camera.missing = false;
    await station.until(28_803 + 4);
    expect(station.playout.onAir?.url).toBe('stream://default/app/cam');
  });

  test('does not prevent the start of a stream whose name was taken', async () => {
    const station = new FakeStation({ a: 10 });
    station.refused = 'the name is taken';
    await station.start(schedule([{ items: ['a'] }]), 36_000);
    await station.until(36_003);
    station.clock.setOn(-7_200_000);
    station.refused = null;
    await station.until(28_803 + 3);
    expect(station.playouts.length).toBe(1);
  });
});
