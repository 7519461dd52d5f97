/** An encoder is killed, a slate stands in for it, another encoder comes: three kinds of players stay and see no gap. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { requireProgram } from '../../scripts/ensure-tools.ts';
import { apiPath, type StreamInformation } from '../harness/api-client.ts';
import { openBrowser, type PlayerBrowser } from '../harness/browser.ts';
import { Child } from '../harness/child.ts';
import { until } from '../harness/poll.ts';
import { freePorts } from '../harness/ports.ts';
import { startServer, type TestServer } from '../harness/server.ts';
import { longestGap, shotsOf, watchColours } from '../harness/watched-colours.ts';
import { coloursOf, framesOf, longestFrame, longestHole, longestWait, watchFrames } from '../harness/watched-frames.ts';
import { openWebrtcBrowser, type WebrtcBrowser } from '../harness/webrtc-browser.ts';

/** Largest gap for viewers, seconds. */
const HOLE = 0.1;
/** Largest time between two frames on the screen of a busy machine, which skips some, seconds: beyond it the player has stopped. */
const BUSY = 1.5;
/** SRT latency: later data of a busy machine is dropped, which is no gap of the stream. */
const LATENCY_MICROS = 2_000_000;
/**
 * On a busy machine an encoder is silent for longer than the default, and viewers would see the slate; here only a lost connection counts.
 */
const AFTER_MS = 0;

let server: TestServer;
let folder: string;
let browser: PlayerBrowser;
let webrtc: WebrtcBrowser;
let ingest = 0;
let egress = 0;
const children: Child[] = [];

beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'millrace-stand-in-'));
  [ingest = 0, egress = 0] = await freePorts(2);
  // Size, frame rate and sample rate differ from the encoders'; without B-frames because of WebRTC viewers.
  const source = ['-f', 'lavfi', '-i', 'color=red:size=426x240:rate=25', '-f', 'lavfi', '-i', 'sine=frequency=880:sample_rate=44100'];
  const encode = ['-c:v', 'libx264', '-preset', 'veryfast', '-bf', '0', '-g', '50', '-pix_fmt', 'yuv420p', '-c:a', 'aac', '-threads', '1'];
  ffmpeg([...source, '-t', '5', ...encode, path.join(folder, 'slate.mp4')]);
  const standIn = `<StandIn><Url>file:///slate.mp4</Url><MediaRootDir>${folder}</MediaRootDir><AfterMs>${AFTER_MS}</AfterMs></StandIn>`;
  server = await startServer({
    segmentDuration: 1,
    segmentCount: 10,
    webrtc: {},
    srt: { ingest, egress },
    application: `<SourceLoss>${standIn}</SourceLoss>`,
  });
  browser = await openBrowser();
  webrtc = await openWebrtcBrowser();
});

afterAll(async () => {
  await Promise.all([browser?.close(), webrtc?.close(), ...children.map((child) => child.kill())]);
  await server?.close();
  rmSync(folder, { recursive: true, force: true });
});

function ffmpeg(command: readonly string[]): void {
  execFileSync(requireProgram('ffmpeg'), ['-v', 'error', ...command]);
}

/** Starts an encoder that sends frames of one colour until it is killed. */
function publish(colour: string, output: readonly string[]): Child {
  const source = ['-f', 'lavfi', '-i', `color=${colour}:size=320x180:rate=30`, '-f', 'lavfi', '-i', 'sine=frequency=440:sample_rate=48000'];
  const encode = ['-c:v', 'libx264', '-preset', 'ultrafast', '-tune', 'zerolatency', '-g', '30', '-pix_fmt', 'yuv420p', '-c:a', 'aac'];
  const child = new Child(requireProgram('ffmpeg'), ['-v', 'error', '-nostdin', '-re', ...source, ...encode, ...output]);
  children.push(child);
  return child;
}

/** ffmpeg that records the SRT output. */
function record(stream: string, file: string): Child {
  const url = `srt://127.0.0.1:${egress}?streamid=${encodeURIComponent(stream)}&latency=${LATENCY_MICROS}`;
  const output = ['-map', '0:v:0', '-map', '0:a:0', '-c', 'copy', '-flush_packets', '1', '-f', 'mpegts', file];
  const child = new Child(requireProgram('ffmpeg'), ['-v', 'warning', '-nostdin', '-copyts', '-i', url, ...output]);
  children.push(child);
  return child;
}

