import { expect, it, onTestFinished, vi } from 'vitest';
import { ManualClock } from '../../test/fakes/manual-clock.ts';
import { endPulls, holdRounds, PUBLISHER, rounds, setUpPulls } from '../../test/fakes/pulled-streams.ts';
import { accessUnit } from '../../test/fakes/source.ts';
import { ProviderKind } from './kinds.ts';

endPulls();

it('returns to the first URL when that works again, without a jump in time', async () => {
  holdRounds();
  const clock = new ManualClock();
  const pass = async (): Promise<void> => {
    clock.advance(100);
    await rounds();
  };
  let first = false;
  const { application, source, packets, pull } = setUpPulls((url) => url.includes('second') || first, clock);
  await pull({}, { failbackMs: 50 });
  source.deliver();
  expect(application.stream('s')?.sourceUrl).toBe('rtsp://second/');
  expect(source.opened[0]?.target.settings).toEqual({ marked: 'as such' });
  for (let turn = 0; turn < 3; turn += 1) await pass();
  expect(source.asked.filter((url) => url.includes('first')).length).toBeGreaterThan(2);
  expect(source.opened[0]?.closed).toBe(false);
  first = true;
  await pass();
  expect(source.opened.length).toBe(2);
  // The first source accepts the request but sends nothing.
  await pass();
  expect(application.stream('s')?.sourceUrl).toBe('rtsp://second/');
  source.deliver(1);
  await pass();
  expect(application.stream('s')?.sourceUrl).toBe('rtsp://first/');
  source.deliver();
  await expect.poll(() => packets.length).toBe(60);
  const times = packets.map(({ dts }) => dts);
  const steps = times.slice(1).map((time, index) => time - (times[index] ?? 0));
  expect(Math.max(...steps)).toBeLessThan(3200);
  expect(Math.min(...steps)).toBeGreaterThan(2800);
  // The second source, and the probe of the first.
  expect(source.opened.filter(({ closed }) => closed).length).toBe(2);
});

it('leaves a source when it ends, and pauses before it tries a failing source again', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  const clock = new ManualClock();
  const { source, pull } = setUpPulls(() => true, clock);
  const turns = async (): Promise<void> => {
    for (let turn = 0; turn < 10; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  };
  await pull();
  source.deliver(1);
  clock.advance(100);
  source.opened[0]?.target.sink.close({ code: 'peer-left', detail: 'bye' });
  await turns();
  expect(source.asked).toEqual(['rtsp://first/', 'rtsp://second/']);
  source.deliver(1);
  source.opened[1]?.target.sink.close({ code: 'peer-left', detail: 'bye' });
  await turns();
  expect(source.opened.map(({ closed }) => closed)).toEqual([true, true]);
});

it('keeps no memory of attempts while the connection of another URL lives on', async () => {
  // A promise keeps every reaction until it settles.
  const reactions: { readonly mock: { readonly calls: readonly unknown[] } }[] = [];
  const withResolvers = Promise.withResolvers.bind(Promise);
  vi.spyOn(Promise, 'withResolvers').mockImplementation(<T>() => {
    const made = withResolvers<T>();
    reactions.push(vi.spyOn(made.promise, 'then'));
    return made;
  });
  onTestFinished(() => void vi.restoreAllMocks());
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  const clock = new ManualClock();
  const { source, pull } = setUpPulls((url) => url.includes('second'), clock);
  await pull({}, { failbackMs: 50 });
  const first = () => source.asked.filter((url) => url.includes('first')).length;
  source.plays = () => true;
  source.deliver(1);
  const open = source.open.bind(source);
  source.open = async (target) => {
    const session = await open(target);
    // The first source accepts the request but sends nothing.
    if (target.url.includes('first')) target.sink.close({ code: 'peer-left', detail: 'nothing' });
    return session;
  };
  for (let tries = 1; tries <= 10; tries += 1) {
    clock.advance(100);
    await vi.advanceTimersByTimeAsync(100);
    for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  }
  expect(first()).toBeGreaterThan(9);
  expect(Math.max(...reactions.map(({ mock }) => mock.calls.length))).toBeLessThan(3);
});

