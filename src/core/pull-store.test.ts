import { mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { RecordingLogger } from '../../test/fakes/recording-logger.ts';
import type { PullDocument } from './pull-registry.ts';
import { PullDocumentStore } from './pull-store.ts';

let folder: string;
let logger: RecordingLogger;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'millrace-pulls-'));
  logger = new RecordingLogger();
});
afterEach(async () => {
  await rm(folder, { recursive: true });
});

const documentOf = (name: string): PullDocument => ({
  vhost: 'default',
  app: 'app',
  name,
  urls: ['rtsp://u:p@h/a', 'rtsp://h/b'],
  properties: {
    persistent: true,
    noInputFailoverTimeoutMs: 3000,
    unusedStreamDeletionTimeoutMs: 60_000,
    retryCount: 2,
    ignoreRtcpSRTimestamp: true,
    relay: false,
  },
});

it('returns the saved pulls, without removed ones', async () => {
  const store = new PullDocumentStore(folder, logger);
  await store.load();
  for (const name of ['b', 'a', 'c']) await store.save(documentOf(name));
  await store.remove(documentOf('c'));
  await store.remove(documentOf('never saved'));
  expect(await new PullDocumentStore(folder, logger).load()).toEqual([documentOf('a'), documentOf('b')]);
});

it('keeps documents with passwords readable for the owner only', async () => {
  const store = new PullDocumentStore(folder, logger);
  await store.load();
  await store.save(documentOf('a'));
  const [file = ''] = await readdir(folder);
  expect((await stat(join(folder, file))).mode & 0o777).toBe(0o600);
});

it.each([
  ['urls', { urls: [] }],
  ['properties', { properties: null }],
  ['vhost', { vhost: '' }],
  ['properties.retryCount', { properties: { ...documentOf('x').properties, retryCount: -1 } }],
])('sets a document with invalid %s aside and names the member', async (missing, change) => {
  const store = new PullDocumentStore(folder, logger);
  await store.load();
  await store.save({ ...documentOf('good') });
  const broken = { format: 'millrace-state', version: 1, kind: 'pull', ...documentOf('bad'), ...change };
  await writeFile(join(folder, 'default%2Fapp%2Fbad.json'), JSON.stringify(broken));
  expect((await store.load()).map(({ name }) => name)).toEqual(['good']);
  expect((await readdir(folder)).filter((name) => name.includes('.broken-'))).toHaveLength(1);
  expect(logger.lines.at(-1)?.message).toContain(`its ${missing} `);
});
