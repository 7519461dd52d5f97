import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { FakeTranscoder } from '../../../test/fakes/fake-transcoder.ts';
import { FakeWork } from '../../../test/fakes/fake-work.ts';
import { RecordingLogger } from '../../../test/fakes/recording-logger.ts';
import { until } from '../../../test/harness/poll.ts';
import { mostInATurn } from '../../../test/support/turns-during.ts';
import type { ApplicationConfig, VirtualHostConfig } from '../../config/index.ts';
import type { Application } from '../../core/application.ts';
import { Orchestrator } from '../../core/orchestrator.ts';
import { QueueRegistry } from '../../core/queue-registry.ts';
import { StreamLineage } from '../../core/stream-lineage.ts';
import { LiveStreams } from '../../playout/live-source.ts';
import { AllowedFolders } from '../../util/allowed-folders.ts';
import { systemClock as clock } from '../../util/clock.ts';
import { inSlices } from '../../util/in-slices.ts';
import { definitionFromJson, definitionSteps } from './definition-json.ts';
import { startSchedules } from './schedule-service.ts';

const logger = new RecordingLogger();
const transcoder = new FakeTranscoder();
const ffmpegFiles = { openFile: () => Promise.reject(new Error('it is no film')) };
const anywhere = new AllowedFolders(null, 'nothing');
const STOPPED = { code: 'shutdown', detail: 'the test is over' } as const;

let folder: string;
let orchestrator: Orchestrator;
let work: FakeWork;
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
  work = new FakeWork();
  service = startSchedules({
    originMaps: work,
    orchestrator,
    ffmpegFiles,
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
  await until("the channel's stream", () => application('a').stream('tv'));
  expect(application('a').stream('tv')).toMatchObject({
    provider: 'scheduled',
    sourceType: 'Scheduled',
    sourceUrl: 'tv.sch',
    started: false,
  });
  await service.close?.();
  expect(application('a').stream('tv')).toBeUndefined();
});

test('viewers get the tracks that the schedule file selects', async () => {
  const sound = ['-f', 'lavfi', '-i', 'sine=sample_rate=48000'];
  const film = ['-f', 'lavfi', '-i', 'testsrc2=size=160x90:rate=25', ...sound, ...sound, '-map', '0', '-map', '1', '-map', '2', '-t', '4'];
  const codecs = ['-c:v', 'libx264', '-preset', 'ultrafast', '-pix_fmt', 'yuv420p', '-c:a', 'aac'];
  execFileSync('ffmpeg', ['-v', 'error', ...film, ...codecs, join(folder, 'media', 'film.mp4')]);
  const english = '<Item><Name>English</Name><Language>en-GB</Language><Characteristics>public.easy-to-read</Characteristics></Item>';
  const program = '<Program scheduled="2026-01-01T00:00:00Z" repeat="true"><Item url="file://film.mp4"/></Program>';
  const stream = (more: string) => `<Schedule><Stream>${more}</Stream>${program}</Schedule>`;
  const map = `<AudioMap>${english}<Item><Name>Deutsch</Name><Language>de</Language></Item></AudioMap>`;
  mkdirSync(join(folder, 'files'), { recursive: true });
  writeFileSync(join(folder, 'files', 'map.sch'), stream(`<BypassTranscoder>true</BypassTranscoder>${map}`));
  writeFileSync(join(folder, 'files', 'radio.sch'), stream('<VideoTrack>false</VideoTrack>'));
  writeFileSync(join(folder, 'files', 'mute.sch'), stream('<AudioTrack>false</AudioTrack>'));
  declare('a');
  const told = async (name: string) => {
    await until(`the tracks of ${name}`, () => application('a').stream(name)?.started === true);
    const { source, tracks } = application('a').stream(name)!;
    return [
      source.request.passthrough,
      ...tracks.map(({ type, publicName, language, characteristics }) => [type, publicName, language, characteristics]),
    ];
  };
  expect(await told('map')).toEqual([
    true,
    ['video', 'Video_0', '', ''],
    ['audio', 'English', 'en-GB', 'public.easy-to-read'],
    ['audio', 'Deutsch', 'de', ''],
    ['data', 'Data_200', '', ''],
  ]);
  expect(await told('radio')).toEqual([false, ['audio', 'Audio_100', '', ''], ['data', 'Data_200', '', '']]);
  expect(await told('mute')).toEqual([false, ['video', 'Video_0', '', ''], ['data', 'Data_200', '', '']]);
}, 60_000);