it('cancels an attempt at the first URL when the current connection ends', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  const clock = new ManualClock();
  const { source, pull } = setUpPulls((url) => url.includes('second'), clock);
  await pull({}, { failbackMs: 50 });
  source.deliver(1);
  source.plays = () => true;
  const turns = async (): Promise<void> => {
    for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  };
  clock.advance(100);
  await vi.advanceTimersByTimeAsync(100);
  await turns();
  expect(source.opened.map(({ target, closed }) => [target.url, closed])).toEqual([
    ['rtsp://second/', false],
    ['rtsp://first/', false],
  ]);
  source.opened[0]?.target.sink.close({ code: 'peer-left', detail: 'bye' });
  await turns();
  expect(source.opened.slice(0, 2).map(({ closed }) => closed)).toEqual([true, true]);
});

it('keeps its URL without failback', async () => {
  holdRounds();
  const clock = new ManualClock();
  const { application, source, pull } = setUpPulls((url) => url.includes('second'), clock);
  await pull();
  source.plays = () => true;
  clock.advance(1000);
  await rounds();
  expect(application.stream('s')?.sourceUrl).toBe('rtsp://second/');
  expect(source.asked.length).toBe(2);
});

it('ends with its application when it is configured, and is never on disk', async () => {
  const { application, store, pull } = setUpPulls(() => true);
  await pull({ name: 'api' }, { persistent: true });
  await pull({ name: 'map', configured: true }, { persistent: true });
  expect([...store.documents.keys()]).toEqual(['api']);
  application.stream('map')?.terminate({ code: 'application-restart', detail: 'x' });
  application.stream('api')?.terminate({ code: 'application-restart', detail: 'x' });
  await expect.poll(() => application.stream('api')).toBeDefined();
  expect(application.hasStream('map')).toBe(false);
});

it('stays deleted although the configuration asks for it, until its application restarts', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  const { application, pulls, store } = setUpPulls(() => true);
  const properties = {
    ...{ persistent: true, noInputFailoverTimeoutMs: 3000, unusedStreamDeletionTimeoutMs: 60_000 },
    ...{ ignoreRtcpSRTimestamp: false, retryCount: 1, relay: false },
  };
  const mapped = { vhost: 'v', app: 'app', name: 'map', urls: ['rtsp://first/'], properties, configured: true };
  pulls.restore(mapped);
  expect(application.hasStream('map')).toBe(true);
  await pulls.delete(mapped, { code: 'deleted', detail: 'x' });
  await vi.advanceTimersByTimeAsync(10_000);
  expect([application.hasStream('map'), pulls.waiting, store.documents.size]).toEqual([false, 0, 0]);
  pulls.restore(mapped);
  expect(application.hasStream('map')).toBe(true);
});

it('switches from a source whose clock stands still to the next one, without losing the stream', async () => {
  const { application, source, pull, packets, store, logger } = setUpPulls(() => true);
  await pull({}, { persistent: true });
  const data = accessUnit(true, 1024 * 1024);
  for (let index = 0; index < 100; index += 1) source.opened[0]?.target.sink.push({ trackId: 0, pts: 0, dts: 0, keyframe: true, data });
  await expect.poll(() => application.stream('s')?.sourceUrl).toBe('rtsp://second/');
  expect(logger.lines.filter(({ level }) => level === 'warn').map(({ message, fields }) => [message, fields['failures']])).toEqual([
    ['source lost: more than 64 MiB of track 0 came within a second of its time: its clock stands still', 1],
  ]);
  expect(store.documents.has('s')).toBe(true);
  source.deliver();
  await expect.poll(() => packets.length).toBeGreaterThanOrEqual(64 + 30);
});

