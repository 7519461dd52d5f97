import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { openFakeDestination } from '../../../test/fakes/fake-destination.ts';
import { FakeIngestGate } from '../../../test/fakes/fake-ingest-gate.ts';
import { FakeStream } from '../../../test/fakes/fake-stream.ts';
import { FakeWork } from '../../../test/fakes/fake-work.ts';
import { ManualClock } from '../../../test/fakes/manual-clock.ts';
import { RecordingLogger } from '../../../test/fakes/recording-logger.ts';
import { videoPackets, videoTrack } from '../../../test/fakes/synthetic-media.ts';
import { allOf } from '../../../test/support/all-of.ts';
import type { PushPublisherConfig } from '../../config/index.ts';
import type { Application } from '../../core/application.ts';
import { QueueRegistry } from '../../core/queue-registry.ts';
import { MAX_TASKS } from '../../core/tasks/task-registry.ts';
import { Urgency } from '../../core/urgency.ts';
import { readListenerOptions } from '../../transport/srt/socket-options.ts';
import { systemClock } from '../../util/clock.ts';
import { SrtProvider } from '../srt/srt-provider.ts';
import { pushKeeper } from './push-keeper.ts';
import { PushPublisher } from './push-publisher.ts';
import type { PushRequest } from './push-request.ts';
import { PushTask } from './push-task.ts';

const OWNER = { vhost: 'default', app: 'app' };
const SETTINGS: PushPublisherConfig = { connectionTimeout: -1, sendTimeout: -1 };
const VIDEO = videoTrack();

