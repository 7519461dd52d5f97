import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { FakeTranscoder } from '../../../test/fakes/fake-transcoder.ts';
import { RecordingLogger } from '../../../test/fakes/recording-logger.ts';
import { until } from '../../../test/harness/poll.ts';
import type { ApplicationConfig, VirtualHostConfig } from '../../config/index.ts';
import type { Application } from '../../core/application.ts';
import { Orchestrator } from '../../core/orchestrator.ts';
import { QueueRegistry } from '../../core/queue-registry.ts';
import { StreamLineage } from '../../core/stream-lineage.ts';
import { LiveStreams } from '../../playout/live-source.ts';
import { AllowedFolders } from '../../util/allowed-folders.ts';
import { systemClock as clock } from '../../util/clock.ts';
import { startSchedules } from './schedule-service.ts';

const logger = new RecordingLogger();
const transcoder = new FakeTranscoder();
const foreignFiles = { openFile: () => Promise.reject(new Error('it is no film')) };
const anywhere = new AllowedFolders(null, 'nothing');
const STOPPED = { code: 'shutdown', detail: 'the test is over' } as const;

let folder: string;
let orchestrator: Orchestrator;
let service: ReturnType<typeof startSchedules>;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'millrace-schedules-'));
  mkdirSync(join(folder, 'media'));
  orchestrator = new Orchestrator({
    ...{ clock, logger, queues: new QueueRegistry(clock), publishers: new Map(), onHostsChanged: () => undefined },
    store: { save: async () => undefined, remove: async () => undefined },
    onApplication: (application) => service.applicationStarted?.(application),
  });
  const liveStreams = new LiveStreams(() => undefined, new StreamLineage());
  service = startSchedules({
    orchestrator,
    foreignFiles,
    liveStreams,
    transcoder,
    clock,
    logger,
    definitions: anywhere,
    reading: anywhere,
  });
});
afterEach(async () => {
  await service.close?.();
  await orchestrator.close(STOPPED);
  rmSync(folder, { recursive: true });
});

/** Virtual host `v` with an application of this name. */
function declare(app: string): void {
  const schedule = { mediaRootDir: join(folder, 'media'), scheduleFilesDir: join(folder, 'files') };
  const config = { name: app, type: 'live', providers: { schedule }, publishers: {}, outputProfiles: { outputProfile: [] } };
  const vhost = { name: 'v', config: { name: 'v', host: { names: ['*'] } } as unknown as VirtualHostConfig, echo: { name: 'v' } };
  orchestrator.restore(vhost, [{ name: app, config: config as unknown as ApplicationConfig, echo: { name: app } }], { readOnly: true });
}

function application(app: string): Application {
  const found = orchestrator.application('v', app);
  if (found === undefined) throw new Error(`there is no application ${app}`);
  return found;
}

function write(name: string): void {
  mkdirSync(join(folder, 'files'), { recursive: true });
  writeFileSync(join(folder, 'files', `${name}.sch`), '<Schedule/>');
}

test('each file of the folder is a stream of the application, whether anything plays or not', async () => {
  write('tv');
  declare('a');
  await service.schedules.of(application('a'))?.ready();
  await until('its stream', () => application('a').stream('tv'));
  expect(application('a').stream('tv')).toMatchObject({
    provider: 'scheduled',
    sourceType: 'Scheduled',
    sourceUrl: 'tv.sch',
    started: false,
  });
  await service.close?.();
  expect(application('a').stream('tv')).toBeUndefined();
});

test('a name that somebody else has is waited for', async () => {
  declare('a');
  await service.schedules.of(application('a'))?.ready();
  const other = application('a').openPulled({
    ...{ streamName: 'tv', provider: 'scheduled', sourceType: 'Scheduled', sourceUrl: 'other' },
    onClose: () => undefined,
  });
  write('tv');
  await until('it to be told', () => logger.lines.some(({ message }) => message.startsWith('the stream cannot begin')));
  other.close(STOPPED);
  await until('its stream', () => application('a').stream('tv')?.sourceUrl === 'tv.sch');
});

test('an application that a viewer made by asking has no channels', async () => {
  write('tv');
  declare('*');
  expect(orchestrator.applicationOnDemand('v', 'b')?.name).toBe('b');
  expect(service.schedules.of(application('b'))).toBeNull();
});