test('a channel waits until another stream releases its name', async () => {
  declare('a');
  await service.schedules.of(application('a'))?.ready();
  const other = application('a').openPulled({
    ...{ streamName: 'tv', provider: 'scheduled', sourceType: 'Scheduled', sourceUrl: 'other' },
    onClose: () => undefined,
  });
  write('tv');
  await until('a line about the waiting channel', () => logger.lines.some(({ message }) => message.startsWith('the stream cannot begin')));
  other.close(STOPPED);
  await until("the channel's stream", () => application('a').stream('tv')?.sourceUrl === 'tv.sch');
});

test('an application that a viewer made by asking has no channels', async () => {
  write('tv');
  declare('*');
  expect(orchestrator.applicationOnDemand('v', 'b')?.name).toBe('b');
  expect(service.schedules.of(application('b'))).toBeNull();
});

test('a channel that another node plays waits for its turn, and can be asked about meanwhile', async () => {
  work.state = 'others';
  write('tv');
  declare('a');
  const schedules = service.schedules.of(application('a'));
  await schedules?.ready();
  await until('the channel is asked for', () => work.asked.has('scheduled/v/a/tv'));
  expect([application('a').stream('tv'), schedules?.names]).toEqual([undefined, ['tv']]);
  expect(schedules?.information('tv')).toHaveProperty('stream.name', 'tv');
  work.state = 'ours';
  await until("the channel's stream", () => application('a').stream('tv'));
  work.state = 'others';
  await until("the end of the channel's stream", () => application('a').stream('tv') === undefined);
});

test('a channel of another node is kept as its file, played when it is the turn of this node, and goes with its deletion', async () => {
  work.state = 'others';
  declare('a');
  const [keeper] = work.keepers;
  const tv = { kind: 'scheduled', vhost: 'v', app: 'a', name: 'tv' } as const;
  // None of its films is here.
  const program = '<Program scheduled="2026-01-01T00:00:00Z" repeat="true"><Item url="file://film.mp4"/></Program>';
  expect(await keeper?.adopt(tv, { file: `<Schedule>${program}</Schedule>` })).toBe(true);
  const schedules = service.schedules.of(application('a'));
  expect([schedules?.names, keeper?.has(tv), schedules?.information('tv')]).toMatchObject([
    ...[['tv'], true, { programs: [{ items: [{ url: 'file://film.mp4' }] }] }],
  ]);
  expect(application('a').stream('tv')).toBeUndefined();
  work.state = 'ours';
  await until("the channel's stream", () => application('a').stream('tv'));
  await until('a line about the missing film', () => logger.lines.some(({ message }) => message.includes('film.mp4')));
  await schedules?.change('tv', { programs: [] });
  expect(work.told.get('scheduled/v/a/tv')).toMatchObject({ file: expect.not.stringContaining('film') });
  expect([await keeper?.drop(tv), schedules?.names, application('a').stream('tv')]).toEqual([true, [], undefined]);
  await expect(keeper?.adopt({ ...tv, app: 'b' }, { file: '<Schedule/>' })).rejects.toThrow("Schedule is not enabled in application 'v/b'");
  await expect(keeper?.adopt(tv, { file: '<Schedule' })).rejects.toThrow('not well-formed');
  await expect(keeper?.adopt(tv, { file: '<Schedule><Program scheduled="soon"/></Schedule>' })).rejects.toThrow('ISO 8601');
});

test('the items of a request are read and written a few in a turn of the event loop', async () => {
  declare('a');
  const schedules = service.schedules.of(application('a'));
  await schedules?.ready();
  let reads = 0;
  const items = Array.from({ length: 300 }, (_, n) => ({
    get url(): string {
      reads += 1;
      return `file://${n}.mp4`;
    },
    ...{ start: 0, duration: -1, fallbackOnErr: true },
  }));
  const programs = [{ name: 'p', scheduled: '2035-01-01T00:00:00Z', startsAt: Date.UTC(2035, 0), repeat: false, items }];
  const body = { stream: { name: 'tv' }, programs };
  expect(
    await mostInATurn(
      () => reads,
      () => inSlices(definitionSteps(body)),
    ),
  ).toBeLessThan(10);
  const definition = { ...definitionFromJson(body), programs };
  expect(
    await mostInATurn(
      () => reads,
      async () => schedules?.create(definition),
    ),
  ).toBeLessThan(10);
  expect(
    await mostInATurn(
      () => reads,
      async () => schedules?.change('tv', { programs }),
    ),
  ).toBeLessThan(10);
  expect(reads).toBeGreaterThan(3 * items.length);
  expect(schedules?.information('tv')).toMatchObject({ programs: [{ items: items.map(({ url }) => ({ url })) }] });
});
