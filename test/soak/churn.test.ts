/**
 * A server where everything comes and goes for `SOAK_MINUTES` (3; releases must pass an hour). After each round, when only one stream with
 * its viewer is left, memory, descriptors, threads, timers and children must be as before.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { until } from '../harness/poll.ts';
import { freePorts } from '../harness/ports.ts';
import { encodeSource } from '../harness/recorded-file.ts';
import { startServer } from '../harness/server.ts';
import {
  type Churn,
  control,
  fullDisk,
  loop,
  mountSmallDisk,
  rtmpAndItsViewers,
  signals,
  srtIn,
  unmount,
  whipIn,
} from './support/churn.ts';
import { type ProcessSample, sampleProcess } from './support/process-sample.ts';
import { laterHalf, riseOf } from './support/trend.ts';

const MINUTES = Number(process.env['SOAK_MINUTES'] ?? 3);
/** At least two rounds in each half, however slow the machine is. */
const MIN_ROUNDS = 4;
const SMALL_DISK_MIB = 8;
const SOURCE_SECONDS = 10;
/** Rest after a round: cut connections are given up, and idle threads and processes end. */
const REST_MS = 8000;

/**
 * Maximum rise of a figure over the later half, by the line through its samples: memory that a collection leaves, and the moment of a
 * sample. It is equal for three minutes and for an hour: the later half of an hour has some 80 rounds, so a leak of 40 KiB, or of a tenth
 * of a descriptor or timer, per round is found.
 */
const MAX_RISE: readonly (readonly [figure: RegExp, most: number])[] = [
  [/^heap MiB$/, 3],
  [/^external MiB$/, 8],
  // Pages that the allocator keeps; it does so in steps.
  [/^resident MiB$/, 48],
  // Media in transit, and answers to the base viewer.
  [/^active /, 8],
  [/^fd /, 8],
  [/^threads$/, 2],
  [/^children$/, 1],
];

test('memory, descriptors and processes do not grow while streams, viewers and tasks come and go', {
  timeout: (MINUTES + 15) * 60_000,
}, async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'millrace-churn-'));
  const disk = path.join(folder, 'disk');
  mkdirSync(disk);
  const mounted = mountSmallDisk(disk, SMALL_DISK_MIB);
  onTestFinished(() => {
    if (mounted) unmount(disk);
    rmSync(folder, { recursive: true, force: true });
  });
  if (!mounted) console.log('no file system can be mounted here: the disk never gets full');
  const media = path.join(folder, 'source.flv');
  encodeSource(media, SOURCE_SECONDS);
  const [ingest = 0, egress = 0] = await freePorts(2);
  const diagnostics = path.join(folder, 'diagnostics');
  const preload = `--import ${path.join(import.meta.dirname, 'support/diagnostics.ts')}`;
  const server = await startServer({
    ...{ webrtc: {}, srt: { ingest, egress }, push: '', recordRoot: disk, segmentDuration: 1 },
    env: { NODE_OPTIONS: preload, MILLRACE_DIAGNOSTICS: diagnostics },
  });
  onTestFinished(() => server.close());
  const base = loop(media, '-f', 'flv', server.rtmp('base'));
  onTestFinished(async () => {
    await base.kill();
  });
  const stays = async (): Promise<boolean> => (await fetch(server.http('base', 'llhls.m3u8'), { headers: { connection: 'close' } })).ok;
  await until('the stream that stays', stays);

  const churn: Churn = { server, srt: { ingest, egress }, media, smallDisk: mounted ? disk : null };
  const samples: { readonly at: number; readonly figures: ProcessSample }[] = [];
  const begin = performance.now();
  for (let round = 0; round < MIN_ROUNDS || performance.now() - begin < MINUTES * 60_000; round += 1) {
    await Promise.all([rtmpAndItsViewers(churn), srtIn(churn), control(churn)]);
    await Promise.all([whipIn(churn), fullDisk(churn)]);
    signals(churn);
    expect(server.child.exit, server.log.slice(-4000)).toBeNull();
    expect(await stays()).toBe(true);
    await delay(REST_MS);
    samples.push({ at: (performance.now() - begin) / 1000, figures: await sampleProcess(server.pid, diagnostics) });
  }

  const names = [...new Set(samples.flatMap(({ figures }) => Object.keys(figures)))].sort();
  const rises = names.map((name) => {
    const series = samples.map(({ at, figures }) => ({ at, value: figures[name] ?? 0 }));
    return { name, rise: riseOf(laterHalf(series)), first: series[0]?.value ?? 0, last: series.at(-1)?.value ?? 0 };
  });
  console.log(`${samples.length} rounds in ${((performance.now() - begin) / 60_000).toFixed(1)} minutes`);
  for (const { name, rise, first, last } of rises)
    console.log(`${name}: ${first.toFixed(1)} → ${last.toFixed(1)}, ${rise.toFixed(1)} over the later half`);
  const kept = process.env['SOAK_RESULT'];
  if (kept !== undefined) writeFileSync(kept, `${JSON.stringify(samples, null, 1)}\n`);
  for (const { name, rise } of rises) {
    const most = MAX_RISE.find(([figure]) => figure.test(name))?.[1] ?? 0;
    expect(rise, `${name} over the later half`).toBeLessThanOrEqual(most);
  }
});
