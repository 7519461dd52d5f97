/** When a pulled stream is removed: the rules of the contract's table of stream states. */
import { beforeEach, expect, it, vi } from 'vitest';
import { ManualClock } from '../../test/fakes/manual-clock.ts';
import { endPulls, holdRounds, rounds, setUpPulls } from '../../test/fakes/pulled-streams.ts';

beforeEach(holdRounds);
endPulls();

const T = 3000;
const table = { noInputFailoverTimeoutMs: T, unusedStreamDeletionTimeoutMs: 600_000, retryCount: 100 };

it('removes a stream without input in time, however many retries are left', async () => {
  const clock = new ManualClock();
  const { application, source, pull } = setUpPulls(() => true, clock);
  await pull({ urls: ['rtsp://first/'] }, table);
  source.deliver(1);
  clock.advance(T);
  await rounds();
  expect(application.hasStream('s')).toBe(true);
  clock.advance(1);
  await rounds();
  await expect.poll(() => application.hasStream('s')).toBe(false);
  expect(source.asked.length).toBe(1);
});

it('removes a stream whose source accepts each connection and sends nothing', async () => {
  const clock = new ManualClock();
  const { application, source, pull, logger } = setUpPulls(() => true, clock);
  await pull({ urls: ['rtsp://first/'] }, table);
  source.deliver(1);
  source.opened[0]!.target.sink.close({ code: 'peer-left', detail: 'x' });
  await rounds();
  await expect.poll(() => source.opened.length).toBe(2);
  // Media that returns restarts the time.
  clock.advance(T - 100);
  source.deliver(1);
  await rounds();
  source.opened[1]!.target.sink.close({ code: 'peer-left', detail: 'x' });
  await rounds();
  await expect.poll(() => source.opened.length).toBe(3);
  clock.advance(T);
  await rounds();
  expect(application.hasStream('s')).toBe(true);
  clock.advance(1);
  await rounds();
  await expect.poll(() => application.hasStream('s')).toBe(false);
  expect(logger.lines.at(-1)?.message).toContain(`no input for ${T} ms`);
});

/** A source that does not answer is waited for without end: what ends the stream is not the deadline of its connection. */
const neverGiveUp = () => vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'setTimeout', 'clearTimeout'] });

it('removes a stream in time while its source does not answer', async () => {
  neverGiveUp();
  const clock = new ManualClock();
  const { application, source, pull } = setUpPulls(() => true, clock);
  await pull({ urls: ['rtsp://first/'] }, table);
  const open = source.open.bind(source);
  source.open = async (target) => {
    source.asked.push('held');
    return await new Promise(() => open(target).catch(() => undefined));
  };
  source.opened[0]!.target.sink.close({ code: 'peer-left', detail: 'x' });
  await rounds();
  await expect.poll(() => source.asked).toContain('held');
  clock.advance(T + 1);
  await rounds();
  await expect.poll(() => application.hasStream('s')).toBe(false);
});

it('tries every other URL before a stream without input is removed', async () => {
  const clock = new ManualClock();
  const { application, source, pull } = setUpPulls(() => true, clock);
  await pull({ urls: ['rtsp://first/', 'rtsp://second/', 'rtsp://third/'] }, table);
  source.deliver(1);
  for (const url of ['rtsp://second/', 'rtsp://third/']) {
    clock.advance(T + 1);
    await rounds();
    await expect.poll(() => application.stream('s')?.sourceUrl).toBe(url);
  }
  clock.advance(T + 1);
  await rounds();
  await expect.poll(() => application.hasStream('s')).toBe(false);
});

it('removes an unwatched stream even while its source does not answer', async () => {
  neverGiveUp();
  const clock = new ManualClock();
  const { application, source, pull } = setUpPulls(() => true, clock);
  await pull({}, { ...table, noInputFailoverTimeoutMs: 900_000 });
  source.open = () => new Promise(() => source.asked.push('held'));
  source.opened[0]!.target.sink.close({ code: 'peer-left', detail: 'x' });
  await rounds();
  await expect.poll(() => source.asked).toContain('held');
  clock.advance(600_000);
  await rounds();
  expect(application.hasStream('s')).toBe(true);
  clock.advance(1);
  await rounds();
  await expect.poll(() => application.hasStream('s')).toBe(false);
});

it('keeps a persistent stream without input and without viewers', async () => {
  const clock = new ManualClock();
  const { application, source, pull } = setUpPulls(() => true, clock);
  await pull({ urls: ['rtsp://first/'] }, { ...table, persistent: true });
  source.deliver(1);
  clock.advance(3_600_000);
  await rounds();
  expect(application.hasStream('s')).toBe(true);
  expect([source.asked.length, source.opened[0]?.closed]).toEqual([1, false]);
});

it('counts the rounds, not the time, of a configured pull', async () => {
  const clock = new ManualClock();
  const { application, source, pull } = setUpPulls(() => true, clock);
  await pull({ urls: ['rtsp://first/'], configured: true }, table);
  source.deliver(1);
  clock.advance(T + 1);
  await rounds();
  await expect.poll(() => source.asked.length).toBe(2);
  expect(application.hasStream('s')).toBe(true);
});

it('does not wait for a source that ignores its abort, and closes a late session', async () => {
  const { application, source, pull } = setUpPulls(() => true);
  const late = Promise.withResolvers<void>();
  const open = source.open.bind(source);
  source.open = async (target) => {
    const session = await open(target);
    await late.promise;
    return session;
  };
  const pulling = pull({ urls: ['rtsp://first/'] }, {});
  await expect.poll(() => source.opened.length).toBe(1);
  application.close({ code: 'deleted', detail: 'x' });
  await expect(pulling).rejects.toThrow('deleted meanwhile');
  expect(source.opened[0]?.closed).toBe(false);
  late.resolve();
  await expect.poll(() => source.opened[0]?.closed).toBe(true);
});
