import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { ManualClock } from '../../test/fakes/manual-clock.ts';
import { RecordingLogger } from '../../test/fakes/recording-logger.ts';
import { until } from '../../test/harness/poll.ts';
import type { ApiRules } from '../api/api-server.ts';
import { loadServerConfig, readApplication } from '../config/index.ts';
import { Orchestrator } from '../core/orchestrator.ts';
import { QueueRegistry } from '../core/queue-registry.ts';
import { definitionOf } from '../core/restored-state.ts';
import { AllowedFolders, PathRefused } from '../util/allowed-folders.ts';
import { ConfigReload, type ReloadParts } from './config-reload.ts';
import { ConfigWatch } from './config-watch.ts';

let folder: string;
let file: string;
let logger: RecordingLogger;
let orchestrator: Orchestrator;
let rules: ApiRules[];
let kept: number;
let alerted: (string | undefined)[];

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'millrace-reload-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  file = path.join(folder, 'Server.xml');
  logger = new RecordingLogger();
  [rules, kept, alerted] = [[], 0, []];
  const clock = new ManualClock();
  orchestrator = new Orchestrator({
    ...{ clock, logger, queues: new QueueRegistry(clock), publishers: new Map(), onHostsChanged: () => undefined },
    store: { save: async () => undefined, remove: async () => undefined },
  });
});

function app(name: string, more = ''): string {
  return `<Application><Name>${name}</Name><Type>live</Type>${more}</Application>`;
}

function mpegts(port: number): string {
  return `<Providers><MPEGTS><StreamMap><Stream><Name>s</Name><Port>${port}/udp</Port></Stream></StreamMap></MPEGTS></Providers>`;
}

function write(applications: string, { token = 'token', head = '' } = {}): void {
  writeFileSync(
    file,
    `<Server version="8"><Type>origin</Type><IP>*</IP>${head}<Bind><Providers><MPEGTS><Port>4000-4001/udp</Port></MPEGTS></Providers></Bind>
      <Managers><API><AccessToken>${token}</AccessToken></API></Managers>
      <VirtualHosts><VirtualHost><Name>default</Name><Applications>${applications}</Applications></VirtualHost></VirtualHosts></Server>`,
  );
}

function start(parts: Partial<ReloadParts> = {}): ConfigReload {
  const loaded = loadServerConfig(file);
  for (const { typed, echo, applications } of loaded.virtualHosts) {
    orchestrator.restore(definitionOf({ typed, echo }), applications.map(definitionOf), { readOnly: true });
  }
  return new ConfigReload(loaded, {
    ...{ file, stateFolder: folder, orchestrator, logger },
    delivery: { setDefaultCrossDomains: () => undefined },
    limits: { amend: () => undefined },
    api: { amend: (next) => rules.push(next) },
    reading: new AllowedFolders(null, 'x'),
    definitions: new AllowedFolders(null, 'x'),
    ownToken: async () => 'own',
    setLevel: () => undefined,
    alerts: { amend: (config) => alerted.push(config?.url) },
    keep: async () => {
      kept += 1;
    },
    ...parts,
  });
}

function names(): string[] {
  return [...(orchestrator.virtualHost('default')?.applications.keys() ?? [])];
}

test('a port that an application of the API has refuses the whole file', async () => {
  write(app('one'));
  const reload = start();
  await orchestrator.createVirtualHost(
    definitionOf({ typed: { ...loadServerConfig(file).virtualHosts[0]?.typed, name: 'made' } as never, echo: {} }),
    [
      definitionOf(
        readApplication({ name: 'has', type: 'live', providers: { mpegts: { streamMap: { stream: [{ name: 's', port: '4000/udp' }] } } } }),
      ),
    ],
  );
  write(app('one') + app('two', mpegts(4000)));
  const outcome = await reload.reload();
  expect(outcome).toMatchObject({ kind: 'refused', reason: expect.stringContaining('4000') });
  expect(names()).toEqual(['one']);
  expect(logger.lines.at(-1)).toMatchObject({ level: 'error', message: expect.stringContaining('nothing was changed') });
  write(app('one') + app('two', mpegts(4001)));
  expect(await reload.reload()).toMatchObject({ kind: 'reloaded' });
  expect(names()).toEqual(['one', 'two']);
});

