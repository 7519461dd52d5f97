import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { getCompileCacheDir } from 'node:module';
import { describe, expect, it } from 'vitest';
import { alive, audio, SECONDS, setUpLabs, video } from '../../test/fakes/transcode-labs.ts';
import type { TranscodeRun } from '../../test/fakes/transcode-run.ts';
import { until } from '../../test/harness/poll.ts';
import { decodeComplaints } from '../../test/support/ffprobe.ts';

const { lab, media, tracks } = setUpLabs();

describe('a process that dies', () => {
  it('costs its stream at most one GOP and other streams nothing', async () => {
    const made = lab();
    const hit = made.open([video(10), video(11, { height: 90 }), audio(12)], tracks(), { stream: 'hit' });
    const [pid] = made.supervisor.pids;
    const other = made.open([video(10), video(11, { height: 90 })], tracks(), { stream: 'other' });
    expect(made.supervisor.pids.length).toBe(2);
    const third = Math.floor(media.packets.length / 3);
    await Promise.all([hit.feed(media.packets.slice(0, third)), other.feed(media.packets.slice(0, third))]);
    // As in real time: the packets fed so far have been encoded.
    const fed = media.packets.slice(0, third).filter(({ track }) => track.type === 'video').length;
    for (const id of [10, 11]) await Promise.all([hit.makes(id, fed), other.makes(id, fed)]);
    process.kill(pid!, 'SIGKILL');
    await until('the death is noticed', () =>
      made.logger.lines.some(({ message }) => message === `transcoder process ${pid} died: SIGKILL`),
    );
    await Promise.all([hit.feed(media.packets.slice(third)), other.feed(media.packets.slice(third))]);
    await Promise.all([hit.reaches(SECONDS - 0.1), other.reaches(SECONDS - 0.1)]);
    await other.makes(10, SECONDS * 30);
    await until('both encodes are complete', () => hit.end(10) >= SECONDS && hit.end(11) >= SECONDS);
    expect(other.made(10).packets.length).toBe(SECONDS * 30);
    for (const id of [10, 11]) {
      const { packets, tracks: announced } = hit.made(id);
      expect(announced.length).toBe(1);
      expect(packets.length).toBeGreaterThanOrEqual(SECONDS * 30 - 30 - 1);
      expect(packets.every(({ dts }, index) => index === 0 || dts > packets[index - 1]!.dts)).toBe(true);
      const resumed = packets.findIndex(({ pts }, index) => index > 0 && pts - packets[index - 1]!.pts > 4000);
      if (resumed > 0) expect(packets[resumed]!.keyframe).toBe(true);
      expect(decodeComplaints(hit.file(id))).toEqual([]);
    }
    const sound = hit.made(12).packets;
    expect(sound.every(({ dts }, index) => index === 0 || dts > sound[index - 1]!.dts)).toBe(true);
  });

  it('is restarted each time with a growing delay and a log line', async () => {
    const made = lab();
    const run = made.open([audio(10)], tracks());
    for (let round = 1; round <= 3; round += 1) {
      const [pid] = await until('a process', () => (made.supervisor.pids.length > 0 ? made.supervisor.pids : null));
      process.kill(pid!, 'SIGSEGV');
      await until(
        'the death of the process',
        () => made.logger.lines.filter(({ message }) => /^transcoder process \d+ died/.test(message)).length === round,
      );
    }
    await run.feed(media.packets);
    await run.reaches(SECONDS - 0.2);
  });

  it('with several jobs gets them apart when it dies again', async () => {
    const made = lab();
    const runs = ['a', 'b', 'c'].map((stream) => made.open([audio(10)], tracks(), { stream }));
    expect(made.supervisor.pids.length).toBe(1);
    for (let round = 1; round <= 2; round += 1) {
      process.kill((await until('a process', () => made.supervisor.pids[0]))!, 'SIGKILL');
      await until(
        'the death of the process',
        () => made.logger.lines.filter(({ message }) => /^transcoder process \d+ died/.test(message)).length === round,
      );
    }
    await until('three processes', () => made.supervisor.pids.length === 3);
    await Promise.all(runs.map((run) => run.feed(media.packets)));
    await Promise.all(runs.map((run) => run.reaches(SECONDS - 0.2)));
  });

  it('is killed when it falls silent', async () => {
    const made = lab({ silenceDeadlineMs: 4000 });
    const run = made.open([audio(10)], tracks());
    const half = Math.floor(media.packets.length / 2);
    await run.feed(media.packets.slice(0, half));
    await until('packets of the encode', () => run.made(10).packets.length > 10);
    const [pid] = made.supervisor.pids;
    process.kill(pid!, 'SIGSTOP');
    await until('the silent process is killed', () =>
      made.logger.lines.some(({ message }) => message.startsWith(`transcoder process ${pid} died: it was silent`)),
    );
    await run.feed(media.packets.slice(half));
    await run.reaches(SECONDS - 0.2);
  });

  it('repeatedly before its first message fails its encodes', async () => {
    const made = lab({ entry: new URL('./no-such-program.ts', import.meta.url) });
    const run = made.open([audio(10)], tracks());
    await until('the encode is given up', () => run.made(10).failed);
    expect(run.made(10).failed).toMatch(/^no transcoder process comes up: /);
  });

  it('ends when the server is killed', async () => {
    const supervisor = new URL('./supervisor.ts', import.meta.url).href;
    const registry = new URL('../core/queue-registry.ts', import.meta.url).href;
    const clock = new URL('../util/clock.ts', import.meta.url).href;
    const script = `
      const { TranscoderSupervisor } = await import('${supervisor}');
      const { QueueRegistry } = await import('${registry}');
      const { systemClock } = await import('${clock}');
      const logger = { debug() {}, info() {}, warn() {}, error() {}, child: () => logger };
      const transcoder = new TranscoderSupervisor({ clock: systemClock, logger, queues: new QueueRegistry(systemClock) });
      await transcoder.codecModules();
      process.stdout.write(String(transcoder.pids[0]), () => process.kill(process.pid, 'SIGKILL'));`;
    const { stdout, signal } = spawnSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8', timeout: 30_000 });
    expect(signal).toBe('SIGKILL');
    const pid = Number(stdout);
    expect(pid).toBeGreaterThan(1);
    await until('the orphan is gone', () => !alive(pid));
  });
});

