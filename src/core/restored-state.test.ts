import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { RecordingLogger } from '../../test/fakes/recording-logger.ts';
import { StateStore } from '../state/state-store.ts';
import { restoreVirtualHosts } from './restored-state.ts';

let folder = '';
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'restored-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const BAD_HEADER = { crossDomains: { urls: ['*'], headers: [{ key: 'Bad Name', value: 'x' }] } };
const GOOD = { name: 'good', type: 'live' };
const BAD = { name: 'bad', type: 'live', publishers: { llhls: BAD_HEADER } };

async function restored(): Promise<{ readonly hosts: Record<string, string[]>; readonly logger: RecordingLogger }> {
  const logger = new RecordingLogger();
  const hosts: Record<string, string[]> = {};
  const store = new StateStore(folder, logger);
  const restore = (vhost: { name: string }, apps: readonly { name: string }[]): void => {
    hosts[vhost.name] = apps.map(({ name }) => name);
  };
  await restoreVirtualHosts(store, { restore }, { logger, reading: {} });
  await store.settle();
  return { hosts, logger };
}

test('an application that is no longer valid is logged and kept aside; all others start', async () => {
  const store = new StateStore(folder, new RecordingLogger());
  await store.save({ name: 'v', order: 1, definition: { name: 'v', host: { names: ['*'] } }, applications: [BAD, GOOD] });
  await store.save({ name: 'w', order: 2, definition: { name: 'w', host: { names: ['\u0007'] } }, applications: [] });
  await store.save({ name: 'x', order: 3, definition: { name: 'x', host: { names: ['*'] } }, applications: [GOOD] });
  const { hosts, logger } = await restored();
  expect(hosts).toEqual({ v: ['good'], x: ['good'] });
  const told = logger.lines.filter(({ level }) => level === 'error').map(({ message }) => message);
  expect(told).toEqual([
    expect.stringContaining("application 'bad' is left out: application.publishers.llhls.crossDomains.headers[0].key must be the name"),
    expect.stringContaining('state file cannot be used and was set aside: virtualHost.host.names[0] must not contain white space'),
  ]);
  const files = (await readdir(folder)).sort();
  expect(files.map((file) => file.replace(/\d+$/, 'N'))).toEqual(['v.json', 'v.json.broken-N', 'w.json.broken-N', 'x.json']);
  expect(JSON.parse(await readFile(join(folder, files[1] ?? ''), 'utf8')).applications).toEqual([BAD, GOOD]);
  expect(JSON.parse(await readFile(join(folder, 'v.json'), 'utf8')).applications).toEqual([GOOD]);
  // The next start has nothing to tell.
  const again = await restored();
  expect(again.hosts).toEqual({ v: ['good'], x: ['good'] });
  expect(again.logger.lines.filter(({ level }) => level === 'error')).toEqual([]);
});

test('macros of a stored definition are not expanded', async () => {
  const store = new StateStore(folder, new RecordingLogger());
  const definition = { name: 'v', host: { names: ['*'] }, distribution: '$' + '{env:HOME}' };
  await store.save({ name: 'v', order: 1, definition, applications: [] });
  const seen: unknown[] = [];
  const logger = new RecordingLogger();
  await restoreVirtualHosts(store, { restore: ({ config }) => seen.push(config.distribution) }, { logger, reading: {} });
  expect(seen).toEqual(['$' + '{env:HOME}']);
});

test('a virtual host that needs unbuilt protection stays on disk and does not start; others do', async () => {
  const store = new StateStore(folder, new RecordingLogger());
  const secret = { name: 'secret', type: 'live', publishers: { llhls: { drm: { enable: true, infoFile: 'drm.xml' } } } };
  const document = { name: 'v', order: 1, definition: { name: 'v', host: { names: ['*'] } }, applications: [secret, GOOD] };
  await store.save(document);
  await store.save({ name: 'w', order: 2, definition: { name: 'w', host: { names: ['w.test'] } }, applications: [GOOD] });
  const { hosts, logger } = await restored();
  expect(hosts).toEqual({ w: ['good'] });
  expect(logger.lines.filter(({ level }) => level === 'error').map(({ message }) => message)).toEqual([
    "application 'v/secret': Publishers/LLHLS/DRM is not built yet, and nothing is served without it",
  ]);
  expect(JSON.parse(await readFile(join(folder, 'v.json'), 'utf8')).applications).toEqual([secret, GOOD]);
});