test('settings of alerts are followed when they are added, changed and removed', async () => {
  const alert = (url: string) => `<Alert><Url>${url}</Url><SecretKey>s</SecretKey><Rules><InternalQueueCongestion/></Rules></Alert>`;
  write(app('one'));
  const reload = start();
  for (const head of [alert('http://a.test'), alert('http://b.test'), '']) {
    write(app('one'), { head });
    const outcome = await reload.reload();
    expect(outcome.kind === 'reloaded' && outcome.changes.map(({ effect }) => effect)).toEqual(['now']);
  }
  expect([alerted, reload.running.alert]).toEqual([['http://a.test', 'http://b.test', undefined], undefined]);
});

test('a failure to create the token changes nothing, and the next reload succeeds', async () => {
  write(app('one'));
  let fails = true;
  const reload = start({
    ownToken: async () => {
      if (fails) throw new Error('the disk is full');
      return 'own';
    },
  });
  write(app('one') + app('two'), { token: '' });
  expect(await reload.reload()).toEqual({ kind: 'refused', reason: 'the disk is full' });
  expect([names(), rules, kept]).toEqual([['one'], [], 0]);
  fails = false;
  expect(await reload.reload()).toMatchObject({ kind: 'reloaded' });
  expect([names(), rules.map(({ accessToken }) => accessToken), kept]).toEqual([['one', 'two'], ['own'], 1]);
});

test('reloads run in sequence, and followers get the start and the result of each', async () => {
  write(app('one'));
  const heard: string[] = [];
  const followers = { begun: () => heard.push('begun'), over: ({ kind }: { kind: string }) => heard.push(kind) };
  const reload = start({ followers: followers as unknown as NonNullable<ReloadParts['followers']> });
  write('<broken');
  const first = reload.reload();
  const second = reload.reload();
  await first;
  write(app('one'));
  await second;
  expect(heard).toEqual(['begun', 'refused', 'begun', expect.any(String)]);
});

test('a folder named for an application can be read from then on, and no longer after its removal', async () => {
  const storage = `<Storage><AllowedRoots><Path>${folder}/allowed</Path></AllowedRoots></Storage>`;
  write(app('one', `<Providers><FILE><RootPath>${folder}/media</RootPath></FILE></Providers>`), { head: storage });
  const reading = new AllowedFolders([path.join(folder, 'allowed'), path.join(folder, 'media')], 'x');
  const reload = start({ reading });
  write(app('one', `<Providers><FILE><RootPath>${folder}/films</RootPath></FILE></Providers>`), { head: storage });
  await reload.reload();
  for (const place of ['allowed/a', 'films/a']) reading.check(path.join(folder, place));
  expect(() => reading.check(path.join(folder, 'media/a'))).toThrow(PathRefused);
});

test('included files are watched, also those included by a reload', async () => {
  const apps = path.join(folder, 'apps.xml');
  writeFileSync(apps, app('included'));
  write(app('one'));
  const reload = start();
  const watch = new ConfigWatch({ reload, logger, times: { poll: 20, settle: 5 } });
  onTestFinished(() => watch.close());
  write(`${app('one')}<Application include="apps.xml"/>`);
  await until('the included application is there', () => names().includes('included'));
  expect(reload.files).toEqual([file, apps]);
  writeFileSync(apps, app('another'));
  await until('the applications of the changed file', () => names().includes('another') && !names().includes('included'));
  watch.close();
});

test('a large file is read beside everything else, and reloads keep their order', async () => {
  const many = (count: number, first = 'app') => Array.from({ length: count }, (_, n) => app(`${first}${n}`)).join('\n');
  write(many(700));
  const reload = start();
  write(many(701));
  expect(await reload.isBehind()).toBe(true);
  let turns = 0;
  const turn = setInterval(() => {
    turns += 1;
  }, 1);
  const first = reload.reload();
  const second = reload.reload();
  const outcomes = await Promise.all([first, second]);
  clearInterval(turn);
  expect(turns).toBeGreaterThan(5);
  expect(outcomes.map((outcome) => outcome.kind === 'reloaded' && outcome.changes.map(({ path: of, kind }) => `${kind} ${of}`))).toEqual([
    ['added Server/VirtualHosts/VirtualHost[default]/Applications/Application[app700]'],
    [],
  ]);
  expect(names()).toHaveLength(701);
  write(`${many(701)}${app('app1')}`);
  expect(await reload.reload()).toMatchObject({ kind: 'refused', reason: expect.stringMatching(/Server\.xml:\d+: .*app1/) });
  expect(names()).toHaveLength(701);
});