function size(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0;
}

async function input(): Promise<StreamInformation['input']> {
  return (await server.api.get<StreamInformation>(apiPath.stream('live'))).input;
}

/** Largest distance between packets of each kind, seconds. */
function packetGaps(file: string): { readonly video: number; readonly audio: number } {
  const gap = (kind: string): number => {
    const entries = ['-select_streams', `${kind}:0`, '-show_entries', 'packet=pts_time', '-of', 'csv=p=0', file];
    const text = execFileSync(requireProgram('ffprobe'), ['-v', 'error', ...entries], { encoding: 'utf8' });
    const times = [...text.matchAll(/^[\d.]+/gm)].map(([at]) => Number(at)).sort((a, b) => a - b);
    return Math.max(...times.slice(1).map((at, index) => at - (times[index] ?? at)));
  };
  return { video: gap('v'), audio: gap('a') };
}

test('a slate with other codecs, and a stream of this server, are ready when the encoder is lost', async () => {
  const source = ['-f', 'lavfi', '-i', 'color=red:size=320x180:rate=25', '-f', 'lavfi', '-i', 'sine=frequency=880:sample_rate=48000'];
  const encode = [
    '-c:v',
    'libx265',
    '-x265-params',
    'log-level=none',
    '-preset',
    'ultrafast',
    '-g',
    '50',
    '-pix_fmt',
    'yuv420p',
    '-tag:v',
    'hvc1',
  ];
  ffmpeg([...source, '-t', '30', ...encode, '-c:a', 'libopus', '-threads', '1', path.join(folder, 'other.mp4')]);
  await server.api.create('/v1/vhosts', [{ name: 'second', host: { names: ['localhost'] } }]);
  const encodes = { videos: [{ name: 'v', bypass: true }], audios: [{ name: 'a', bypass: true }] };
  const made = (name: string, standIn: object) => ({
    ...{
      name,
      type: 'live',
      providers: { rtmp: {} },
      publishers: { srt: {}, llhls: { chunkDuration: 0.5, segmentDuration: 1, segmentCount: 10 } },
    },
    ...{
      outputProfiles: { outputProfile: [{ name, outputStreamName: `\${OriginStreamName}`, encodes }] },
      sourceLoss: { standIn: [standIn] },
    },
  });
  await server.api.create(`${apiPath.vhost('second')}/apps`, [
    made('film', { url: 'file:///other.mp4', mediaRootDir: folder, afterMs: AFTER_MS }),
    made('other', { url: 'stream://default/app/backup', afterMs: AFTER_MS }),
  ]);
  publish('red', ['-f', 'flv', server.rtmp('backup')]);
  await until('the stream that stands in', async () => (await fetch(server.http('backup', 'llhls.m3u8'))).ok);
  for (const app of ['film', 'other']) {
    const encoder = publish('0x008000', ['-f', 'flv', server.rtmp('live', app, 'localhost')]);
    await until(`the stream of '${app}'`, async () => (await fetch(server.http('live', 'llhls.m3u8', app, 'localhost'))).ok);
    const tape = path.join(folder, `${app}.ts`);
    const viewer = record(`second/${app}/live`, tape);
    await until('a few seconds of the encoder', () => size(tape) > 150_000);
    await encoder.kill();
    const lostAt = size(tape);
    await until('a few seconds of the slate', () => size(tape) > lostAt + 150_000);
    publish('blue', ['-f', 'flv', server.rtmp('live', app, 'localhost')]);
    await until('the return of an encoder', () => server.log.split('the encoder is back').length > (app === 'film' ? 1 : 2));
    const backAt = size(tape);
    await until('a few seconds of the returned encoder', () => size(tape) > backAt + 150_000);
    expect(viewer.exit).toBeNull();
    await viewer.stop('SIGINT');
    const { frames } = await watchColours(tape, 60);
    expect(shotsOf(frames).map(({ colour }) => colour)).toEqual(['green', 'red', 'blue']);
    expect(longestGap(frames)).toBeLessThan(HOLE);
    const gaps = packetGaps(tape);
    expect([gaps.video < HOLE, gaps.audio < HOLE], JSON.stringify(gaps)).toEqual([true, true]);
  }
}, 180_000);