let folder: string;
let logger: RecordingLogger;
let publisher: PushPublisher;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'millrace-pushes-'));
  logger = new RecordingLogger();
  publisher = await start();
});
afterEach(async () => {
  await publisher.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** A publisher on the state folder, as a process would start it. */
async function start(work?: FakeWork): Promise<PushPublisher> {
  const clock = new ManualClock();
  const options = { clock, logger, queues: new QueueRegistry(clock), stateFolder: folder, open: openFakeDestination };
  const made = new PushPublisher({ ...options, ...(work !== undefined && { work }) });
  await made.start();
  return made;
}

function wish(id: string, more: Partial<PushRequest> = {}): PushRequest {
  return {
    ...{
      id,
      streamName: 'stream',
      trackIds: [],
      variantNames: [],
      protocol: 'rtmp' as const,
      url: 'rtmp://h/app',
      streamKey: 'k',
      isConfig: false,
    },
    ...more,
  };
}

const states = (): string[] => publisher.pushes(OWNER).map(({ id, state }) => `${id} ${state}`);

test('a task that another node pushes waits for its turn', async () => {
  const work = new FakeWork('others');
  await publisher.stop();
  publisher = await start(work);
  const attached = publisher.attach(new FakeStream(), SETTINGS);
  attached.onTracks([VIDEO]);
  await publisher.startPush(OWNER, wish('p'));
  publisher.look();
  expect([states(), [...work.asked]]).toEqual([['p ready'], ['push/default/app/p']]);
  work.state = 'ours';
  publisher.look();
  await expect.poll(states).toEqual(['p pushing']);
  work.state = 'others';
  await expect.poll(states).toEqual(['p ready']);
  work.state = 'ours';
  await expect.poll(states).toEqual(['p pushing']);
});

test('tasks of the API are told to other nodes; those of other nodes are adopted, replaced and dropped', async () => {
  const work = new FakeWork('ours');
  await publisher.stop();
  publisher = await start(work);
  const info = await publisher.startPush(OWNER, wish('own'));
  const createdAt = Date.parse(info.createdTime);
  expect([...work.told]).toEqual([['push/default/app/own', { request: wish('own'), createdAt }]]);
  await expect(publisher.startPush(OWNER, wish('own', { streamKey: 'other' }))).rejects.toThrow("has a push 'own'");
  expect(await publisher.stopPush(OWNER, 'none')).toBe(false);
  expect(work.told.size).toBe(1);
  expect(await publisher.stopPush(OWNER, 'own')).toBe(true);
  expect([...work.told.values()]).toEqual([null]);

  const application = { definition: { config: { publishers: { push: {} } } } } as unknown as Application;
  const keeper = pushKeeper(publisher, { application: (_vhost, app) => (app === 'app' ? application : undefined) });
  const shared = { kind: 'push', ...OWNER, name: 'p' } as const;
  const attached = publisher.attach(new FakeStream(), SETTINGS);
  attached.onTracks([VIDEO]);
  await keeper.adopt(shared, { request: wish('p'), createdAt: 5000 });
  await expect.poll(states).toEqual(['p pushing']);
  expect([keeper.has(shared), Date.parse(publisher.pushes(OWNER)[0]?.createdTime ?? '')]).toEqual([true, 5000]);
  expect(await allOf(keeper.definitions('default', () => false))).toEqual([
    { work: shared, definition: { request: wish('p'), createdAt: 5000 } },
  ]);
  await keeper.adopt(shared, { request: wish('p', { streamKey: 'k2' }), createdAt: 6000 });
  await expect.poll(() => publisher.pushes(OWNER).map(({ streamKey, state }) => [streamKey, state])).toEqual([['k2', 'pushing']]);
  await publisher.stop();
  publisher = await start(work);
  expect(publisher.pushes(OWNER)).toMatchObject([{ id: 'p', streamKey: 'k2' }]);
  const again = pushKeeper(publisher, { application: () => application });
  await again.drop(shared);
  expect([again.has(shared), publisher.pushes(OWNER), work.told.size]).toEqual([false, [], 1]);

  await expect(keeper.adopt(shared, { request: wish('q'), createdAt: 1 })).rejects.toThrow('its definition cannot be read');
  await expect(keeper.adopt(shared, { request: { ...wish('p'), url: 'x' }, createdAt: 1 })).rejects.toThrow('cannot be read');
  await expect(keeper.adopt({ ...shared, app: 'other' }, { request: wish('p'), createdAt: 1 })).rejects.toThrow('Push is not enabled');
});

test('tasks start with their stream and wait again at its end, in either order of creation', async () => {
  await publisher.startPush(OWNER, wish('before'));
  const attached = publisher.attach(new FakeStream(), SETTINGS);
  expect(await publisher.startPush(OWNER, wish('between'))).toMatchObject({ state: 'ready' });
  attached.onTracks([VIDEO]);
  expect(await publisher.startPush(OWNER, wish('after'))).toMatchObject({ state: 'ready' });
  await publisher.startPush(OWNER, wish('other', { streamName: 'other' }));
  await expect.poll(states).toEqual(['after pushing', 'before pushing', 'between pushing', 'other ready']);
  for (const packet of videoPackets(VIDEO, [{ seconds: 0, keyframe: true }], 10)) attached.onPacket(packet);
  attached.onDrained?.();
  expect(publisher.pushes(OWNER, 'before')).toMatchObject([{ sentBytes: 40, totalsentBytes: 40 }]);
  attached.close({ code: 'peer-left', detail: '' });
  attached.close({ code: 'peer-left', detail: '' });
  expect(new Set(states().map((text) => text.split(' ')[1]))).toEqual(new Set(['ready']));
});

test('a stream needs low latency as soon as a task pushes it', async () => {
  const stream = new FakeStream();
  const attached = publisher.attach(stream, SETTINGS);
  attached.onTracks([VIDEO]);
  expect([attached.urgency, stream.comings]).toEqual([Urgency.NONE, 0]);
  await publisher.startPush(OWNER, wish('a'));
  expect([attached.urgency, stream.comings]).toEqual([Urgency.LOW_LATENCY, 1]);
  await publisher.stopPush(OWNER, 'a');
  expect(attached.urgency).toBe(Urgency.NONE);
});

test('an internal fault in one task leaves the others running', async () => {
  await publisher.startPush(OWNER, wish('bad'));
  await publisher.startPush(OWNER, wish('good'));
  const attached = publisher.attach(new FakeStream(), SETTINGS);
  attached.onTracks([VIDEO]);
  await expect.poll(states).toEqual(['bad pushing', 'good pushing']);
  const bug = vi.spyOn(PushTask.prototype, 'push').mockImplementationOnce(() => {
    throw new TypeError('a bug');
  });
  for (const packet of videoPackets(VIDEO, [{ seconds: 0, keyframe: true }], 10)) attached.onPacket(packet);
  attached.onDrained?.();
  bug.mockRestore();
  expect(states()).toEqual(['bad error', 'good pushing']);
  expect(publisher.pushes(OWNER, 'good')).toMatchObject([{ sentBytes: 40 }]);
  expect(logger.lines.some(({ fields }) => fields['err'] instanceof TypeError)).toBe(true);
  attached.close({ code: 'peer-left', detail: '' });
});

test('tasks and their totals survive a restart; stopped tasks are removed', async () => {
  await publisher.startPush(OWNER, wish('kept'));
  await publisher.startPush(OWNER, wish('stopped'));
  expect(await publisher.stopPush(OWNER, 'stopped')).toBe(true);
  expect(await publisher.stopPush(OWNER, 'stopped')).toBe(false);
  const attached = publisher.attach(new FakeStream(), SETTINGS);
  attached.onTracks([VIDEO]);
  await expect.poll(states).toEqual(['kept pushing']);
  for (const packet of videoPackets(VIDEO, [{ seconds: 0, keyframe: true }], 10)) attached.onPacket(packet);
  attached.close({ code: 'shutdown', detail: '' });
  await publisher.stop();
  publisher = await start();
  expect(publisher.pushes(OWNER)).toMatchObject([
    { id: 'kept', state: 'ready', sequence: 1, totalsentBytes: 40, sentBytes: 0, streamKey: 'k' },
  ]);
});

test('an id is accepted once per application, even in two simultaneous requests', async () => {
  const [first, second] = await Promise.allSettled([publisher.startPush(OWNER, wish('id')), publisher.startPush(OWNER, wish('id'))]);
  expect([first.status, second.status]).toEqual(['fulfilled', 'rejected']);
  await expect(publisher.startPush(OWNER, wish('id'))).rejects.toMatchObject({ code: 'duplicate' });
  await publisher.startPush({ ...OWNER, app: 'other' }, wish('id'));
});

test('an application refuses tasks beyond its limit', async () => {
  await Promise.all(Array.from({ length: MAX_TASKS }, (_, index) => publisher.startPush(OWNER, wish(`${index}`))));
  await expect(publisher.startPush(OWNER, wish('more'))).rejects.toMatchObject({ code: 'too-many' });
});

test('a disk error refuses a start and a stop, and changes no task', async () => {
  await publisher.startPush(OWNER, wish('there'));
  rmSync(join(folder, 'pushes'), { recursive: true });
  writeFileSync(join(folder, 'pushes'), '');
  await expect(publisher.startPush(OWNER, wish('new'))).rejects.toMatchObject({ code: 'not-durable' });
  await expect(publisher.stopPush(OWNER, 'there')).rejects.toMatchObject({ code: 'not-durable' });
  expect(states()).toEqual(['there ready']);
});

test('a document that describes no task is set aside', async () => {
  await publisher.startPush(OWNER, wish('good'));
  const [file = ''] = readdirSync(join(folder, 'pushes'));
  const text = readFileSync(join(folder, 'pushes', file), 'utf8');
  writeFileSync(join(folder, 'pushes/bad.json'), text.replace('rtmp://h/app', 'http://h/app'));
  publisher = await start();
  expect(states()).toEqual(['good ready']);
  expect(readdirSync(join(folder, 'pushes')).some((name) => name.startsWith('bad.json.broken-'))).toBe(true);
});

test('tasks of a deleted application are removed, also on disk, and others stay', async () => {
  await publisher.startPush(OWNER, wish('a'));
  await publisher.startPush({ ...OWNER, app: 'other' }, wish('b'));
  publisher.forgetApplication('default', 'app');
  await publisher.stop();
  publisher = await start();
  expect(states()).toEqual([]);
  expect(publisher.pushes({ ...OWNER, app: 'other' })).toHaveLength(1);
});

test('a map starts pushes of the streams it names, and they vanish with them', async () => {
  const path = join(folder, 'map.xml');
  const push = (name: string): string =>
    `<Push><Enable>true</Enable><StreamName>${name}</StreamName><Protocol>rtmp</Protocol><Url>rtmp://h/\${SourceStream}</Url><StreamKey>k</StreamKey></Push>`;
  writeFileSync(path, `<PushInfo>${push('str*')}${push('other')}</PushInfo>`);
  const attached = publisher.attach(new FakeStream(), { ...SETTINGS, streamMap: { enable: true, path } });
  attached.onTracks([VIDEO]);
  // The file has not been read yet.
  for (const packet of videoPackets(VIDEO, [{ seconds: 0, keyframe: true }], 10)) attached.onPacket(packet);
  await expect
    .poll(() => publisher.pushes(OWNER))
    .toMatchObject([{ isConfig: true, sentBytes: 40, state: 'pushing', url: 'rtmp://h/source' }]);
  expect(publisher.pushes(OWNER)[0]?.id).toMatch(/^[0-9a-f]{6}$/);
  attached.close({ code: 'peer-left', detail: '' });
  expect(publisher.pushes(OWNER)).toEqual([]);
  expect(readdirSync(join(folder, 'pushes'))).toEqual([]);
});

test('a map that is read late logs how many packets its pushes have missed', async () => {
  const path = join(folder, 'map.xml');
  writeFileSync(path, '<PushInfo></PushInfo>');
  const attached = publisher.attach(new FakeStream(), { ...SETTINGS, streamMap: { enable: true, path } });
  attached.onTracks([VIDEO]);
  const frames = Array.from({ length: 600 }, (_, n) => ({ seconds: n / 25, keyframe: n === 0 }));
  for (const packet of videoPackets(VIDEO, frames, 10)) attached.onPacket(packet);
  expect((await logger.line('push map was read late: its tasks begin without 600 packets')).level).toBe('warn');
});

test('an unusable map is logged as an error', async () => {
  const path = join(folder, 'none.xml');
  publisher.attach(new FakeStream(), { ...SETTINGS, streamMap: { enable: true, path } });
  await expect
    .poll(() => logger.lines.some(({ level, message }) => level === 'error' && message.startsWith('push map cannot be used')))
    .toBe(true);
});

test('a running SRT push reports its counters in statistics and in the log', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  onTestFinished(() => void vi.useRealTimers());
  const receiver = new SrtProvider({
    ...{ gate: new FakeIngestGate(), logger: new RecordingLogger(), clock: systemClock, host: '127.0.0.1', ports: [0] },
    ...{ settings: readListenerOptions([]), streamMap: [], streamPassphrases: [], virtualHostFor: () => 'default' },
  });
  await receiver.start();
  onTestFinished(() => receiver.stop());
  await publisher.stop();
  publisher = new PushPublisher({ clock: systemClock, logger, queues: new QueueRegistry(systemClock), stateFolder: folder });
  await publisher.start();
  const peer = `127.0.0.1:${receiver.ports[0]}`;
  await publisher.startPush(OWNER, wish('far', { protocol: 'srt', url: `srt://${peer}?streamid=default/app/live`, streamKey: '' }));
  const attached = publisher.attach(new FakeStream(), SETTINGS);
  attached.onTracks([VIDEO]);
  await expect.poll(states).toEqual(['far pushing']);
  expect(publisher.statistics()).toMatchObject([{ session: 'far', peer, ...OWNER, stream: 'stream', sender: { packetsReportedLost: 0 } }]);
  vi.advanceTimersByTime(60_000);
  expect(logger.matching('SRT connection')).toMatchObject([{ fields: { push: 'far', retransmitted: 0, tooLate: 0, lost: 0 } }]);
  await receiver.stop();
  await expect.poll(() => publisher.statistics()).toEqual([]);
  attached.close({ code: 'peer-left', detail: '' });
});

test('a push that fails at the end of its stream does not affect the ends of others', async () => {
  for (const id of ['a', 'b']) await publisher.startPush(OWNER, wish(id));
  const attached = publisher.attach(new FakeStream(), SETTINGS);
  attached.onTracks([VIDEO]);
  await expect.poll(states).toEqual(['a pushing', 'b pushing']);
  const ended = vi.spyOn(PushTask.prototype, 'streamEnded').mockImplementationOnce(() => {
    throw new TypeError('made up');
  });
  onTestFinished(() => ended.mockRestore());
  attached.close({ code: 'peer-left', detail: '' });
  expect(ended).toHaveBeenCalledTimes(2);
  expect(states().filter((text) => text.endsWith('ready'))).toHaveLength(1);
});
