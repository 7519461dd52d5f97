import { describe, expect, test } from 'vitest';
import { definitionFromJson } from './definition-json.ts';
import { grained, ScheduleTimeline, type Slot } from './schedule-timeline.ts';

const START = Date.UTC(2026, 0, 1);
const HOUR = 3_600_000;
const LENGTHS: Readonly<Record<string, number>> = {
  'file://ten.mp4': 10_000,
  'file://twenty.mp4': 20_000,
  'file://odd.mp4': grained(10_026.667),
};

interface Given {
  /** Hours after the start. */
  readonly at?: number;
  readonly repeat?: boolean;
  readonly items?: readonly (string | object)[];
}

function timeline(...programs: readonly Given[]): ScheduleTimeline {
  const definition = definitionFromJson({
    stream: { name: 'tv' },
    programs: programs.map(({ at = 0, repeat = true, items = [] }, index) => ({
      ...{ name: `${index}`, scheduled: new Date(START + at * HOUR).toISOString(), repeat },
      items: items.map((item) => (typeof item === 'string' ? { url: item } : item)),
    })),
  });
  return new ScheduleTimeline(definition.programs, {
    lengthOf: ({ url }) => LENGTHS[url] ?? null,
    skips: ({ fallbackOnErr }) => !fallbackOnErr,
  });
}

/** `program/index@start+length`, times in ms after the start. */
function shown({ program, index, startsAt, length }: Slot): string {
  return `${program?.name ?? '-'}/${index}@${startsAt - START}+${length}`;
}

const at = (of: ScheduleTimeline, ms: number): string => shown(of.at(START + ms));

describe('the position of a moment', () => {
  const two = timeline({ items: ['file://ten.mp4', { url: 'file://twenty.mp4', start: 5000 }] });

  test.each([
    [0, '0/0@0+10000'],
    [9999, '0/0@0+10000'],
    [10_000, '0/1@10000+15000'],
    [25_000, '0/0@25000+10000'],
    [25_000 * 1_000_000 + 12_000, '0/1@25000010000+15000'],
  ])('%s ms into a program that repeats: %s', (ms, expected) => expect(at(two, ms)).toBe(expected));

  test('a program without repetition ends after its last item', () => {
    const once = timeline({ repeat: false, items: ['file://ten.mp4', 'file://ten.mp4'] }, { at: 1, items: ['file://ten.mp4'] });
    expect(at(once, 19_999)).toBe('0/1@10000+10000');
    expect(at(once, 20_000)).toBe('0/-1@20000+Infinity');
    expect(once.endOf(once.at(START + 20_000))).toBe(START + HOUR);
    expect(at(once, HOUR)).toBe('1/0@3600000+10000');
  });

  test('no item is scheduled before the first program, in an empty program or without programs', () => {
    const later = timeline({ at: 1 }, { at: 2, items: ['file://ten.mp4'] });
    expect(at(later, 0)).toBe('-/-1@-Infinity+Infinity');
    expect(later.endOf(later.at(START))).toBe(START + HOUR);
    expect(at(later, HOUR + 5)).toBe(`0/-1@${HOUR}+Infinity`);
    expect(later.endOf(later.at(START + HOUR + 5))).toBe(START + 2 * HOUR);
    const never = timeline();
    expect(never.endOf(never.at(START))).toBe(Number.POSITIVE_INFINITY);
  });

  test('an item lasts for its configured duration, at most to the end of its file', () => {
    const cut = timeline({
      items: [
        { url: 'file://ten.mp4', duration: 4000 },
        { url: 'file://ten.mp4', duration: 60_000, start: 2000 },
      ],
    });
    expect([at(cut, 0), at(cut, 4000), at(cut, 12_000)]).toEqual(['0/0@0+4000', '0/1@4000+8000', '0/0@12000+4000']);
  });

  test('a live item without a duration has no end, and its program does not repeat', () => {
    const live = timeline({ items: ['file://ten.mp4', 'stream://default/app/a'] });
    expect(at(live, 100 * HOUR)).toBe('0/1@10000+Infinity');
    expect(live.endOf(live.at(START + HOUR))).toBe(Number.POSITIVE_INFINITY);
    const short = timeline({ items: ['file://ten.mp4', { url: 'stream://default/app/a', duration: 5000 }] });
    expect(at(short, 15_000 * 7 + 12_000)).toBe('0/1@115000+5000');
  });

  test('a file of unknown length takes its configured duration, has no end without one, and no time before other items', () => {
    const given = timeline({ items: [{ url: 'file://missing.mp4', duration: 5000 }, 'file://ten.mp4'] });
    expect([at(given, 4999), at(given, 5000)]).toEqual(['0/0@0+5000', '0/1@5000+10000']);
    expect(at(timeline({ items: ['file://ten.mp4', 'file://missing.mp4'] }), HOUR)).toBe('0/1@10000+null');
    const skipped = timeline({ items: [{ url: 'file://missing.mp4', fallbackOnErr: false, duration: 5000 }, 'file://ten.mp4'] });
    expect([at(skipped, 0), at(skipped, 9999), at(skipped, 10_000)]).toEqual(['0/1@0+10000', '0/1@0+10000', '0/1@10000+10000']);
  });

  test('a program without a playable item tries the first one', () => {
    expect(at(timeline({ items: [{ url: 'file://missing.mp4', fallbackOnErr: false }] }), 7777)).toBe('0/0@7777+null');
  });

  test('an item that starts at or after the end of its file has no end', () => {
    expect(at(timeline({ items: [{ url: 'file://ten.mp4', start: 10_000 }] }), 5)).toBe('0/0@0+null');
  });
});

describe('consecutive slots', () => {
  test('equal the position at each moment exactly, for a year', () => {
    const odd = timeline({ items: ['file://odd.mp4', { url: 'file://ten.mp4', duration: 3333 }] });
    let slot = odd.at(START);
    for (let turns = 0; slot.startsAt < START + 365 * 24 * HOUR; turns += 1) {
      slot = odd.after(slot, odd.endOf(slot));
      if (turns % 1000 === 0) expect(odd.at(slot.startsAt)).toEqual(slot);
    }
    expect(odd.at(slot.startsAt)).toEqual(slot);
  });

  test('cross programs, which cut the running item, and empty programs', () => {
    const all = timeline(
      ...[
        { repeat: false, items: ['file://ten.mp4'] },
        { at: 1, items: ['stream://default/app/a'] },
      ],
      ...[{ at: 2 }, { at: 3, items: ['file://twenty.mp4'] }],
    );
    const seen: string[] = [];
    let slot = all.at(START - 5);
    for (let turns = 0; turns < 7; turns += 1) {
      seen.push(`${shown(slot)} to ${all.endOf(slot) - START}`);
      slot = all.after(slot, all.endOf(slot));
    }
    expect(seen).toEqual([
      '-/-1@-Infinity+Infinity to 0',
      '0/0@0+10000 to 10000',
      '0/-1@10000+Infinity to 3600000',
      '1/0@3600000+Infinity to 7200000',
      '2/-1@7200000+Infinity to 10800000',
      '3/0@10800000+20000 to 10820000',
      '3/0@10820000+20000 to 10840000',
    ]);
  });

  test('an item that ended early is followed at once', () => {
    const two = timeline({ items: ['file://ten.mp4', 'file://twenty.mp4'] });
    expect(shown(two.after(two.at(START), START + 4000))).toBe('0/1@4000+20000');
  });
});
