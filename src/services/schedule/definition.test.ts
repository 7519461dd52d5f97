import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { atOnce } from '../../util/in-slices.ts';
import { formatScheduleFile, parseScheduleFile } from './definition-file.ts';
import { changeSteps, definitionFromJson, definitionToJson } from './definition-json.ts';
import { type ScheduleDefinition, withoutPast } from './schedule-definition.ts';

const STREAM = { stream: { name: 'tv' } };
const changedByJson = (definition: ScheduleDefinition, body: object) => atOnce(changeSteps(definition, body as Record<string, unknown>));
const item = (members: object) => ({ ...STREAM, fallbackProgram: { items: [{ url: 'file://a.mp4', ...members }] } });
const program = (members: object) => ({ ...STREAM, programs: [{ scheduled: '2026-01-01T00:00:00Z', ...members }] });

const FULL = `<?xml version="1.0" encoding="UTF-8"?>
<Schedule>
  <Stream>
    <Name>another name</Name><BypassTranscoder>true</BypassTranscoder><VideoTrack>false</VideoTrack><AudioTrack>1</AudioTrack>
    <AudioMap>
      <Item><Name>English</Name><Language>en</Language><Characteristics>public.accessibility.describes-video</Characteristics></Item>
      <Item><Name>Deutsch &amp; mehr</Name></Item>
    </AudioMap>
    <ErrorToleranceDurationMs>750</ErrorToleranceDurationMs>
  </Stream>
  <FallbackProgram><Item url="file://slate.mp4" start="0" duration="60000"/></FallbackProgram>
  <Program name="later" scheduled="2030-01-01T00:00:00Z" repeat="false"/>
  <Program name="origin" scheduled="2022-03-14T15:10:0.0+09:00" repeat="true">
    <Item url="file://a b/%C3%A4.mp4"/>
    <Item url="stream://default/app/live" duration="400" fallbackOnErr="false"/>
  </Program>
  <Unknown/>
</Schedule>`;

const PARSED: ScheduleDefinition = {
  stream: {
    ...{ name: 'tv', bypassTranscoder: true, videoTrack: false, audioTrack: true, errorToleranceDurationMs: 750 },
    audioMap: [
      { name: 'English', language: 'en', characteristics: 'public.accessibility.describes-video' },
      { name: 'Deutsch & mehr', language: '', characteristics: '' },
    ],
  },
  fallback: [{ url: 'file://slate.mp4', start: 0, duration: 60_000, fallbackOnErr: true }],
  programs: [
    {
      ...{ name: 'origin', scheduled: '2022-03-14T15:10:0.0+09:00', startsAt: Date.UTC(2022, 2, 14, 6, 10), repeat: true },
      items: [
        { url: 'file://a b/%C3%A4.mp4', start: 0, duration: -1, fallbackOnErr: true },
        { url: 'stream://default/app/live', start: 0, duration: 1000, fallbackOnErr: false },
      ],
    },
    { name: 'later', scheduled: '2030-01-01T00:00:00Z', startsAt: Date.UTC(2030, 0, 1), repeat: false, items: [] },
  ],
};

