/** Recordings over HTTP: files with ranges and as HLS, by ffprobe and by hand; access, and files that are never served or removed. */
import { execFile } from 'node:child_process';
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { requireProgram } from '../../scripts/ensure-tools.ts';
import { apiPath } from '../harness/api-client.ts';
import { openBrowser, type PlayerBrowser } from '../harness/browser.ts';
import { until } from '../harness/poll.ts';
import { type FfmpegPublisher, publish } from '../harness/publisher.ts';
import { runCommand, startServer, type TestServer } from '../harness/server.ts';

const APP = apiPath.app('default', 'app');
const RECORDINGS = '/v2/vhosts/default/apps/app/recordings';
const READER = 'may-read';
const FPS = 30;
const SECONDS = 14;
const run = promisify(execFile);

interface Listed {
  readonly id: string;
  readonly stream: string;
  readonly task: string;
  readonly container: 'mp4' | 'ts';
  readonly bytes: number;
  readonly durationMs: number;
  readonly startTime: string;
  readonly endTime: string;
  readonly file: string;
  readonly playlist: string;
}

interface Answer {
  readonly recordings: readonly Listed[];
  readonly playlist?: string;
  readonly more: boolean;
}

let server: TestServer;
let encoder: FfmpegPublisher;
let second: FfmpegPublisher;
let browser: PlayerBrowser;
const folder = mkdtempSync(path.join(tmpdir(), 'millrace-watch-'));

const list = async (query = ''): Promise<Answer> => await server.api.get<Answer>(`${RECORDINGS}${query}`);
const get = async (target: string, headers: Record<string, string> = {}): Promise<Response> =>
  await fetch(`${server.api.base}${target}`, { headers });

async function one(task: string): Promise<Listed> {
  const { recordings } = await list();
  const found = recordings.filter((recording) => recording.task === task);
  expect(found).toHaveLength(1);
  return found[0] as Listed;
}

/** ffprobe's count for a URL. */
async function framesOf(target: string): Promise<{ readonly video: number; readonly seconds: number; readonly types: readonly string[] }> {
  const args = ['-v', 'error', '-count_packets', '-show_entries', 'stream=codec_type,nb_read_packets:format=duration', '-of', 'json'];
  const { stdout } = await run(requireProgram('ffprobe'), [...args, `${server.api.base}${target}`]);
  const { streams, format } = JSON.parse(stdout) as {
    streams: { codec_type: string; nb_read_packets: string }[];
    format: { duration: string };
  };
  const video = streams.find(({ codec_type }) => codec_type === 'video');
  return {
    video: Number(video?.nb_read_packets),
    seconds: Number(format.duration),
    types: streams.map(({ codec_type }) => codec_type).sort(),
  };
}

beforeAll(async () => {
  const reader = `<Token><Name>reader</Name><Value>${READER}</Value></Token>`;
  server = await startServer({ recordRoot: path.join(folder, 'root'), accessTokens: reader, apiOrigins: ['*'] });
  browser = await openBrowser();
  encoder = publish({ url: server.rtmp('live'), width: 320, height: 180, gop: 2 * FPS });
  second = publish({ url: server.rtmp('second'), width: 320, height: 180, gop: FPS });
  const start = (id: string, more: object): Promise<void> =>
    server.api.create(`${APP}:startRecord`, { id, stream: { name: 'live' }, ...more });
  await encoder.sent(FPS);
  await start('movie', { filePath: '/movie.mp4' });
  await start('transport', { filePath: '/transport.ts' });
  await start('split', { stream: { name: 'second' }, filePath: `/split-\${Sequence}.mp4`, interval: 4000 });
  await encoder.sent(SECONDS * FPS, 60_000);
  await start('running', { filePath: '/running.mp4' });
  for (const id of ['movie', 'transport', 'split']) await server.api.create(`${APP}:stopRecord`, { id });
  const listed = async (): Promise<boolean> => {
    const names = readdirSync(path.join(folder, 'root')).filter((name) => /\.(mp4|ts)$/.test(name));
    const { recordings } = await list();
    const recorded = names.filter((name) => name.startsWith('tmp_'));
    // One file is still being recorded. Before its first keyframe, the last unfinished file may be another.
    return (
      names.length > 5 &&
      recordings.length === names.length - 1 &&
      recorded.length === 1 &&
      recorded[0]?.startsWith('tmp_running_') === true
    );
  };
  await until('all files', listed, { deadlineMs: 20_000 });
}, 120_000);

