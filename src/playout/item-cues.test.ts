import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RecordingLogger } from '../../test/fakes/recording-logger.ts';
import { MAX_SUBTITLE_FILE } from '../containers/webvtt/subtitle-file.ts';
import { AllowedFolders } from '../util/allowed-folders.ts';
import { ItemCues } from './item-cues.ts';
import { MediaRoot } from './media-root.ts';
import { readSidecars } from './sidecars.ts';

const cue = (start: number, duration: number, text: string) => ({ start, duration, settings: '', text });

/** A stream that takes cues once `taken` has been set. */
function stream() {
  const shown: (readonly [string, number, number, string])[] = [];
  const state = { takes: true };
  const pushCue = (language: string, { at, duration, text }: { at: number; duration: number; text: string }): boolean => {
    if (state.takes) shown.push([language, at, duration, text]);
    return state.takes;
  };
  return { shown, state, pushCue };
}

describe('cues of an item', () => {
  it('are sent when they are due, with the time of the channel', () => {
    const to = stream();
    const subtitles = [
      { language: 'en', cues: [cue(0, 1000, 'a'), cue(5000, 1000, 'c')] },
      { language: 'ko', cues: [cue(2000, 500, 'b')] },
    ];
    const cues = new ItemCues(subtitles, 60_000);
    cues.send(to, { from: 60_000, until: 60_000, cut: Number.POSITIVE_INFINITY });
    expect(to.shown).toEqual([]);
    cues.send(to, { from: 60_000, until: 62_001, cut: Number.POSITIVE_INFINITY });
    cues.send(to, { from: 60_000, until: 70_000, cut: Number.POSITIVE_INFINITY });
    expect(to.shown).toEqual([
      ['en', 60, 1000, 'a'],
      ['ko', 62, 500, 'b'],
      ['en', 65, 1000, 'c'],
    ]);
    expect(cues.isEmpty).toBe(true);
  });

  it('are cut at the start and the end of the item', () => {
    const to = stream();
    const cues = new ItemCues(
      [{ language: 'en', cues: [cue(0, 1000, 'over'), cue(1000, 2000, 'joined'), cue(4000, 9000, 'cut'), cue(9000, 10, 'never')] }],
      0,
    );
    cues.send(to, { from: 2000, until: 10_000, cut: 5000 });
    expect(to.shown).toEqual([
      ['en', 2, 1000, 'joined'],
      ['en', 4, 1000, 'cut'],
    ]);
  });

  it('wait a limited time for a stream without media', () => {
    const to = stream();
    const cues = new ItemCues([{ language: 'en', cues: [cue(0, 1000, 'a')] }], 0);
    const turn = () => cues.send(to, { from: 0, until: 500, cut: 5000 });
    to.state.takes = false;
    turn();
    expect(cues.isEmpty).toBe(false);
    to.state.takes = true;
    turn();
    expect(to.shown).toHaveLength(1);
    const lost = new ItemCues([{ language: 'en', cues: [cue(0, 1000, 'a')] }], 0);
    to.state.takes = false;
    for (let turns = 0; turns < 60; turns += 1) lost.send(to, { from: 0, until: 500, cut: 5000 });
    expect(lost.isEmpty).toBe(true);
  });
});