describe('files', () => {
  test('are read: the name of the file is used, programs are sorted, and too short durations become a second', () => {
    expect(parseScheduleFile(FULL, 'tv', 'tv.sch')).toEqual(PARSED);
  });

  test('may be empty', () => {
    expect(parseScheduleFile('<Schedule/>', 'tv', 'tv.sch')).toEqual(definitionFromJson(STREAM));
  });

  test('are read back as they were written, including fallbackOnErr', () => {
    expect(parseScheduleFile(formatScheduleFile(PARSED), 'tv', 'tv.sch')).toEqual(PARSED);
  });

  test('store every definition that the API accepts, for arbitrary definitions', () => {
    const text = fc.string({ unit: 'grapheme' }).filter((value) => !/[\p{Cc}\ufffe\uffff]/u.test(value));
    const items = fc.array(
      fc.record({
        url: fc.constantFrom('file://a.mp4', 'file:///films/50%.mp4', 'file://a "b"&<c>.mp4', 'stream://default/app/live'),
        start: fc.nat(),
        duration: fc.integer({ min: -1 }),
        fallbackOnErr: fc.boolean(),
      }),
      { maxLength: 3 },
    );
    const body = fc.record({
      stream: fc.record({
        name: fc.constant('tv'),
        bypassTranscoder: fc.boolean(),
        videoTrack: fc.boolean(),
        audioTrack: fc.boolean(),
        audioMap: fc.array(fc.record({ name: text, language: text, characteristics: text }), { maxLength: 3 }),
        errorToleranceDurationMs: fc.nat(),
      }),
      fallbackProgram: fc.record({ items }),
      programs: fc.array(
        fc.record({
          name: text,
          scheduled: fc.constantFrom('2026-01-01T00:00:00Z', '2026-03-29T02:30[Europe/Berlin]'),
          repeat: fc.boolean(),
          items,
        }),
        { maxLength: 3 },
      ),
    });
    fc.assert(
      fc.property(body, (given) => {
        const definition = definitionFromJson(given);
        expect(parseScheduleFile(formatScheduleFile(definition), 'tv', 'tv.sch')).toEqual(definition);
      }),
    );
  });

  test.each([
    ['<Schedule>', 'not well-formed'],
    ['<Multiplex/>', 'line 1: the root element must be Schedule, but is Multiplex'],
    ['<Schedule>\n<Program/></Schedule>', 'line 2: Failed to find scheduled object, scheduled is required'],
    ['<Schedule>\n\n<Program scheduled="soon"/></Schedule>', 'line 3: Failed to parse scheduled attribute: Invalid ISO 8601 string'],
    ['<Schedule><FallbackProgram>\n<Item/></FallbackProgram></Schedule>', 'line 2: Failed to find url object, url is required'],
    [
      '<Schedule><Program scheduled="2026-01-01T00:00:00Z">\n<Item url="http://a/b"/></Program></Schedule>',
      'line 2: Failed to parse url attribute, url must be file:// or stream://',
    ],
    [
      '<Schedule><FallbackProgram><Item url="file://a" start="x"/></FallbackProgram></Schedule>',
      'Invalid [start] parameter: it must be a whole',
    ],
    ['<Schedule><Stream><VideoTrack>maybe</VideoTrack></Stream></Schedule>', 'Invalid [videoTrack] parameter: it must be true or false'],
  ])('%j is rejected with its line', (xml, message) => {
    expect(() => parseScheduleFile(xml, 'tv', 'tv.sch')).toThrow(message);
  });
});