afterAll(async () => {
  await browser?.close();
  await second?.stop();
  await encoder?.stop();
  await server?.close();
  rmSync(folder, { recursive: true, force: true });
});

test.each(['movie', 'transport'])('%s plays whole, as a file and in pieces', { timeout: 60_000 }, async (task) => {
  const recording = await one(task);
  expect(recording.stream).toBe('live');
  expect(recording.durationMs).toBeGreaterThan((SECONDS - 4) * 1000);
  const file = await framesOf(recording.file);
  const pieces = await framesOf(recording.playlist);
  expect(file.types).toEqual(['audio', 'video']);
  expect(pieces.types).toEqual(file.types);
  expect(pieces.video).toBe(file.video);
  expect(pieces.video).toBeGreaterThan((SECONDS - 4) * FPS);
  expect(pieces.seconds).toBeCloseTo(recording.durationMs / 1000, 0);
  const text = await (await get(recording.playlist)).text();
  const durations = [...text.matchAll(/^#EXTINF:([\d.]+),$/gm)].map(([, seconds]) => Number(seconds));
  expect(durations.length).toBeGreaterThanOrEqual(2);
  // Pieces are cut at keyframes, which come every two seconds.
  for (const seconds of durations.slice(0, -1)) expect(seconds).toBeCloseTo(4, 1);
  expect(text).toMatch(/^#EXT-X-PLAYLIST-TYPE:VOD$/m);
  expect(text.endsWith('#EXT-X-ENDLIST\n')).toBe(true);
});

test('each piece begins with a keyframe, and all of them are the file', { timeout: 60_000 }, async () => {
  for (const task of ['movie', 'transport']) {
    const recording = await one(task);
    const text = await (await get(recording.playlist)).text();
    const ranges = [...text.matchAll(/^#EXT-X-BYTERANGE:(\d+)@(\d+)$/gm)].map(([, length, offset]) => ({
      length: Number(length),
      offset: Number(offset),
    }));
    const whole = Buffer.from(await (await get(recording.file)).arrayBuffer());
    expect(whole.length).toBe(recording.bytes);
    const init = task === 'movie' ? Buffer.from(await (await get(/URI="([^"]+)"/.exec(text)?.[1] ?? '')).arrayBuffer()) : Buffer.alloc(0);
    let end = ranges[0]?.offset ?? 0;
    for (const { offset, length } of ranges) {
      expect(offset).toBe(end);
      end = offset + length;
      const piece = path.join(folder, 'piece');
      writeFileSync(piece, Buffer.concat([init, whole.subarray(offset, end)]));
      const args = ['-v', 'error', '-select_streams', 'v', '-show_entries', 'packet=flags', '-of', 'csv=p=0', piece];
      const { stdout } = await run(requireProgram('ffprobe'), args);
      expect(stdout.slice(0, 1)).toBe('K');
    }
  }
});

test('the files of a span play in sequence', { timeout: 60_000 }, async () => {
  const { recordings, playlist = '' } = await list('?stream=second');
  expect(recordings.length).toBeGreaterThanOrEqual(3);
  expect(recordings.map(({ task }) => task)).toEqual(recordings.map(() => 'split'));
  const [first, middle] = recordings;
  const text = await (await get(playlist)).text();
  expect(text.match(/^#EXT-X-DISCONTINUITY$/gm)).toHaveLength(recordings.length - 1);
  const piecesOf = (playlistText: string): string[] =>
    [...playlistText.matchAll(/^#EXTINF:.*\n#EXT-X-BYTERANGE:.*\n[^?]*/gm)].map(([piece]) => piece);
  const own = await Promise.all(recordings.map(async ({ playlist: of }) => piecesOf(await (await get(of)).text())));
  expect(piecesOf(text)).toEqual(own.flat());
  let frames = 0;
  for (const { file } of recordings) frames += (await framesOf(file)).video;
  expect((await framesOf(playlist)).video).toBe(frames);
  // A span within the second file.
  const within = await list(
    `?stream=second&from=${Date.parse(middle?.startTime ?? '') + 500}&to=${Date.parse(middle?.endTime ?? '') - 500}`,
  );
  expect(within.recordings.map(({ id }) => id)).toEqual([middle?.id]);
  expect((await framesOf(within.playlist ?? '')).video).toBe((await framesOf(middle?.file ?? '')).video);
  // A token of one span is invalid for another.
  expect((await get((within.playlist ?? '').replace(/from=\d+/, 'from=1'))).status).toBe(403);
  const mixed = await list('?stream=live');
  expect([(await get(mixed.playlist ?? '')).status, mixed.recordings.map(({ task }) => task).sort()]).toEqual([
    400,
    ['movie', 'transport'],
  ]);
  expect((await list('?stream=other')).recordings).toEqual([]);
  expect((await list(`?to=${Date.parse(first?.startTime ?? '') - 60_000}`)).recordings).toEqual([]);
});

test.each(['movie', 'transport', 'split'])('%s plays in hls.js', { timeout: 60_000 }, async (task) => {
  const playlist = task === 'split' ? (await list('?stream=second')).playlist : (await one(task)).playlist;
  const player = await browser.play(`${server.api.base}${playlist}`, 1);
  // Across the boundaries of pieces and files.
  const { errors, restarts } = await player.played(9, 40_000);
  expect({ errors, restarts }).toEqual({ errors: [], restarts: 0 });
  await player.page.close();
});

test('millrace ctl lists recordings with URLs that play without further credentials', async () => {
  const recorded = (...args: string[]) => {
    const place = ['--config', server.config, '--state', server.state];
    return runCommand(['ctl', 'recorded', ...args, ...place]);
  };
  const told = await recorded('default/app/second', '--json');
  expect([told.code, told.stderr]).toEqual([0, '']);
  const rows = JSON.parse(told.stdout) as (Listed & { vhost: string; app: string })[];
  expect(rows.map(({ id }) => id)).toEqual((await list('?stream=second')).recordings.map(({ id }) => id));
  expect(rows[0]).toMatchObject({ vhost: 'default', app: 'app', stream: 'second', task: 'split' });
  expect((await fetch(rows[0]?.file ?? '', { headers: { range: 'bytes=0-9' } })).status).toBe(206);
  const one = await recorded('default/app/second', '--url', '--to', rows[1]?.startTime ?? '');
  expect(await (await fetch(one.stdout.trim())).text()).toContain('#EXT-X-ENDLIST');
  expect(await recorded('default/app/second', '--url', '--to', '2026-01-01')).toMatchObject({
    ...{ code: 1, stdout: '', stderr: 'millrace ctl: no recordings in that time\n' },
  });
  expect((await recorded('default')).stdout).toMatch(/^default\/app\/live +movie +\d{4}-\S+ +\d+\.\d +\d.* http:\S+$/m);
  expect((await recorded('default/app', '--url')).code).toBe(2);
});

test('byte ranges are those of the file', async () => {
  const { file, bytes } = await one('movie');
  const whole = Buffer.from(await (await get(file)).arrayBuffer());
  const part = async (range: string): Promise<[number, string | null, Buffer]> => {
    const answer = await get(file, { range });
    return [answer.status, answer.headers.get('content-range'), Buffer.from(await answer.arrayBuffer())];
  };
  expect(await part('bytes=10-19')).toEqual([206, `bytes 10-19/${bytes}`, whole.subarray(10, 20)]);
  expect(await part(`bytes=${bytes - 5}-`)).toEqual([206, `bytes ${bytes - 5}-${bytes - 1}/${bytes}`, whole.subarray(-5)]);
  expect(await part('bytes=-7')).toEqual([206, `bytes ${bytes - 7}-${bytes - 1}/${bytes}`, whole.subarray(-7)]);
  expect((await part(`bytes=0-${bytes * 2}`)).slice(0, 2)).toEqual([206, `bytes 0-${bytes - 1}/${bytes}`]);
  for (const outside of [`bytes=${bytes}-`, 'bytes=-0', 'bytes=99999999999999999999-'])
    expect((await part(outside)).slice(0, 2)).toEqual([416, `bytes */${bytes}`]);
  for (const odd of ['bytes=5-2', 'bytes=a-b', 'bytes=0-1,4-5', 'items=0-1', 'bytes=-', 'bytes=']) expect((await part(odd))[0]).toBe(200);
  const head = await fetch(`${server.api.base}${file}`, { method: 'HEAD' });
  expect([head.status, head.headers.get('content-length'), head.headers.get('accept-ranges')]).toEqual([200, String(bytes), 'bytes']);
});

test('recordings need a token, which is valid for one recording and a limited time', async () => {
  const { file, id } = await one('movie');
  const other = await one('transport');
  const [bare = ''] = file.split('?');
  const token = /token=(.*)$/.exec(file)?.[1] ?? '';
  const status = async (target: string, headers = {}): Promise<number> => (await get(target, headers)).status;
  expect(await status(bare)).toBe(401);
  expect(await status(bare, { authorization: server.api.authorization })).toBe(200);
  expect(await status(`${other.file.split('?')[0]}?token=${token}`)).toBe(403);
  expect(await status(`${bare}?token=`)).toBe(403);
  expect(await status(`${bare}?token=${token.replace(/^\d/, '9')}`)).toBe(403);
  expect(await status(`${bare}?token=${token.slice(0, -1)}`)).toBe(403);
  expect(await status(`${RECORDINGS}/${'x'.repeat(id.length)}/file.mp4?token=${token}`)).toBe(403);
  expect(await status(`${RECORDINGS}/playlist.m3u8?stream=live&token=${token}`)).toBe(403);
  expect(await status(RECORDINGS)).toBe(401);
  expect(await status(`${RECORDINGS}?token=${token}`)).toBe(401);
  for (const query of ['?from=yesterday', '?to=1e3', '?from=20&to=10', '?lifetime=5', '?lifetime=x']) {
    const answer = await get(`${RECORDINGS}${query}`, { authorization: server.api.authorization });
    expect([query, answer.status, await answer.text()]).toEqual([
      query,
      400,
      expect.stringMatching(/Invalid \[(from|to|lifetime)\] parameter/),
    ]);
  }
});

test('no path gives access to other files', async () => {
  const { id } = await one('movie');
  const headers = { authorization: server.api.authorization };
  const names = ['file.ts', 'file.MP4', 'movie.mp4', '..%2f..%2fServer.xml', '%2e%2e', 'init.mp4%00', ''];
  for (const name of names) expect([name, (await get(`${RECORDINGS}/${id}/${name}`, headers)).status]).toEqual([name, 404]);
  for (const key of ['..', '%2e%2e', '*', `${id}x`, '__proto__', 'constructor'])
    expect((await get(`${RECORDINGS}/${key}/file.mp4`, headers)).status).toBe(404);
  expect((await get('/v2/vhosts/default/apps/other/recordings', headers)).status).toBe(404);
});

test('a running recording is not listed; after a kill finished and interrupted recordings are listed', { timeout: 60_000 }, async () => {
  const before = (await list()).recordings.map(({ id }) => id).sort();
  expect((await list()).recordings.map(({ task }) => task)).not.toContain('running');
  const { file } = await one('movie');
  await encoder.sent(2 * FPS);
  await server.kill();
  await server.restart();
  await until('the file that was cut', async () => (await list()).recordings.some(({ task }) => task === 'running'), {
    deadlineMs: 20_000,
  });
  const { recordings } = await list();
  expect(before.every((id) => recordings.some((recording) => recording.id === id))).toBe(true);
  expect((await framesOf((await one('running')).playlist)).video).toBeGreaterThan(FPS);
  // Tokens of an earlier run are invalid.
  expect((await get(file)).status).toBe(403);
  expect((await get((await one('movie')).file)).status).toBe(200);
});

test('a replaced file is neither served nor listed', async () => {
  const transport = path.join(folder, 'root', 'transport.ts');
  const { file } = await one('transport');
  unlinkSync(transport);
  symlinkSync('/etc/passwd', transport);
  expect((await get(file)).status).toBe(404);
  unlinkSync(transport);
  writeFileSync(transport, 'somebody else');
  expect((await get(file)).status).toBe(404);
  expect((await list()).recordings.map(({ task }) => task)).not.toContain('transport');
  expect(readFileSync(transport, 'utf8')).toBe('somebody else');
});

test('a moved file leaves the list and the playlist before any request for it', async () => {
  const { recordings } = await list('?stream=second');
  const paths = recordings.map((_, n) => path.join(folder, `root/split-${n}.mp4`));
  expect(paths.filter((name) => existsSync(name))).toEqual(paths);
  const { playlist = '' } = await list('?stream=second');
  const inPlaylist = async (): Promise<string[]> => [
    ...new Set([...(await (await get(playlist)).text()).matchAll(/^\/.*\/recordings\/([^/]+)\/file/gm)].map(([, id = '']) => id)),
  ];
  const ids = recordings.map(({ id }) => id);
  expect(await inPlaylist()).toEqual(ids);
  renameSync(paths[1] ?? '', path.join(folder, 'moved.mp4'));
  expect(await inPlaylist()).toEqual(ids.filter((_, n) => n !== 1));
  renameSync(paths[0] ?? '', path.join(folder, 'also-moved.mp4'));
  expect((await list('?stream=second')).recordings.map(({ id }) => id)).toEqual(ids.slice(2));
});

test('metrics count the kept recordings and their bytes', async () => {
  const text = await (await get('/metrics', { authorization: server.api.authorization })).text();
  const { recordings } = await list();
  expect(text).toContain(`\nmillrace_kept_recordings ${recordings.length}\n`);
  expect(text).toContain(`\nmillrace_kept_recordings_bytes ${recordings.reduce((sum, { bytes }) => sum + bytes, 0)}\n`);
  expect(existsSync(path.join(folder, 'root/movie.mp4')) && statSync(path.join(folder, 'root/movie.mp4')).size).toBe(
    (await one('movie')).bytes,
  );
});

test('a read-only client sees the recordings, but no tokens', async () => {
  const answer = await get(RECORDINGS, { authorization: `Bearer ${READER}` });
  const text = await answer.text();
  expect([answer.status, (JSON.parse(text) as { response: Answer }).response.recordings.length]).toEqual([
    200,
    (await list()).recordings.length,
  ]);
  expect(text.match(/token=[^"]*/g)?.every((token) => token === 'token=***')).toBe(true);
  const other = await get(`${RECORDINGS}?stream=live&from=1`, { authorization: `Bearer ${READER}` });
  expect((await other.text()).match(/token=[^"]*/g)?.every((token) => token === 'token=***')).toBe(true);
});

test('only recordings beyond MaxBytes are removed', { timeout: 60_000 }, async () => {
  const root = path.join(folder, 'root');
  writeFileSync(path.join(root, 'holiday.mp4'), 'not ours');
  const before = (await list()).recordings;
  const largest = Math.max(...before.map(({ bytes }) => bytes));
  const retention = `<Retention><MaxBytes>${largest}</MaxBytes></Retention>`;
  writeFileSync(server.config, readFileSync(server.config, 'utf8').replace('</RootPath></FILE>', `</RootPath>${retention}</FILE>`));
  await server.restart();
  const isSmall = async (): Promise<boolean> => (await list()).recordings.reduce((sum, { bytes }) => sum + bytes, 0) <= largest;
  await until('the recordings are within MaxBytes', isSmall, { deadlineMs: 20_000 });
  const kept = (await list()).recordings.map(({ id }) => id);
  expect(kept.length).toBeLessThan(before.length);
  // The oldest files have been removed.
  expect(before.slice(-kept.length).map(({ id }) => id)).toEqual(kept);
  expect(['holiday.mp4', 'transport.ts'].map((name) => existsSync(path.join(root, name)))).toEqual([true, true]);
  expect(server.log).toContain('recording removed: all recordings together exceed MaxBytes');
  const text = await (await get('/metrics', { authorization: server.api.authorization })).text();
  expect(text).toContain(`\nmillrace_recordings_removed_total{reason="size"} ${before.length - kept.length}\n`);
});
