import { beforeEach, expect, test } from 'vitest';
import { ManualClock } from '../../test/fakes/manual-clock.ts';
import { RecordingLogger } from '../../test/fakes/recording-logger.ts';
import { mostInATurn, whileTurning } from '../../test/support/turns-during.ts';
import type { ApplicationConfig, VirtualHostConfig } from '../config/index.ts';
import type { Declaration } from './declared-applications.ts';
import type { Definition } from './definition.ts';
import type { CloseReason } from './ingest.ts';
import { Orchestrator } from './orchestrator.ts';
import { QueueRegistry } from './queue-registry.ts';

let orchestrator: Orchestrator;
let ended: string[];
let begun: string[];
let told: string[][];

beforeEach(() => {
  [ended, begun, told] = [[], [], []];
  const clock = new ManualClock();
  orchestrator = new Orchestrator({
    ...{ clock, logger: new RecordingLogger(), queues: new QueueRegistry(clock), publishers: new Map() },
    store: { save: async () => undefined, remove: async () => undefined },
    onHostsChanged: (hosts) => told.push(hosts.map(({ name }) => name)),
    onApplication: ({ vhost, name }) => begun.push(`${vhost}/${name}`),
  });
});

function app(name: string, more: object = {}): Definition<ApplicationConfig> {
  const config = { name, type: 'live', providers: { rtmp: {} }, publishers: {}, outputProfiles: { outputProfile: [] }, ...more };
  return { name, config: config as unknown as ApplicationConfig, echo: { name } };
}

function host(name: string, applications: Definition<ApplicationConfig>[], names: string[] = [name]): Declaration {
  return { host: { name, config: { name, host: { names } } as unknown as VirtualHostConfig, echo: { name } }, applications };
}

function declare(...hosts: Declaration[]): void {
  for (const each of hosts) orchestrator.restore(each.host, each.applications, { readOnly: true });
  [begun, told] = [[], []];
}

function publish(vhost: string, name: string): void {
  const onClose = ({ code }: CloseReason): void => void ended.push(`${vhost}/${name} ${code}`);
  const request = { streamName: 's', provider: 'rtmp', sourceType: 'Rtmp', sourceUrl: 'TCP://127.0.0.1:1', onClose } as const;
  orchestrator.openIngest({ vhost, host: '', app: name }, request);
}

function names(vhost: string): string[] {
  return [...(orchestrator.virtualHost(vhost)?.applications.keys() ?? [])];
}

test('streams of unchanged applications continue; changed ones restart, removed ones end, in the order of the file', async () => {
  declare(host('a', [app('same'), app('other'), app('gone')]), host('left', [app('x')]));
  for (const name of ['same', 'other', 'gone']) publish('a', name);
  publish('left', 'x');
  const kept = orchestrator.application('a', 'same');
  const wanted = host('a', [app('new'), app('other', { sourceLoss: { keepStreamMs: 1 } }), app('same')], ['*']);
  expect(await orchestrator.redeclare([host('first', []), wanted])).toEqual([]);
  expect(ended.sort()).toEqual(['a/gone deleted', 'a/other application-restart', 'left/x deleted']);
  expect(begun).toEqual(['a/new', 'a/other']);
  expect(names('a')).toEqual(['new', 'other', 'same']);
  expect(orchestrator.application('a', 'same')).toBe(kept);
  expect(orchestrator.virtualHosts.map(({ name, readOnly }) => [name, readOnly])).toEqual([
    ['first', true],
    ['a', true],
  ]);
  expect(orchestrator.nameForHost('anything.example')).toBe('a');
  expect(told).toEqual([['first', 'a']]);
});

test('a running application adopts changed keys', async () => {
  declare(host('a', [app('keys', { publishKeys: [] })]));
  publish('a', 'keys');
  const keys = [{ name: 'anna', hash: 'sha256:x:y' }];
  await orchestrator.redeclare([host('a', [app('keys', { publishKeys: keys })])]);
  expect([ended, begun]).toEqual([[], []]);
  expect(orchestrator.application('a', 'keys')?.definition.config.publishKeys).toEqual(keys);
});

