/** Work that is defined at one node only: another node does it when the first is drained, and the first when the other dies. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { requireProgram } from '../../scripts/ensure-tools.ts';
import { apiPath } from '../harness/api-client.ts';
import { until } from '../harness/poll.ts';
import { freePorts } from '../harness/ports.ts';
import { type FfmpegPublisher, publish } from '../harness/publisher.ts';
import { pushes, startPush, stopPush } from '../harness/push.ts';
import { startServer, type TestServer } from '../harness/server.ts';
import { RedisServer } from '../support/redis-server.ts';

const STREAMS = `${apiPath.app('default', 'app')}/streams`;
const SCHEDULED = `${apiPath.app('default', 'app')}/scheduledChannels`;
const MULTIPLEX = `${apiPath.app('default', 'app')}/multiplexChannels`;
const FILM_MS = 20_000;
/** Uncertainty of a position, ms: that of the answer, and of the packet last played. */
const NEAR_MS = 3000;
const DEADLINE = { deadlineMs: 20_000 };

let redis: RedisServer;
let folder: string;
let source: TestServer;
let encoder: FfmpegPublisher;
let nodes: TestServer[] = [];
let pulled = '';

beforeAll(async () => {
  redis = await RedisServer.start();
  folder = mkdtempSync(path.join(tmpdir(), 'millrace-shared-definitions-'));
  mkdirSync(path.join(folder, 'media'));
  const picture = ['-f', 'lavfi', '-i', 'testsrc2=size=160x90:rate=10', '-f', 'lavfi', '-i', 'sine=sample_rate=48000'];
  const codecs = ['-c:v', 'libx264', '-preset', 'ultrafast', '-g', '10', '-c:a', 'aac', '-threads', '1'];
  const film = [...picture, '-t', `${FILM_MS / 1000}`, ...codecs, path.join(folder, 'media', 'film.mp4')];
  execFileSync(requireProgram('ffmpeg'), ['-v', 'error', ...film]);
  const [ovtPort = 0] = await freePorts(1);
  const shared = '<SharedWork><Group>g</Group><LeaseTime>3000</LeaseTime><ShareDefinitions>true</ShareDefinitions></SharedWork>';
  const origins = `<OriginMapStore><RedisServer><Host>${redis.address}</Host></RedisServer>${shared}</OriginMapStore>`;
  const node = (name: string) => {
    const files = `<ScheduleFilesDir>${folder}/${name}</ScheduleFilesDir>`;
    const providers = `<Schedule><MediaRootDir>${folder}/media</MediaRootDir>${files}</Schedule>
<Multiplex><MuxFilesDir>${folder}/${name}</MuxFilesDir></Multiplex>`;
    return { origins, providers, push: '', withoutHls: true, segmentDuration: 1 };
  };
  const [first, ...others] = await Promise.all([
    startServer({ ovtPort, withoutHls: true, withoutLlhls: true }),
    startServer(node('a')),
    startServer(node('b')),
  ]);
  [source, nodes] = [first, others];
  pulled = `ovt://127.0.0.1:${ovtPort}/app/live`;
  encoder = publish({ url: source.rtmp('live'), width: 320, height: 180, videoKbps: 200 });
  await encoder.sent(30);
}, 60_000);

