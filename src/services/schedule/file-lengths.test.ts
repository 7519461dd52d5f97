import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ManualClock } from '../../../test/fakes/manual-clock.ts';
import { FileLengths } from './file-lengths.ts';

let folder: string;
let measured: string[];
let lengths: FileLengths;
let clock: ManualClock;
/** The meter's result for any file. */
let says: () => number | Promise<number>;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'millrace-lengths-'));
  measured = [];
  says = () => 1234.5;
  clock = new ManualClock();
  const meter = {
    placeOf: async (url: string) => {
      if (url.includes('..')) throw new Error('outside');
      return join(folder, url.slice('file://'.length));
    },
    lengthOf: async (url: string) => {
      measured.push(url.slice('file://'.length));
      return says();
    },
  };
  lengths = new FileLengths(meter, clock);
});
afterEach(() => rmSync(folder, { recursive: true }));

const film = { url: 'file://film.mp4' };

test('a file is measured once, and again when it is replaced', async () => {
  writeFileSync(join(folder, 'film.mp4'), 'film');
  expect(lengths.of(film)).toBeNull();
  expect(await Promise.all([lengths.look(film), lengths.look(film)])).toEqual([1234.5, 1234.5]);
  expect(await lengths.look(film)).toBe(1234.5);
  expect(lengths.of(film)).toBe(1234.5);
  expect(measured).toEqual(['film.mp4']);
  says = () => 99;
  writeFileSync(join(folder, 'new'), 'film');
  renameSync(join(folder, 'new'), join(folder, 'film.mp4'));
  expect(await lengths.look(film)).toBe(99);
  writeFileSync(join(folder, 'film.mp4'), 'a longer film');
  says = () => 77;
  expect(await lengths.look(film)).toBe(77);
});

test('an unreadable length is measured again with growing delays while the file is unchanged', async () => {
  expect(await lengths.look(film)).toBeNull();
  writeFileSync(join(folder, 'film.mp4'), 'film');
  for (const wrong of [Number.NaN, Number.POSITIVE_INFINITY, 0, -5]) {
    says = () => wrong;
    expect(await lengths.look(film)).toBeNull();
    clock.advance(60_000);
  }
  says = () => Promise.reject(new Error('it is no film'));
  expect(await lengths.look(film)).toBeNull();
  expect(measured.length).toBe(5);
  says = () => 5;
  clock.advance(31_999);
  expect(await lengths.look(film)).toBeNull();
  expect(measured.length).toBe(5);
  clock.advance(1);
  expect(await lengths.look(film)).toBe(5);
  says = () => Promise.reject(new Error('it is no film'));
  writeFileSync(join(folder, 'film.mp4'), 'half of a film');
  expect(await lengths.look(film)).toBeNull();
  says = () => 7;
  writeFileSync(join(folder, 'film.mp4'), 'the whole of a film');
  expect(await lengths.look(film)).toBe(7);
  rmSync(join(folder, 'film.mp4'));
  expect(await lengths.look(film)).toBeNull();
  expect(lengths.of(film)).toBeNull();
});

test('a refused path and a live stream have no length', async () => {
  expect(await lengths.look({ url: 'file://../film.mp4' })).toBeNull();
  expect(await lengths.look({ url: 'stream://default/app/a' })).toBeNull();
  expect(measured).toEqual([]);
});

test('a learnt length is valid while the file is unchanged', async () => {
  writeFileSync(join(folder, 'film.mp4'), 'film');
  await lengths.look(film);
  lengths.learn(film, 600.0001);
  expect(await lengths.look(film)).toBe(600);
  writeFileSync(join(folder, 'film.mp4'), 'a longer film');
  expect(await lengths.look(film)).toBe(1234.5);
});

test('at most two files are measured at once', async () => {
  let running = 0;
  let most = 0;
  says = async () => {
    running += 1;
    most = Math.max(most, running);
    await new Promise((resolve) => setImmediate(resolve));
    running -= 1;
    return 1;
  };
  const items = Array.from({ length: 10 }, (_, index) => ({ url: `file://${index}` }));
  for (const { url } of items) writeFileSync(join(folder, url.slice(7)), '');
  await Promise.all(items.map((item) => lengths.look(item)));
  expect(most).toBe(2);
});

test('a file about to play is measured before a long list, even when it is part of that list', async () => {
  for (let index = 0; index < 5; index += 1) writeFileSync(join(folder, `${index}`), '');
  let hangs = true;
  says = () => (hangs ? new Promise<number>(() => undefined) : 7);
  const list = Array.from({ length: 5 }, (_, index) => lengths.look({ url: `file://${index}` }));
  while (measured.length < 2) await new Promise((resolve) => setImmediate(resolve));
  hangs = false;
  expect(await lengths.look({ url: 'file://4' }, true)).toBe(7);
  expect(measured).toEqual(['0', '1', '4']);
  expect(list.length).toBe(5);
});
