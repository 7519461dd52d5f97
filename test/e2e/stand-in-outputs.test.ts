/** An encoder is killed, and a slate of another size stands in for it: recordings, pushes, relays and HLS continue, too. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { requireProgram } from '../../scripts/ensure-tools.ts';
import { apiPath } from '../harness/api-client.ts';
import { Child } from '../harness/child.ts';
import { until } from '../harness/poll.ts';
import { freePorts } from '../harness/ports.ts';
import { pushes, startPush } from '../harness/push.ts';
import type { RecordTask } from '../harness/recordings.ts';
import { startServer, type TestServer } from '../harness/server.ts';
import { shotsOf, watchColours } from '../harness/watched-colours.ts';

interface EdgeInformation {
  readonly input: { readonly createdTime: string; readonly sourceUrl: string };
}

const APP = apiPath.app('default', 'app');
const SHOTS = ['green', 'red', 'blue'];
/** SRT latency: later data of a busy machine is dropped. */
const LATENCY_MICROS = 2_000_000;
/** Size of a tape, more than the latency plus a second. */
const BYTES = 120_000;

let server: TestServer;
let edge: TestServer;
let folder: string;
let records: string;
let egress = 0;
const children: Child[] = [];

beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'millrace-stand-in-'));
  records = mkdtempSync(path.join(tmpdir(), 'millrace-stood-in-'));
  const [ovtPort = 0, ingest = 0, port = 0] = await freePorts(3);
  egress = port;
  const source = ['-f', 'lavfi', '-i', 'color=red:size=426x240:rate=25', '-f', 'lavfi', '-i', 'sine=frequency=880:sample_rate=44100'];
  const encode = ['-c:v', 'libx264', '-preset', 'veryfast', '-g', '25', '-pix_fmt', 'yuv420p', '-c:a', 'aac', '-threads', '1'];
  execFileSync(requireProgram('ffmpeg'), ['-v', 'error', ...source, '-t', '5', ...encode, path.join(folder, 'slate.mp4')]);
  // On a busy machine an encoder is silent at times, and viewers would see the slate; here only a lost connection counts.
  const standIn = `<StandIn><Url>file:///slate.mp4</Url><MediaRootDir>${folder}</MediaRootDir><AfterMs>0</AfterMs></StandIn>`;
  server = await startServer({
    ...{ segmentDuration: 1, ovtPort, recordRoot: records, push: '' },
    application: `<SourceLoss>${standIn}</SourceLoss>`,
  });
  edge = await startServer({ segmentDuration: 1, srt: { ingest, egress } });
  const urls = [`ovt://127.0.0.1:${ovtPort}/app/live`];
  publish('0x008000');
  await until('the stream', async () => (await fetch(server.http('live', 'llhls.m3u8'))).ok);
  await until('the relay', async () => (await edge.api.call('POST', `${APP}/streams`, { name: 'relayed', urls })).status === 201);
});

afterAll(async () => {
  await Promise.all(children.map((child) => child.kill()));
  await Promise.all([server?.close(), edge?.close()]);
  for (const each of [folder, records]) rmSync(each, { recursive: true, force: true });
});

function publish(colour: string): Child {
  const source = ['-f', 'lavfi', '-i', `color=${colour}:size=320x180:rate=30`, '-f', 'lavfi', '-i', 'sine=frequency=440:sample_rate=48000'];
  const encode = ['-c:v', 'libx264', '-preset', 'ultrafast', '-tune', 'zerolatency', '-g', '30', '-pix_fmt', 'yuv420p', '-c:a', 'aac'];
  return started(['-re', ...source, ...encode, '-f', 'flv', server.rtmp('live')]);
}

function started(args: readonly string[]): Child {
  const child = new Child(requireProgram('ffmpeg'), ['-v', 'error', '-nostdin', ...args]);
  children.push(child);
  return child;
}