it('loses no packet of a job when the server itself stands still for a while', async () => {
  const made = lab({ silenceDeadlineMs: 4000 });
  const [ended, other] = ['ended', 'other'].map((stream) => made.open([audio(10)], tracks(), { stream })) as [TranscodeRun, TranscodeRun];
  const pids = made.supervisor.pids;
  expect(pids.length).toBe(1);
  const third = Math.floor(media.packets.length / 3);
  await ended.feed(media.packets.slice(0, third));
  await ended.reaches(1);
  await other.feed(media.packets.slice(0, third));
  ended.session.close();
  for (const packet of media.packets.slice(third, 2 * third)) other.session.push(packet);
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5500);
  await other.feed(media.packets.slice(2 * third));
  await other.reaches(SECONDS - 0.2);
  const { packets } = other.made(10);
  const ends = packets.map(({ dts, duration }) => dts + duration);
  expect(packets.every(({ dts }, index) => index === 0 || dts === ends[index - 1])).toBe(true);
  expect(made.supervisor.pids).toEqual(pids);
  expect(made.logger.lines.filter(({ level }) => level !== 'info')).toEqual([]);
});

it('lets at most the configured number of jobs share a process', () => {
  const made = lab({ jobsPerProcess: 2 });
  for (const stream of ['a', 'b', 'c']) made.open([audio(10)], tracks(), { stream });
  expect(made.supervisor.pids.length).toBe(2);
});