it('leaves a source that proves unusable while it is still being opened', async () => {
  const { application, source, pull } = setUpPulls(() => true);
  const open = source.open.bind(source);
  source.open = async (target) => {
    const session = await open(target);
    if (target.url !== 'rtsp://first/') return session;
    const data = accessUnit(true, 1024 * 1024);
    for (let index = 0; index < 100; index += 1) target.sink.push({ trackId: 0, pts: 0, dts: 0, keyframe: true, data });
    for (let turn = 0; turn < 3; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    return session;
  };
  await pull({}, { persistent: true });
  await expect.poll(() => application.stream('s')?.sourceUrl).toBe('rtsp://second/');
});

it('does not report a congested source as silent, and does after the congestion', async () => {
  holdRounds();
  const clock = new ManualClock();
  const { application, source, pull } = setUpPulls(() => true, clock);
  await pull({}, { noInputFailoverTimeoutMs: 300 });
  for (let round = 0; round < 3; round += 1) {
    source.opened[0]?.target.sink.heard();
    clock.advance(300);
    await rounds();
    expect(application.stream('s')?.sourceUrl).toBe('rtsp://first/');
  }
  clock.advance(1);
  await rounds();
  await expect.poll(() => application.stream('s')?.sourceUrl).toBe('rtsp://second/');
});

it.each([
  ['whose provider is not enabled any more', { without: true }],
  ['whose name a publisher has taken', { without: false }],
])('keeps a persistent stream %s after the restart of its application, and restarts it later', async (_what, { without }) => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  const { application, store, pull, pulls, logger, source } = setUpPulls(() => true);
  await pull({}, { persistent: true });
  const { providers } = application.definition.config as { providers: { rtspPull?: unknown } };
  const { rtspPull } = providers;
  if (without) delete providers.rtspPull;
  application.stream('s')?.terminate({ code: 'application-restart', detail: 'x' });
  const publication = without ? null : application.openIngest(PUBLISHER);
  await logger.line("persistent stream 'v/app/s' ended; it is pulled again as soon as possible");
  expect(store.documents.size).toBe(1);
  const opened = source.opened.length;
  await vi.advanceTimersByTimeAsync(3000);
  expect([source.opened.length, logger.lines.filter(({ message }) => message.includes('has returned')).length]).toEqual([opened, 0]);
  providers.rtspPull = rtspPull;
  publication?.close({ code: 'peer-left', detail: 'x' });
  await vi.advanceTimersByTimeAsync(1500);
  expect(application.stream('s')?.provider).toBe(ProviderKind.RTSP_PULL);
  expect([source.opened.length, vi.getTimerCount() > 0]).toEqual([opened + 1, true]);
  await pulls.delete({ vhost: 'v', app: 'app', name: 's' }, { code: 'deleted', detail: 'x' });
  expect(store.documents.size).toBe(0);
});

it('forgets a persistent stream that a publisher replaced when it is deleted', async () => {
  const { application, store, pull, pulls } = setUpPulls(() => true);
  await pull({}, { persistent: true });
  application.openIngest(PUBLISHER);
  expect(store.documents.size).toBe(1);
  await pulls.delete({ vhost: 'v', app: 'app', name: 's' }, { code: 'deleted', detail: 'x' });
  expect(store.documents.size).toBe(0);
});

it('connects again when its application restarts while the source answers', async () => {
  const { application, source, pull } = setUpPulls(() => true);
  await pull({}, { persistent: true });
  source.deliver(1);
  const answer = Promise.withResolvers<void>();
  const open = source.open.bind(source);
  source.open = async (target) => {
    const session = await open(target);
    await answer.promise;
    return session;
  };
  source.opened[0]?.target.sink.close({ code: 'peer-left', detail: 'x' });
  await expect.poll(() => source.opened.length).toBe(2);
  application.stream('s')?.terminate({ code: 'application-restart', detail: 'x' });
  await expect.poll(() => application.stream('s')).toBeDefined();
  answer.resolve();
  await expect.poll(() => source.opened.length).toBe(3);
  expect(source.opened[1]?.closed).toBe(true);
  await expect.poll(() => application.stream('s')?.tracks.length).toBeGreaterThan(1);
});

it('deletes no stream as unused because the wall clock was set', async () => {
  holdRounds();
  const clock = new ManualClock();
  const { application, pull } = setUpPulls(() => true, clock);
  await pull();
  clock.setOn(3_600_000);
  await rounds();
  expect(application.stream('s')).toBeDefined();
});

it('restores a pull later whose application was missing, unless the pull is deleted first', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  const { application, pulls, store, gone } = setUpPulls(() => true);
  const properties = {
    ...{ persistent: true, noInputFailoverTimeoutMs: 1, unusedStreamDeletionTimeoutMs: 1 },
    ...{ ignoreRtcpSRTimestamp: false, retryCount: 1, relay: false },
  };
  gone.now = true;
  for (const name of ['one', 'two']) {
    const document = { vhost: 'v', app: 'app', name, urls: ['rtsp://first/'], properties };
    await store.save(document);
    expect(() => pulls.restore(document)).toThrow('there is no application');
  }
  await vi.advanceTimersByTimeAsync(2000);
  await pulls.delete({ vhost: 'v', app: 'app', name: 'two' }, { code: 'deleted', detail: 'x' });
  gone.now = false;
  await vi.advanceTimersByTimeAsync(2000);
  expect(application.streams.map(({ name }) => name)).toEqual(['one']);
  expect([...store.documents.keys()]).toEqual(['one']);
});