describe('the API', () => {
  test('returns the definition with default values for the fields that were not sent', () => {
    const definition = definitionFromJson({
      ...program({ name: 'day', items: [{ url: 'file://a.mp4' }] }),
      fallbackProgram: { items: null },
    });
    expect(definitionToJson(definition)).toEqual({
      stream: {
        ...{ name: 'tv', bypassTranscoder: false, videoTrack: true, audioTrack: true },
        ...{ audioMap: null, errorToleranceDurationMs: 500 },
      },
      programs: [
        {
          ...{ name: 'day', scheduled: '2026-01-01T00:00:00Z', repeat: false },
          items: [{ url: 'file://a.mp4', start: 0, duration: -1 }],
        },
      ],
    });
    expect(definitionToJson(definitionFromJson(item({ fallbackOnErr: false })))).toMatchObject({
      fallbackProgram: { items: [{ url: 'file://a.mp4', start: 0, duration: -1, fallbackOnErr: false }] },
    });
    expect(definitionToJson(definitionFromJson({ ...program({}), ...item({}) }))).toMatchObject({
      fallbackProgram: {
        ...{ name: 'fallback', scheduled: '1970-01-01T00:00:00Z', repeat: true },
        items: [{ url: 'file://a.mp4', start: 0, duration: -1 }],
      },
      programs: [{ name: '', items: null }],
    });
  });

  test.each([
    [{}, 'Failed to find Stream object'],
    [{ stream: [] }, 'Failed to find Stream object'],
    [{ stream: {} }, 'Failed to find Stream.Name object'],
    [{ stream: { name: 1 } }, 'Failed to find Stream.Name object'],
    [{ stream: { name: 'a', audioMap: {} } }, 'audioMap must be an array'],
    [{ stream: { name: 'a', audioMap: ['en'] } }, 'Invalid [stream.audioMap[0]] parameter: it must be an object'],
    [{ stream: { name: 'a', audioMap: [{ name: 1 }] } }, 'Invalid [stream.audioMap[0].name] parameter: it must be a text'],
    [{ stream: { name: 'a', videoTrack: 'yes' } }, 'Invalid [stream.videoTrack] parameter: it must be true or false'],
    [{ stream: { name: 'a', errorToleranceDurationMs: -1 } }, 'Invalid [stream.errorToleranceDurationMs] parameter'],
    [{ ...STREAM, fallbackProgram: [] }, 'FallbackProgram must be an object'],
    [{ ...STREAM, programs: {} }, 'programs must be an array'],
    [{ ...STREAM, programs: [1] }, 'Invalid [programs[0]] parameter: it must be an object'],
    [{ ...STREAM, programs: [{}] }, 'Failed to find scheduled object, scheduled is required'],
    [program({ scheduled: 5 }), 'Failed to find scheduled object, scheduled is required'],
    [program({ scheduled: 'not a time' }), 'Failed to parse scheduled attribute: Invalid ISO 8601 string'],
    [program({ items: {} }), 'items must be an array'],
    [program({ items: [{}] }), 'Failed to find url object, url is required'],
    [program({ items: ['a'] }), 'Invalid [programs[0].items[0]] parameter: it must be an object'],
    [program({ repeat: 1 }), 'Invalid [programs[0].repeat] parameter: it must be true or false'],
    [program({ Items: [] }), 'Unknown parameter [programs[0].Items]: did you mean [programs[0].items]?'],
    [item({ url: 'http://127.0.0.1/x' }), 'Failed to parse url attribute, url must be file:// or stream://'],
    [item({ url: 'file://' }), 'Failed to parse url attribute, url must be file:// or stream://'],
    [item({ url: 'stream://default/app' }), 'a stream is stream://<vhost>/<app>/<stream>'],
    [item({ url: 'stream://default/app/a/b' }), 'a stream is stream://<vhost>/<app>/<stream>'],
    [item({ url: 'file://../secret.mp4' }), 'Failed to parse url attribute, "../secret.mp4" contains ".."'],
    [item({ url: 'file://a/%2e%2e/%2E%2E/secret.mp4' }), 'contains ".."'],
    [item({ url: 'file://a%00' }), 'contains a NUL character'],
    [item({ url: 'file://a?/../../secret.mp4' }), 'contains ".."'],
    [item({ start: -5 }), 'Invalid [fallbackProgram.items[0].start] parameter: it must be a whole number of milliseconds from 0'],
    [item({ duration: -2 }), 'Invalid [fallbackProgram.items[0].duration] parameter: it must be a whole number of milliseconds from -1'],
    [item({ duration: 1.5 }), 'Invalid [fallbackProgram.items[0].duration] parameter'],
    [item({ duration: 1e300 }), 'Invalid [fallbackProgram.items[0].duration] parameter'],
    [item({ fallbackOnErr: 'no' }), 'Invalid [fallbackProgram.items[0].fallbackOnErr] parameter: it must be true or false'],
  ])('%j is refused', (body, message) => {
    expect(() => definitionFromJson(body)).toThrow(
      expect.objectContaining({ name: 'ScheduleProblem', message: expect.stringContaining(message) }),
    );
  });

  test.each([
    [0, 1000],
    [999, 1000],
    [1001, 1001],
    [-1, -1],
  ])('a duration of %s ms is %s', (given, expected) => {
    expect(definitionFromJson(item({ duration: given })).fallback[0]?.duration).toBe(expected);
  });

  test('schemes are matched in any case and stored in lower case', () => {
    expect(definitionFromJson(item({ url: 'FILE://A?b.mp4' })).fallback[0]?.url).toBe('file://A?b.mp4');
    expect(definitionFromJson(item({ url: 'Stream://Default/app/Cam' })).fallback[0]?.url).toBe('stream://Default/app/Cam');
  });

  test('a change replaces the named parts as a whole, and only these', () => {
    expect(changedByJson(PARSED, {})).toEqual(PARSED);
    expect(changedByJson(PARSED, { programs: null, fallbackProgram: null })).toEqual(PARSED);
    expect(changedByJson(PARSED, { fallbackProgram: {} })).toEqual({ ...PARSED, fallback: [] });
    expect(changedByJson(PARSED, { programs: [] })).toEqual({ ...PARSED, programs: [] });
    expect(() => changedByJson(PARSED, { programs: [{ name: '9' }] })).toThrow('scheduled is required');
  });

  test('more than a channel can have is refused, in a request, a change and a file', () => {
    const scheduled = '2026-01-01T00:00:00Z';
    const audioMap = Array(17).fill({});
    expect(() => definitionFromJson({ stream: { name: 'tv', audioMap } })).toThrow(
      'Invalid [stream.audioMap] parameter: it has 17 entries, at most 16 are taken',
    );
    expect(() => definitionFromJson({ ...STREAM, programs: Array(5001).fill({ scheduled }) })).toThrow(
      'Invalid [programs] parameter: it has 5001 entries, at most 5000 are taken',
    );
    expect(() => definitionFromJson(program({ items: Array(10_001).fill({ url: 'file://a' }) }))).toThrow(
      'there are 10001 items in all programs, at most 10000 are taken',
    );
    const items = Array(6000).fill({ url: 'file://a' });
    const definition = definitionFromJson({ ...STREAM, fallbackProgram: { items } });
    const programs = [{ scheduled, items }];
    expect(() => changedByJson(definition, { programs })).toThrow('there are 12000 items in all programs');
    const file = `<Schedule><Stream><AudioMap>${'<Item/>'.repeat(17)}</AudioMap></Stream></Schedule>`;
    expect(() => parseScheduleFile(file, 'tv', 'tv.sch')).toThrow(/^line 1: Invalid \[audioMap\] parameter: it has 17 entries/);
    const many = `<Schedule>\n${`<Program scheduled="${scheduled}"/>`.repeat(5001)}</Schedule>`;
    expect(() => parseScheduleFile(many, 'tv', 'tv.sch')).toThrow('line 1: Invalid [programs] parameter: it has 5001 entries');
  });

  test('a file with more tags or attributes than a schedule can have is refused before it is read, and the largest schedule is not', () => {
    const refused = (inner: string) => expect(() => parseScheduleFile(`<Schedule>${inner}</Schedule>`, 'tv', 'tv.sch'));
    refused('<a/>'.repeat(31_000)).toThrow('The XML has more than 31000 tags');
    refused(`<a ${Array.from({ length: 56_001 }, (_, index) => `a${index}="1"`).join(' ')}/>`).toThrow(
      'The XML has more than 56000 attributes',
    );
    const item = { url: 'file://a', start: 1, duration: 2000, fallbackOnErr: false };
    const program = (index: number) => ({ name: `${index}`, scheduled: '2026-01-01T00:00:00Z', repeat: true, items: [item, item] });
    const audioMap = Array.from({ length: 16 }, () => ({ name: 'n', language: 'en', characteristics: 'c' }));
    const largest = definitionFromJson({
      stream: { name: 'tv', audioMap },
      programs: Array.from({ length: 5000 }, (_, index) => program(index)),
    });
    expect(parseScheduleFile(formatScheduleFile(largest), 'tv', 'tv.sch')).toEqual(largest);
  });

  test('programs may use at most fifty time zones, in a file and in the API', () => {
    const zones = Intl.supportedValuesOf('timeZone').slice(0, 51);
    const programs = zones.map((zone) => ({ scheduled: `2026-01-01T00:00:00[${zone}]` }));
    const message = 'programs are scheduled in more than 50 time zones';
    expect(() => definitionFromJson({ ...STREAM, programs })).toThrow(message);
    expect(definitionFromJson({ ...STREAM, programs: [...programs.slice(1), ...programs.slice(1)] }).programs.length).toBe(100);
    const file = (some: typeof programs) =>
      `<Schedule>${some.map(({ scheduled }) => `<Program scheduled="${scheduled}"/>`).join('')}</Schedule>`;
    expect(() => parseScheduleFile(file(programs), 'tv', 'tv.sch')).toThrow(message);
    expect(parseScheduleFile(file(programs.slice(1)), 'tv', 'tv.sch').programs.length).toBe(50);
  });

  test('past programs are left out', () => {
    const programs = [3, 1, 2].map((day) => ({ name: `${day}`, scheduled: `2026-01-0${day}T00:00:00Z` }));
    const definition = definitionFromJson({ ...STREAM, programs });
    const names = (now: number) => withoutPast(definition, now).programs.map(({ name }) => name);
    expect(names(Date.UTC(2026, 0, 1))).toEqual(['1', '2', '3']);
    expect(names(Date.UTC(2026, 0, 2) - 1)).toEqual(['1', '2', '3']);
    expect(names(Date.UTC(2026, 0, 2))).toEqual(['2', '3']);
    expect(names(Date.UTC(2050, 0, 1))).toEqual(['3']);
  });
});
