import { expect, test } from 'vitest';
import type { LiveEvent } from '../client/index.ts';
import { NoteBook } from './notes.ts';

const failed = (second: number): LiveEvent => ({
  ...{ id: 'p1', type: 'task.changed', time: `2026-11-21T09:52:${second}.000+00:00`, vhost: 'default', app: 'app', stream: 'live' },
  ...{ task: 'push', state: 'error', reason: 'cannot connect' },
});
const refused = (second: number): LiveEvent => ({
  ...{ id: 'x-1', type: 'refusal.counted', time: `2026-11-21T09:52:${second}.000+00:00`, app: 'nowhere', stream: 'x' },
  ...{ direction: 'incoming', protocol: 'rtmp', reason: 'no-application', detail: 'there is none', count: 1 },
});

test('a repeated failure is one note, newest first, and hides no other note', () => {
  const notes = new NoteBook();
  for (let second = 10; second < 15; second += 1) notes.hear(failed(second));
  notes.hear(refused(20));
  for (let second = 30; second < 45; second += 1) notes.hear(failed(second));
  expect(notes.all.map(({ at, text, times }) => [new Date(at).getUTCSeconds(), text, times])).toEqual([
    [44, 'push p1 of app/live failed: cannot connect', 20],
    [20, '1 publisher of nowhere/x refused over RTMP: there is none', undefined],
  ]);
});

test('conditions appear and resolve, and a returning condition is a new note', () => {
  const notes = new NoteBook();
  notes.take(1000, [], ['the disk is full']);
  notes.take(2000, [], ['the disk is full']);
  notes.take(3000, [], []);
  notes.take(4000, [], ['the disk is full']);
  expect(notes.all.map(({ at, text, times }) => [at, text, times])).toEqual([
    [4000, 'the disk is full', 2],
    [3000, 'Resolved: the disk is full', undefined],
  ]);
});