test('objects of the API stay, and the file yields to them', async () => {
  declare(host('a', [app('x')]));
  const made = host('made', [app('kept')]);
  await orchestrator.createVirtualHost(made.host, made.applications);
  publish('made', 'kept');
  expect(await orchestrator.redeclare([host('made', [app('stranger')]), host('b', [])])).toEqual(['made']);
  expect(ended).toEqual([]);
  expect(names('made')).toEqual(['kept']);
  expect(orchestrator.virtualHosts.map(({ name, readOnly }) => [name, readOnly])).toEqual([
    ['b', true],
    ['made', false],
  ]);
  // Its maker can still change it.
  await orchestrator.createApplication('made', app('more'));
});

test('applications made from a template keep running with it, and restart when the template changes', async () => {
  const template = app('*');
  declare(host('a', [template]));
  orchestrator.applicationOnDemand('a', 'dynamic');
  publish('a', 'dynamic');
  await orchestrator.redeclare([host('a', [template, app('beside')])]);
  expect([ended, names('a')]).toEqual([[], ['beside', 'dynamic']]);
  await orchestrator.redeclare([host('a', [app('*', { sourceLoss: { keepStreamMs: 1 } })])]);
  expect([ended, names('a')]).toEqual([['a/dynamic deleted'], []]);
  expect(orchestrator.applicationOnDemand('a', 'dynamic')?.definition.config.sourceLoss).toEqual({ keepStreamMs: 1 });
});

test('another limit of streams counts for applications that run', () => {
  declare(host('a', [app('x')]));
  publish('a', 'x');
  orchestrator.limitStreams(1);
  const request = { streamName: 't', provider: 'rtmp', sourceType: 'Rtmp', sourceUrl: '', onClose: () => undefined } as const;
  expect(() => orchestrator.openIngest({ vhost: 'a', host: '', app: 'x' }, request)).toThrow('has 1 streams, which is all it may have');
  orchestrator.limitStreams(0);
  orchestrator.openIngest({ vhost: 'a', host: '', app: 'x' }, request);
});

const many = Array.from({ length: 300 }, (_, n) => app(`app${n}`));
const someBegan = (): boolean => begun.length > 0;

test('hundreds of applications start a few in a turn of the event loop, and all are seen at once', async () => {
  declare(host('a', [app('x')]));
  const seen = new Set<number>();
  const look = (): void => void seen.add(names('a').length);
  const most = await mostInATurn(
    () => begun.length,
    () => whileTurning(() => orchestrator.redeclare([host('a', many)]), look),
  );
  expect(most).toBeLessThan(10);
  expect([...seen]).toEqual([1, 300]);
  expect(begun).toEqual(many.map(({ name }) => `a/${name}`));
  expect(told).toEqual([['a']]);
  begun = [];
  const created = host('made', many);
  const make = () => orchestrator.createVirtualHost(created.host, created.applications);
  expect(
    await mostInATurn(
      () => begun.length,
      () => whileTurning(make, () => seen.add(names('made').length)),
    ),
  ).toBeLessThan(10);
  expect([...seen]).toEqual([1, 300, 0]);
  expect(begun).toEqual(many.map(({ name }) => `made/${name}`));
});

test('an application that is asked for starts before its turn, and only once', async () => {
  declare(host('a', []));
  let early: string[] | null = null;
  const askFor = (): void => {
    if (early !== null || !someBegan()) return;
    expect(orchestrator.application('a', 'app299')?.name).toBe('app299');
    publish('a', 'app298');
    early = [...begun];
  };
  const most = await mostInATurn(
    () => begun.length,
    () => whileTurning(() => orchestrator.redeclare([host('a', many)]), askFor),
  );
  expect(most).toBeLessThan(10);
  expect(early).toContain('a/app299');
  expect(early).toContain('a/app298');
  expect(early).not.toContain('a/app297');
  expect(begun.toSorted()).toEqual(many.map(({ name }) => `a/${name}`).sort());
});

test('a change that is asked for meanwhile comes after the reload', async () => {
  declare(host('a', []));
  const later = host('b', [app('x')]);
  let made: Promise<unknown> | null = null;
  const change = (): void => {
    if (made === null && someBegan()) made = orchestrator.createVirtualHost(later.host, later.applications);
  };
  await mostInATurn(
    () => begun.length,
    () => whileTurning(() => orchestrator.redeclare([host('a', many)]), change),
  );
  await made;
  expect(begun).toEqual([...many.map(({ name }) => `a/${name}`), 'b/x']);
});
