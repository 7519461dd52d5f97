import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { RecordingLogger } from '../../test/fakes/recording-logger.ts';
import { forgetApiState } from './api-state.ts';
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

const said = () => logger.lines.map(({ level, message, fields }) => [level, message, fields['names']]);

test('documents of the API go, by the names of what they describe, and nothing else', async () => {
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
  await forgetApiState(folder, logger);
  expect(said()).toEqual([
    ['warn', 'forgot virtual hosts made through the API: 2', ['torn.json', 'v\\u202e']],
    ['warn', 'forgot persistent pulls made through the API: 1', ['default/app/cam']],
    ['warn', 'forgot recording tasks made through the API: 1', ['default/app/tape']],
    ['warn', 'forgot push tasks made through the API: 1', ['default/app/platform']],
  ]);
  for (const name of Object.keys(documents)) expect(existsSync(join(folder, name)), name).toBe(false);
  for (const name of kept) expect(existsSync(join(folder, name)), name).toBe(true);
});

test('an empty state folder stays as it is', async () => {
  await forgetApiState(folder, logger);
  expect(said()).toEqual([['info', 'nothing to forget: the API made nothing that is kept', undefined]]);
  expect(readdirSync(folder)).toEqual([]);
});

test('what cannot be forgotten keeps the server from starting', async () => {
  write('vhosts');
  await expect(forgetApiState(folder, logger)).rejects.toThrow(StateFolderProblem);
});
