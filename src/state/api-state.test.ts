import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { RecordingLogger } from '../../test/fakes/recording-logger.ts';
import { ApiState } from './api-state.ts';
import { StateFolderProblem } from './state-lock.ts';

let folder: string;
let logger: RecordingLogger;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'millrace-forget-'));
  logger = new RecordingLogger();
});
afterEach(() => rmSync(folder, { recursive: true }));

function write(...names: string[]): void {
  for (const name of names) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), '{}');
  }
}

const forgetApiState = async (): Promise<void> => {
  const state = new ApiState(folder, logger);
  state.takeBack();
  state.hide();
  await state.forget();
};
const said = () => logger.lines.map(({ level, message, fields }) => [level, message, fields['names']]);

test('documents of the API are removed and listed by name, other files stay', async () => {
  const kept = [
    ...['access-token', 'records/open/k.json', 'recordings/a.mp4', 'recordings/b.json', 'dumps/d.json', 'vhosts/v.json.broken-1'],
    ...['vhosts/folder.json/file', 'pulls/notes.txt', 'dvr/x.json', 'other.json'],
  ];
  write(...kept);
  const documents: Record<string, string> = {
    'vhosts/v.json': JSON.stringify({ format: 'millrace-state', name: 'v\u202e', applications: [] }),
    'vhosts/torn.json': '{"name":',
    'pulls/p.json': JSON.stringify({ vhost: 'default', app: 'app', name: 'cam' }),
    'records/tasks/r.json': JSON.stringify({ value: { vhost: 'default', app: 'app', request: { id: 'tape' } } }),
    'pushes/q.json': JSON.stringify({ value: { vhost: 'default', app: 'app', request: { id: 'platform', streamKey: 'secret' } } }),
  };
  for (const [name, text] of Object.entries(documents)) {
    write(name);
    writeFileSync(join(folder, name), text);
  }
  await forgetApiState();
  expect(said()).toEqual([
    ['warn', 'forgot virtual hosts made through the API: 2', ['torn.json', 'v\\u202e']],
    ['warn', 'forgot persistent pulls made through the API: 1', ['default/app/cam']],
    ['warn', 'forgot recording tasks made through the API: 1', ['default/app/tape']],
    ['warn', 'forgot push tasks made through the API: 1', ['default/app/platform']],
  ]);
  for (const name of Object.keys(documents)) expect(existsSync(join(folder, name)), name).toBe(false);
  for (const name of kept) expect(existsSync(join(folder, name)), name).toBe(true);
});

test('an empty state folder stays empty', async () => {
  await forgetApiState();
  expect(said()).toEqual([['info', 'nothing to forget: no objects made through the API are stored', undefined]]);
  expect(readdirSync(folder)).toEqual([]);
});

test('a document that cannot be removed prevents the start', async () => {
  write('vhosts');
  await expect(forgetApiState()).rejects.toThrow(StateFolderProblem);
});

test('a failed or interrupted start removes no documents', async () => {
  write('vhosts/v.json', 'pushes/p.json', 'vhosts/notes.txt');
  const failed = new ApiState(folder, logger);
  failed.hide();
  expect(readdirSync(join(folder, 'vhosts')).filter((name) => name.endsWith('.json'))).toEqual([]);
  failed.takeBack();
  expect(readdirSync(join(folder, 'vhosts'))).toEqual(['notes.txt', 'v.json']);
  // After `takeBack` there is nothing to delete.
  await failed.forget();
  expect([existsSync(join(folder, 'vhosts/v.json')), said()]).toEqual([true, []]);
  new ApiState(folder, logger).hide();
  const next = new ApiState(folder, logger);
  next.takeBack();
  await next.forget();
  expect([existsSync(join(folder, 'vhosts/v.json')), existsSync(join(folder, 'pushes/p.json')), said()]).toEqual([true, true, []]);
});

test('a recreated document is not replaced by the hidden one', () => {
  write('vhosts/v.json');
  const state = new ApiState(folder, logger);
  state.hide();
  write('vhosts/v.json');
  writeFileSync(join(folder, 'vhosts/v.json'), 'anew');
  state.takeBack();
  expect(readdirSync(join(folder, 'vhosts'))).toEqual(['v.json']);
  expect(readFileSync(join(folder, 'vhosts/v.json'), 'utf8')).toBe('anew');
});

test('a document that cannot be hidden leaves the others in place', () => {
  write('vhosts/v.json', 'pushes');
  expect(() => new ApiState(folder, logger).hide()).toThrow(StateFolderProblem);
  expect(readdirSync(join(folder, 'vhosts'))).toEqual(['v.json']);
});