describe('when all processes are in use', () => {
  it('refuses later jobs with the reason, and keeps the running ones', async () => {
    const made = lab({ maxProcesses: 2, jobsPerProcess: 1 });
    const kept = ['a', 'b'].map((stream) => made.open([audio(10)], tracks(), { stream }));
    const late = made.open([audio(10), audio(11, { bitrate: 64_000 })], tracks(), { stream: 'c' });
    await until('the refusal', () => late.made(11).failed);
    expect([late.made(10).failed, late.made(11).failed]).toEqual(
      Array(2).fill(expect.stringContaining('all 2 transcoder processes are taken')),
    );
    expect(made.supervisor.pids.length).toBe(2);
    await Promise.all([...kept, late].map((run) => run.feed(media.packets)));
    await Promise.all(kept.map((run) => run.reaches(SECONDS - 0.2)));
    expect(made.queues.statuses().some(({ urn }) => urn.includes('/c:'))).toBe(false);
    late.session.close();
  });

  it('accepts another job when a running one ends', async () => {
    const made = lab({ maxProcesses: 1, jobsPerProcess: 1 });
    const first = made.open([audio(10)], tracks(), { stream: 'a' });
    first.session.close();
    const second = made.open([audio(10)], tracks(), { stream: 'b' });
    await second.feed(media.packets);
    await second.reaches(SECONDS - 0.2);
  });

  it('restarts jobs that died together within the limit of processes', async () => {
    const made = lab({ maxProcesses: 2 });
    const runs = ['a', 'b', 'c'].map((stream) => made.open([audio(10)], tracks(), { stream }));
    for (let round = 1; round <= 2; round += 1) {
      process.kill((await until('a process', () => made.supervisor.pids[0]))!, 'SIGKILL');
      await until(
        'the death of the process',
        () => made.logger.lines.filter(({ message }) => /^transcoder process \d+ died/.test(message)).length === round,
      );
    }
    await until('two processes', () => made.supervisor.pids.length === 2);
    await Promise.all(runs.map((run) => run.feed(media.packets)));
    await Promise.all(runs.map((run) => run.reaches(SECONDS - 0.2)));
    expect(made.supervisor.pids.length).toBe(2);
  });
});

it('keeps the codec library out of the server', async () => {
  await lab().supervisor.codecModules();
  expect(readFileSync('/proc/self/maps', 'utf8')).not.toMatch(/node-av/);
});

it('lets its processes look for compiled code where the server does', async () => {
  const { supervisor } = lab({ entry: new URL('../../test/fakes/code-seeking-child.ts', import.meta.url) });
  await supervisor.codecModules();
  expect(supervisor.libraryVersion).toBe(getCompileCacheDir());
});

describe('a late transcoder', () => {
  it('drops up to the next keyframe, counts the drops and continues', async () => {
    const made = lab();
    const run = made.open([video(10, { height: 90 })], tracks());
    const frames = media.packets.filter(({ track }) => track.type === 'video');
    // No process can take anything in this turn of the event loop.
    for (let lap = 0; lap < 4; lap += 1) {
      for (const packet of frames) {
        const shift = lap * SECONDS * 90_000;
        run.session.push({ ...packet, pts: packet.pts + shift, dts: packet.dts + shift });
      }
    }
    await run.reaches(SECONDS * 4);
    const status = made.queues.statuses().find(({ urn }) => urn.endsWith(':p=trs:r=decoder_h264_0'))!;
    expect(status.urn).toBe('mngq:v=default#app:s=/stream:p=trs:r=decoder_h264_0');
    expect(status.drop).toBeGreaterThan(0);
    expect(status.peak).toBe(status.threshold);
    expect(run.made(10).packets.length + status.drop).toBe(SECONDS * 4 * 30);
    expect(run.made(10).packets[0]?.keyframe).toBe(true);
  });

  it('shows its queues under the names of the contract', async () => {
    const made = lab();
    const run = made.open([{ ...video(10, { height: 90 }), trackId: 3 }, audio(11, { codec: 'opus' })], tracks());
    await run.feed(media.packets);
    const roles = () => made.queues.statuses().map(({ urn }) => urn.split(':r=')[1]);
    await until('the queues of the process are known', () => roles().length >= 5);
    expect(roles().sort()).toEqual(['decoder_aac_1', 'decoder_h264_0', 'encoder_h264_3', 'filter_audio', 'filter_video']);
    run.session.close();
    run.session.close();
    expect(roles()).toEqual([]);
  });
});