describe('cues of an item that may be cut at any time', () => {
  const END = Number.POSITIVE_INFINITY;

  it('are sent in pieces, each when it is due, without a gap', () => {
    const to = stream();
    const cues = new ItemCues([{ language: 'en', cues: [cue(500, 2500, 'long'), cue(900, 300, 'short')] }], 0, 1000);
    for (let until = 0; until <= 1600; until += 100) cues.send(to, { from: 0, until, cut: END });
    expect(to.shown).toEqual([
      ['en', 0.5, 1000, 'long'],
      ['en', 0.9, 300, 'short'],
      ['en', 1.5, 1000, 'long'],
    ]);
    expect(cues.isEmpty).toBe(false);
    cues.send(to, { from: 0, until: 9000, cut: END });
    expect(to.shown.slice(3)).toEqual([['en', 2.5, 500, 'long']]);
    expect(cues.isEmpty).toBe(true);
  });

  it('end where the item is cut, and continue after a piece that was refused', () => {
    const to = stream();
    const cues = new ItemCues([{ language: 'en', cues: [cue(0, 60_000, 'long')] }], 0, 1000);
    cues.send(to, { from: 0, until: 500, cut: END });
    to.state.takes = false;
    cues.send(to, { from: 0, until: 1500, cut: END });
    to.state.takes = true;
    cues.send(to, { from: 0, until: 2500, cut: 2600 });
    expect(to.shown).toEqual([
      ['en', 0, 1000, 'long'],
      ['en', 2, 600, 'long'],
    ]);
    expect(cues.isEmpty).toBe(true);
  });

  it('are sent whole when more than 16 are on at once', () => {
    const to = stream();
    const crowd = Array.from({ length: 40 }, (_, index) => cue(0, 5000, `${index}`));
    const cues = new ItemCues([{ language: 'en', cues: crowd }], 0, 1000);
    cues.send(to, { from: 0, until: 1, cut: END });
    expect(to.shown.filter(([, , duration]) => duration === 1000)).toHaveLength(16);
    expect(to.shown.filter(([, , duration]) => duration === 5000)).toHaveLength(24);
  });
});

describe('subtitle files of a film', () => {
  let folder: string;
  let root: MediaRoot;
  const logger = new RecordingLogger();
  const languages = ['en-GB', 'ko', '../../etc', 'de'];
  const read = async (url: string) =>
    (await readSidecars(root, url, { languages, logger })).map(({ language, cues }) => [language, cues.map(({ text }) => text)]);
  const warnings = () => logger.lines.filter(({ level }) => level === 'warn').map(({ message }) => message);
  const subtitle = (text: string): string => `00:00:01,000 --> 00:00:02,000\n${text}\n`;

  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'millrace-sidecars-'));
    root = new MediaRoot(folder, new AllowedFolders(null, 'the test'));
    mkdirSync(join(folder, 'a.b'));
    for (const name of ['film.en.srt', 'film.ko.vtt', 'film.de.srt', 'plain.vtt', 'film.fr.vtt', 'a.b/noextension.srt']) {
      writeFileSync(join(folder, name), subtitle(name));
    }
    writeFileSync(join(folder, 'both.en-GB.srt'), subtitle('exact'));
    writeFileSync(join(folder, 'both.srt'), subtitle('any'));
    writeFileSync(join(folder, 'bad.srt'), 'no subtitles');
    writeFileSync(join(folder, 'large.srt'), Buffer.alloc(MAX_SUBTITLE_FILE + 1, 'a'));
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  it('are found only for the languages of the application', async () => {
    expect(await read('file://film.mp4')).toEqual([
      ['en-GB', ['film.en.srt']],
      ['ko', ['film.ko.vtt']],
      ['de', ['film.de.srt']],
    ]);
    expect(await read('file://plain.mp4')).toEqual([['en-GB', ['plain.vtt']]]);
    expect(await read('file://both.mp4')).toEqual([['en-GB', ['exact']]]);
    expect(await read('file://a.b/noextension')).toEqual([['en-GB', ['a.b/noextension.srt']]]);
    expect(await read('file://nothing.mp4')).toEqual([]);
    expect(warnings()).toEqual([]);
  });

  it('are left out with a log line when they cannot be shown', async () => {
    expect(await read('file://bad.mp4')).toEqual([]);
    expect(await read('file://large.mp4')).toEqual([]);
    expect(warnings()).toEqual([
      'subtitles cannot be shown: the file has no subtitles',
      `subtitles cannot be shown: the file has more than ${MAX_SUBTITLE_FILE} bytes`,
    ]);
  });

  it('do not block the event loop while a large one is read', async () => {
    const bytes = Buffer.from(`${'\n'.repeat(1_000_000)}${subtitle('late')}`);
    // A disk that takes no time.
    const disk = { open: async () => ({ size: bytes.length, read: async () => bytes, close: async () => undefined }) };
    let turns = 0;
    let isOver = false;
    const count = (): void => {
      turns += 1;
      if (!isOver) setImmediate(count);
    };
    setImmediate(count);
    const found = await readSidecars(disk, 'file://film.mp4', { languages: ['ko'], logger });
    isOver = true;
    expect(found.map(({ cues }) => cues.map(({ text }) => text))).toEqual([['late']]);
    expect(turns).toBeGreaterThan(50);
  });
});