afterAll(async () => {
  await encoder?.stop();
  await Promise.all([source, ...nodes].map(async (server) => await server?.close()));
  await redis?.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** Pulls and pushes that a node lists, and those of them that run at this node. */
async function workOf(node: TestServer): Promise<{ readonly lists: string; readonly does: string }> {
  const [streams, scheduled, multiplex] = await Promise.all([STREAMS, SCHEDULED, MULTIPLEX].map((list) => node.api.get<string[]>(list)));
  const [push] = await pushes(node.api);
  const plays = async (name: string) => ((await fetch(node.http(name, 'llhls.m3u8'))).status === 200 ? name : '');
  const channels = [...(scheduled ?? []), ...(multiplex ?? [])];
  const lists = (streams ?? []).filter((name) => !channels.includes(name));
  if (push !== undefined) lists.push(`push to ${push.streamKey}`);
  const does = [...(await Promise.all(['pulled', 'tv', 'mix'].map(plays))), push?.state === 'pushing' ? 'push' : ''];
  return { lists: [...lists, ...channels].join(), does: does.join('|') };
}

/** Where in its film the channel is, compared with the clock: ms. */
async function lateness(node: TestServer, startsAt: number): Promise<number> {
  const { currentProgram } = await node.api.get<{ currentProgram: { state: string; currentItem?: { currentPosition: number } } }>(
    `${SCHEDULED}/tv`,
  );
  expect(currentProgram.state).toBe('onair');
  const wanted = (Date.now() - startsAt) % FILM_MS;
  const late = wanted - (currentProgram.currentItem?.currentPosition ?? Number.NaN);
  return late > FILM_MS / 2 ? late - FILM_MS : late < -FILM_MS / 2 ? late + FILM_MS : late;
}

async function becomes(node: TestServer, wanted: Awaited<ReturnType<typeof workOf>>): Promise<void> {
  const text = JSON.stringify(wanted);
  await until(`a node with ${text}`, async () => JSON.stringify(await workOf(node)) === text, DEADLINE);
}

test('what only the API of one node defined is done by another one after a drain or a death, and deleted at either for both', async () => {
  const [a, b] = nodes as [TestServer, TestServer];
  await a.api.create(STREAMS, { name: 'pulled', urls: [pulled], properties: { persistent: true } });
  await startPush(a.api, { id: 'p', stream: 'pulled', protocol: 'rtmp', url: source.rtmp('').slice(0, -1), streamKey: 'pushed' });
  const startsAt = Date.parse('2026-01-01T00:00:00Z');
  const programs = [{ name: 'loop', scheduled: '2026-01-01T00:00:00Z', repeat: true, items: [{ url: 'file://film.mp4' }] }];
  await a.api.create(SCHEDULED, { stream: { name: 'tv' }, programs: [{ ...programs[0], items: [{ url: 'file://missing.mp4' }] }] });
  const trackMap = [{ sourceTrackName: 'bypass_video', newTrackName: 'video' }];
  const sourceStreams = [{ name: 'pulled', url: 'stream://default/app/pulled', trackMap }];
  await a.api.create(MULTIPLEX, { outputStream: { name: 'mix' }, sourceStreams });
  await a.api.call('PATCH', `${SCHEDULED}/tv`, { programs });
  const lists = 'pulled,push to pushed,tv,mix';
  const all = { lists, does: 'pulled|tv|mix|push' };
  const nothing = { lists, does: '|||' };
  await becomes(a, all);
  await becomes(b, nothing);
  const fileOf = (name: string): string => readFileSync(path.join(folder, name, 'tv.sch'), 'utf8');
  await until('the changed channel', () => fileOf('b').includes('film.mp4'), DEADLINE);

  await a.api.call('POST', '/v1/server:drain');
  await becomes(b, all);
  expect(Math.abs(await lateness(b, startsAt))).toBeLessThan(NEAR_MS);
  await until('the receiver of the push', async () => (await source.api.get<string[]>(STREAMS)).includes('pushed'), DEADLINE);
  expect((await fetch(b.http('pulled', 'llhls.m3u8'))).status).toBe(200);

  await a.stop();
  await a.restart();
  await becomes(a, nothing);
  expect(await workOf(b)).toEqual(all);

  await b.kill();
  await becomes(a, all);
  expect(Math.abs(await lateness(a, startsAt))).toBeLessThan(NEAR_MS);
  await b.restart();
  await becomes(b, nothing);

  await redis.stop();
  await b.api.create(SCHEDULED, { stream: { name: 'late' }, programs });
  await redis.restart();
  await until('what was made without Redis', async () => (await a.api.get<string[]>(SCHEDULED)).includes('late'), DEADLINE);

  await stopPush(b.api, 'p');
  await b.api.call('DELETE', `${STREAMS}/pulled`);
  for (const name of ['tv', 'late']) await b.api.call('DELETE', `${SCHEDULED}/${name}`);
  await b.api.call('DELETE', `${MULTIPLEX}/mix`);
  for (const node of [b, a]) await becomes(node, { lists: '', does: '|||' });
  const folders = ['pulls', 'pushes', 'untold-changes', 'file-marks'];
  const kept = (): string[] => nodes.flatMap(({ state }) => folders.flatMap((name) => readdirSync(path.join(state, name))));
  await until('the state folders to be empty', () => kept().length === 0, DEADLINE);
  expect(['a', 'b'].flatMap((name) => readdirSync(path.join(folder, name)))).toEqual([]);
}, 90_000);