it('keeps the previous stream of the name on disk when a new one cannot be saved', async () => {
  const { application, pull, store } = setUpPulls(() => true);
  await pull({}, { persistent: true });
  application.openIngest(PUBLISHER).close({ code: 'peer-left', detail: 'x' });
  store.full = true;
  await expect(pull({}, { persistent: true })).rejects.toThrow('no space left');
  store.full = false;
  expect(store.documents.size).toBe(1);
  await expect.poll(() => application.stream('s')?.provider).toBe(ProviderKind.RTSP_PULL);
  expect(store.documents.size).toBe(1);
});

it.each([
  ['stays on disk and returns when another stream takes its name', true, 1],
  ['is gone when it is deleted', false, 0],
])('a persistent stream %s while it is written to disk', async (_what, replaced, kept) => {
  const { application, pull, store } = setUpPulls(() => true);
  const save = store.save.bind(store);
  const written = Promise.withResolvers<void>();
  store.save = async (document) => {
    await written.promise;
    await save(document);
  };
  const pulling = pull({}, { persistent: true });
  await expect.poll(() => application.stream('s')).toBeDefined();
  const publication = replaced ? application.openIngest(PUBLISHER) : null;
  if (!replaced) application.stream('s')?.terminate({ code: 'deleted', detail: 'x' });
  written.resolve();
  await pulling;
  expect(store.documents.size).toBe(kept);
  publication?.close({ code: 'peer-left', detail: 'x' });
  if (replaced) await expect.poll(() => application.stream('s')?.provider).toBe(ProviderKind.RTSP_PULL);
});

it('ends a persistent stream that returns while it is being deleted', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  const { application, store, pull, pulls, logger } = setUpPulls(() => true);
  await pull({}, { persistent: true });
  const publication = application.openIngest(PUBLISHER);
  await logger.line("persistent stream 'v/app/s' ended; it is pulled again as soon as possible");
  publication.close({ code: 'peer-left', detail: 'x' });
  const remove = store.remove.bind(store);
  const disk = Promise.withResolvers<void>();
  store.remove = async (document) => {
    await disk.promise;
    await remove(document);
  };
  const deleted = pulls.delete({ vhost: 'v', app: 'app', name: 's' }, { code: 'deleted', detail: 'x' });
  await vi.advanceTimersByTimeAsync(1500);
  expect(application.hasStream('s')).toBe(true);
  disk.resolve();
  await deleted;
  expect([application.hasStream('s'), store.documents.size, pulls.waiting]).toEqual([false, 0, 0]);
});

it('deletes no stream as unused that another stream of the server is made of', async () => {
  holdRounds();
  const clock = new ManualClock();
  const { application, pull } = setUpPulls(() => true, clock);
  await pull({}, { noInputFailoverTimeoutMs: 600_000 });
  await vi.waitFor(() => expect(application.outbound('s')?.tracks.length ?? 0).toBeGreaterThan(0));
  const leave = application.outbound('s')?.tap('a tap', { onTracks: () => undefined, onPacket: () => undefined, close: () => undefined });
  clock.advance(61_000);
  await rounds();
  expect(application.stream('s')).toBeDefined();
  leave?.();
  await rounds();
  expect(application.stream('s')).toBeUndefined();
});

it('removes an echoed password from its log lines', async () => {
  const { source, pull, application, logger } = setUpPulls(() => true);
  const open = source.open.bind(source);
  source.open = async (target) => {
    if (target.url.includes('second')) throw new Error("no user 'me' with the password '1234' or p%40ss, 12345");
    return open(target);
  };
  await pull({ urls: ['rtsp://me:1234@first/', 'rtsp://me:p%40ss@second/'] }, { persistent: true });
  source.opened[0]?.target.sink.close({ code: 'peer-error', detail: "'1234' is not good any more" });
  await expect.poll(() => logger.lines.filter(({ level }) => level === 'warn').length).toBeGreaterThanOrEqual(2);
  expect(logger.lines.filter(({ level }) => level === 'warn').map(({ message }) => message)).toEqual([
    "source lost: '***' is not good any more",
    "cannot pull from rtsp://second/: no user 'me' with the password '***' or ***, 12345",
  ]);
  await expect.poll(() => application.stream('s')?.sourceUrl).toBe('rtsp://first/');
});