test('hls.js, OvenPlayer and ffmpeg over SRT continue from a killed encoder to the slate and to the next encoder', async () => {
  const first = publish('0x008000', ['-f', 'flv', server.rtmp('live')]);
  const url = server.http('live', 'llhls.m3u8');
  await until('the stream to be playable', async () => (await fetch(url)).ok);
  const hls = await browser.play(url);
  await hls.played(3, 30_000);
  const oven = await webrtc.open();
  await oven.ovenPlayer(`ws://127.0.0.1:${server.ports.http}/app/live`);
  await oven.decoded(30);
  const tape = path.join(folder, 'tape.ts');
  const streamId = encodeURIComponent('default/app/live');
  const viewer = record('default/app/live', tape);
  await Promise.all([watchFrames(hls.page), watchFrames(oven.page)]);
  const has = async (colour: string, seconds: number) =>
    await until(
      `${seconds} s of ${colour} on both pages`,
      async () => {
        const seen = await Promise.all([framesOf(hls.page), framesOf(oven.page)]);
        return seen.every((frames) => {
          const own = frames.filter((frame) => coloursOf([frame])[0] === colour);
          return own.length > 0 && own.at(-1)!.seen - own[0]!.seen >= seconds;
        });
      },
      { deadlineMs: 40_000, everyMs: 200 },
    );
  await has('green', 3);
  const encoderUrl = (await input()).sourceUrl;

  await first.kill();
  // Longer than the slate.
  await has('red', 7);
  expect(await input()).toMatchObject({ sourceType: 'File', sourceUrl: 'file:///slate.mp4' });
  expect(server.log).toContain('the encoder left, stand-in file:///slate.mp4');
  publish('blue', ['-f', 'mpegts', `srt://127.0.0.1:${ingest}?streamid=${streamId}&latency=${LATENCY_MICROS}`]);
  await has('blue', 3);
  expect(server.log).toMatch(/the encoder is back after \d+\.\d s/);
  const now = await input();
  expect(now).toMatchObject({ sourceType: 'SRT' });
  expect(now.sourceUrl).not.toBe(encoderUrl);

  const after = await hls.state();
  expect([after.restarts, after.errors.filter((error) => error.includes('fatal'))]).toEqual([0, []]);
  const shown = await framesOf(hls.page);
  expect(coloursOf(shown)).toEqual(['green', 'red', 'blue']);
  expect(longestFrame(shown)).toBeLessThan(BUSY);
  expect(longestWait(shown)).toBeLessThan(BUSY);
  // The received media has no gap, however slowly it is shown.
  expect(await longestHole(hls.page)).toBeLessThan(HOLE);

  const peer = await oven.stats();
  expect([peer.connection, peer.errors, await oven.page.evaluate('state.connections.length')]).toEqual(['connected', [], 1]);
  const live = await framesOf(oven.page);
  expect(coloursOf(live)).toEqual(['green', 'red', 'blue']);
  expect(longestFrame(live)).toBeLessThan(BUSY);
  expect(longestWait(live)).toBeLessThan(BUSY);

  expect(viewer.exit).toBeNull();
  await viewer.stop('SIGINT');
  const { frames } = await watchColours(tape, 60);
  expect(shotsOf(frames).map(({ colour }) => colour)).toEqual(['green', 'red', 'blue']);
  expect(longestGap(frames)).toBeLessThan(HOLE);
  const gaps = packetGaps(tape);
  expect([gaps.video < HOLE, gaps.audio < HOLE], JSON.stringify(gaps)).toEqual([true, true]);

  // A stand-in does not keep a deleted stream.
  expect((await server.api.call('DELETE', apiPath.stream('live'))).status).toBe(200);
  expect((await server.api.call('GET', apiPath.stream('live'))).status).toBe(404);
}, 180_000);
