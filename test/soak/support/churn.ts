/** One round of clients that come and go at a busy server. Each part ends everything it started. */
import { execFileSync } from 'node:child_process';
import { closeSync, openSync, readdirSync, rmSync, writeSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { watch } from '../../../bench/lib/webrtc-watch.ts';
import { requireProgram } from '../../../scripts/ensure-tools.ts';
import { WebrtcViewer } from '../../fakes/webrtc-viewer.ts';
import { apiPath } from '../../harness/api-client.ts';
import { Child } from '../../harness/child.ts';
import { until } from '../../harness/poll.ts';
import type { TestServer } from '../../harness/server.ts';
import { publishWhip } from '../../harness/whip-encoder.ts';
import { childrenOf, handlesSignal } from './process-sample.ts';

/** The server and tools of a round. */
export interface Churn {
  readonly server: TestServer;
  readonly srt: { readonly ingest: number; readonly egress: number };
  /** A short FLV file with video and audio. */
  readonly media: string;
  /** File system for recordings that can be filled; null where none could be mounted. */
  readonly smallDisk: string | null;
}

const DEADLINE = { deadlineMs: 60_000, everyMs: 200 } as const;
const SIGHUP = 1;
const WATCH_MS = 2500;
const APP = '/v1/vhosts/default/apps/app';
const ORIGIN_NAME = `\${OriginStreamName}`;
const ENCODED = {
  name: 'encoded',
  outputStreamName: ORIGIN_NAME,
  encodes: {
    videos: [{ name: 'low', codec: 'h264', bitrate: 100_000, width: 160, height: 90, framerate: 15 }],
    audios: [{ name: 'opus', codec: 'opus', bitrate: 64_000 }],
  },
};

/** Sends a file in a loop; the caller stops it. */
export function loop(media: string, ...output: readonly string[]): Child {
  const input = ['-v', 'error', '-nostdin', '-re', '-stream_loop', '-1', '-i', media, '-c', 'copy'];
  return new Child(requireProgram('ffmpeg'), [...input, ...output], { name: `ffmpeg ${output.at(-1)}` });
}

async function live(server: TestServer, stream: string, app = 'app', vhost = 'default'): Promise<void> {
  await until(
    `stream ${vhost}/${app}/${stream}`,
    async () => (await server.api.call('GET', apiPath.stream(stream, app, vhost))).status === 200,
    DEADLINE,
  );
}

async function gone(server: TestServer, stream: string): Promise<void> {
  await until(`the end of ${stream}`, async () => (await server.api.call('GET', apiPath.stream(stream))).status === 404, DEADLINE);
}

/** Any answer of the API is accepted, except a server error. */
async function ask(server: TestServer, method: string, place: string, body?: unknown): Promise<void> {
  const { status, body: told } = await server.api.call(method, place, body);
  if (status === 500) throw new Error(`${method} ${place} answered 500: ${JSON.stringify(told)}`);
}

/** RTMP in; LL-HLS, HLS, WebRTC and SRT out; a recording, a push to this server; the encoder is killed. */
export async function rtmpAndItsViewers({ server, srt, media }: Churn): Promise<void> {
  const encoder = loop(media, '-f', 'flv', server.rtmp('came'));
  const viewer = new WebrtcViewer();
  try {
    await live(server, 'came');
    await server.api.create(`${APP}:startRecord`, { id: 'r', stream: { name: 'came' } });
    const push = {
      id: 'p',
      stream: { name: 'came' },
      protocol: 'rtmp',
      url: `rtmp://127.0.0.1:${server.ports.rtmp}/app`,
      streamKey: 'pushed',
    };
    await server.api.create(`${APP}:startPush`, push);
    await live(server, 'pushed');
    const { socket } = await watch(server.http('came', '').replace('http', 'ws').replace(/\/$/, ''), viewer);
    const player = new Child(requireProgram('ffmpeg'), [
      ...['-v', 'error', '-nostdin', '-i', `srt://127.0.0.1:${srt.egress}?streamid=default/app/came/playlist`],
      ...['-t', '2', '-f', 'null', '-'],
    ]);
    await Promise.all([playlists(server, 'came', 'llhls.m3u8'), playlists(server, 'came', 'ts:playlist.m3u8'), delay(WATCH_MS)]);
    if (viewer.received === 0) throw new Error('the WebRTC viewer got nothing');
    await player.kill();
    await ask(server, 'POST', `${APP}:stopPush`, { id: 'p' });
    await ask(server, 'POST', `${APP}:stopRecord`, { id: 'r' });
    socket.close();
  } finally {
    viewer.close();
    await encoder.kill();
  }
  await gone(server, 'came');
  await gone(server, 'pushed');
}

/** Reads a multivariant playlist and everything in it repeatedly, as players do. */
async function playlists(server: TestServer, stream: string, file: string): Promise<void> {
  const begin = server.http(stream, file);
  const text = await until(file, async () => await textOf(begin), DEADLINE);
  const uris = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  for (let round = 0; round < 3; round += 1) {
    for (const uri of uris) {
      const place = new URL(uri, begin);
      const inner = (await textOf(place)) ?? '';
      const last = inner.split('\n').findLast((line) => line !== '' && !line.startsWith('#'));
      if (last !== undefined) await textOf(new URL(last, place));
    }
  }
}

async function textOf(url: string | URL): Promise<string | null> {
  const answer = await fetch(url, { headers: { connection: 'close' } });
  const text = await answer.text();
  return answer.status === 200 ? text : null;
}

/** SRT in; its encoder dies silently. */
export async function srtIn({ server, srt, media }: Churn): Promise<void> {
  const encoder = loop(media, '-f', 'mpegts', `srt://127.0.0.1:${srt.ingest}?streamid=default/app/carried`);
  try {
    await live(server, 'carried');
    await delay(WATCH_MS);
  } finally {
    await encoder.kill();
  }
  await gone(server, 'carried');
}

/** WHIP by a foreign WebRTC stack, ended by DELETE. */
export async function whipIn({ server }: Churn): Promise<void> {
  const encoder = await publishWhip({ url: `${server.http('whipped', '')}?direction=whip`.replace('/?', '?'), fps: 15 });
  try {
    await live(server, 'whipped');
    await delay(WATCH_MS);
    await fetch(encoder.location, { method: 'DELETE' });
  } finally {
    await encoder.close();
  }
  await gone(server, 'whipped');
}

/** Virtual hosts, applications and pulls of all kinds come and go; a transcoder process dies in between. */
export async function control({ server, media }: Churn): Promise<void> {
  await server.api.create('/v1/vhosts', [{ name: 'churn', host: { names: ['localhost'] } }]);
  const publishers = { llhls: { segmentDuration: 1 }, hls: {}, webrtc: {}, thumbnail: {} };
  const application = { name: 'made', type: 'live', providers: { rtmp: {}, rtspPull: {}, ovt: {} }, publishers };
  await server.api.create('/v1/vhosts/churn/apps', [{ ...application, outputProfiles: { outputProfile: [ENCODED] } }]);
  for (const url of ['rtsp://127.0.0.1:1/x', 'ovt://127.0.0.1:1/app/x']) {
    await ask(server, 'POST', `${APP}/streams`, { name: 'nowhere', urls: [url], properties: { persistent: true } });
    await ask(server, 'DELETE', `${APP}/streams/nowhere`);
  }
  const encoder = loop(media, '-f', 'flv', server.rtmp('encoded', 'made', 'localhost'));
  try {
    await live(server, 'encoded', 'made', 'churn');
    const plays = async (): Promise<boolean> => (await textOf(server.http('encoded', 'llhls.m3u8', 'made', 'localhost'))) !== null;
    await until('the encoded stream', plays, DEADLINE);
    for (const pid of childrenOf(server.pid)) process.kill(pid, 'SIGKILL');
    await until('another transcoder', () => childrenOf(server.pid).length > 0, DEADLINE);
    await delay(WATCH_MS);
  } finally {
    await encoder.kill();
  }
  await ask(server, 'DELETE', '/v1/vhosts/churn/apps/made');
  await ask(server, 'DELETE', '/v1/vhosts/churn');
}

/** Another program fills the disk during a recording; then there is room again. */
export async function fullDisk({ server, media, smallDisk }: Churn): Promise<void> {
  if (smallDisk === null) return;
  const filler = path.join(smallDisk, 'filler');
  const encoder = loop(media, '-f', 'flv', server.rtmp('filling'));
  try {
    await live(server, 'filling');
    await server.api.create(`${APP}:startRecord`, { id: 'full', stream: { name: 'filling' } });
    await delay(WATCH_MS / 2);
    fill(filler);
    await delay(WATCH_MS);
    rmSync(filler, { force: true });
    await ask(server, 'POST', `${APP}:stopRecord`, { id: 'full' });
  } finally {
    rmSync(filler, { force: true });
    await encoder.kill();
  }
  await gone(server, 'filling');
  for (const name of readdirSync(smallDisk)) rmSync(path.join(smallDisk, name), { recursive: true, force: true });
}

function fill(file: string): void {
  const descriptor = openSync(file, 'w');
  const block = Buffer.alloc(65_536);
  try {
    for (;;) writeSync(descriptor, block);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
  } finally {
    closeSync(descriptor);
  }
}

/** Sends signals that a running server handles. Without a handler, a signal would end the server. */
export function signals({ server }: Churn): void {
  if (handlesSignal(server.pid, SIGHUP)) process.kill(server.pid, 'SIGHUP');
}

/** Mounts a file system of `mib` MiB at `folder`; false where this process may not mount. */
export function mountSmallDisk(folder: string, mib: number): boolean {
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${mib}m`, 'tmpfs', folder], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

/** Unmounts it. */
export function unmount(folder: string): void {
  execFileSync('umount', ['-l', folder], { stdio: 'ignore' });
}