/** ffmpeg that records the edge's output. */
function tape(stream: string): { readonly child: Child; readonly file: string } {
  const file = path.join(folder, `${stream}.ts`);
  const url = `srt://127.0.0.1:${egress}?streamid=${encodeURIComponent(`default/app/${stream}`)}&latency=${LATENCY_MICROS}`;
  return {
    child: started(['-copyts', '-i', url, '-map', '0:v:0', '-map', '0:a:0', '-c', 'copy', '-flush_packets', '1', '-f', 'mpegts', file]),
    file,
  };
}

const size = (file: string): number => statSync(file, { throwIfNoEntry: false })?.size ?? 0;

test('a recording, a push, an edge and HLS continue from the encoder to the slate and to the next encoder', async () => {
  await server.api.create(`${APP}:startRecord`, { id: 'r', stream: { name: 'live' }, filePath: '/${Sequence}.mp4', infoPath: '/r.xml' });
  await startPush(server.api, {
    id: 'p',
    stream: 'live',
    protocol: 'rtmp',
    url: `rtmp://127.0.0.1:${edge.ports.rtmp}/app`,
    streamKey: 'pushed',
  });
  for (const name of ['pushed', 'relayed']) await until(name, async () => (await fetch(edge.http(name, 'llhls.m3u8'))).ok);
  const tapes = ['pushed', 'relayed'].map(tape);
  const more = async (): Promise<void> => {
    const from = tapes.map(({ file }) => size(file));
    await until('more on both tapes', () => tapes.every(({ file }, index) => size(file) > (from[index] ?? 0) + BYTES), {
      deadlineMs: 30_000,
    });
  };
  await more();
  const inputs = async () =>
    await Promise.all(
      ['pushed', 'relayed'].map(async (name) => {
        const { createdTime, sourceUrl } = (await edge.api.get<EdgeInformation>(apiPath.stream(name))).input;
        expect(createdTime).toMatch(/^20/);
        return { createdTime, sourceUrl };
      }),
    );
  const before = await inputs();
  const master = await (await fetch(server.http('live', 'ts:playlist.m3u8'))).text();
  const media = new URL(master.split('\n').find((line) => line !== '' && !line.startsWith('#')) ?? '', server.http('live', 'x')).href;
  const viewed = await (await fetch(media)).text();

  await children[0]?.kill();
  await until('the slate', () => server.log.includes('the encoder left, stand-in'));
  await more();
  publish('blue');
  await until('the return of an encoder', () => server.log.includes('the encoder is back'));
  await more();

  // Neither input was restarted.
  expect(await inputs()).toEqual(before);
  expect(await pushes(server.api)).toMatchObject([{ id: 'p', state: 'pushing' }]);
  const [task] = await server.api.get<RecordTask[]>(`${APP}:records`);
  expect(task).toMatchObject({ id: 'r', state: 'recording' });
  const sequence = (text: string): number => Number(/MEDIA-SEQUENCE:(\d+)/.exec(text)?.[1]);
  const later = await until('both discontinuities', async () => {
    const text = await (await fetch(media)).text();
    const seen = Number(/DISCONTINUITY-SEQUENCE:(\d+)/.exec(text)?.[1] ?? 0) + [...text.matchAll(/DISCONTINUITY\n/g)].length;
    return seen >= 2 ? text : null;
  });
  expect(sequence(later)).toBeGreaterThanOrEqual(sequence(viewed));

  for (const { child, file } of tapes) {
    expect(child.exit).toBeNull();
    await child.stop('SIGINT');
    expect(shotsOf((await watchColours(file, 60)).frames).map(({ colour }) => colour)).toEqual(SHOTS);
  }
  await server.api.create(`${APP}:stopRecord`, { id: 'r' });
  const files = () =>
    readdirSync(records)
      .filter((name) => name.endsWith('.mp4'))
      .sort();
  await until('the recording', () => files().length > 0 && !files().some((name) => name.startsWith('tmp_')));
  const colours: string[] = [];
  for (const file of files())
    colours.push(...shotsOf((await watchColours(path.join(records, file), 60)).frames).map(({ colour }) => colour));
  // A change of tracks begins a new file, for video and audio separately.
  expect(colours.filter((colour, index) => colour !== colours[index - 1])).toEqual(SHOTS);
}, 120_000);
