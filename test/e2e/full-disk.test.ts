/** Effects of a full or read-only disk on clients, and the server's recovery. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { apiPath } from '../harness/api-client.ts';
import { until } from '../harness/poll.ts';
import { publish } from '../harness/publisher.ts';
import { decodedFrames, packetsOf } from '../harness/recorded-file.ts';
import { media, record, stopAtEnd, stopRecord, task, unfinished } from '../harness/recordings.ts';
import { startServer, type TestServer } from '../harness/server.ts';
import { freeBytes, readOnly, smallDisk } from '../harness/small-disk.ts';

const APP = apiPath.app('default', 'app');
const NO_MOUNT = 'nothing can be mounted here';
/** Room for some seconds of recording. */
const ROOM_BYTES = 300 * 1024;

interface HealthAnswer {
  readonly status: string;
  readonly reasons?: readonly string[];
}

async function health(server: TestServer): Promise<HealthAnswer> {
  const answer = await fetch(`http://127.0.0.1:${server.ports.api}/health`);
  expect(answer.status).toBe(200);
  return (await answer.json()) as HealthAnswer;
}

/** The answer to a deletion: its status, and the header with the reason. */
async function deletion({ api }: TestServer, place: string): Promise<[status: number, reason: string | null]> {
  const answer = await fetch(api.base + place, { method: 'DELETE', headers: { authorization: api.authorization } });
  return [answer.status, answer.headers.get('Millrace-Reason')];
}

function folderOfTest(): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'millrace-disk-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

test('a recording on a full disk continues in a new file when there is room again, and both files play', {
  timeout: 120_000,
}, async (context) => {
  const root = smallDisk(path.join(folderOfTest(), 'disk'), 12);
  if (root === null) {
    context.skip(NO_MOUNT);
    return;
  }
  const server = await startServer({ recordRoot: root });
  onTestFinished(() => server.close());
  expect(await health(server)).toEqual({ status: 'ok' });
  await record(server, 'r', '/r.mp4');
  const filler = path.join(root, 'filler');
  writeFileSync(filler, Buffer.alloc(freeBytes(root) - ROOM_BYTES));
  stopAtEnd(publish({ url: server.rtmp('live') }));
  const failed = await until('the recording fails', async () => {
    const one = await task(server, 'r');
    return one?.state === 'error' ? one : null;
  });
  expect(failed.reason).toContain('ENOSPC');
  expect((await health(server)).reasons).toContain('a recording cannot be written: no space is left on the disk');
  await until('the finished file', () => media(root).length === 1 && unfinished(root).length === 0);

  rmSync(filler);
  await until('the recording continues', async () => (await task(server, 'r'))?.state === 'recording', { deadlineMs: 60_000 });
  expect(((await health(server)).reasons ?? []).join()).not.toContain('recording');
  await until('a second of the recording', async () => ((await task(server, 'r'))?.recordTime ?? 0) > 1000);
  await stopRecord(server, 'r');
  await until('both finished files', () => media(root).length === 2 && unfinished(root).length === 0);
  expect(media(root)).toEqual(['r.mp4', 'r_1.mp4']);
  for (const name of media(root)) {
    const { length } = packetsOf(path.join(root, name)).video;
    expect(length, name).toBeGreaterThan(15);
    expect(decodedFrames(path.join(root, name)), name).toBe(length);
  }
});

test('a read-only state folder is reported by the health check and by each change, and media continues', {
  timeout: 60_000,
}, async (context) => {
  const server = await startServer({ recordRoot: 'recordings' });
  onTestFinished(() => server.close());
  await server.api.create('/v1/vhosts', [{ name: 'kept', host: { names: ['kept.example'] } }]);
  const mend = readOnly(server.state);
  if (mend === null) {
    context.skip(NO_MOUNT);
    return;
  }
  const reason = 'the state folder cannot be written to: the file system is read-only';
  await until('the reason in the health check', async () => (await health(server)).reasons?.includes(reason), { deadlineMs: 30_000 });
  expect(server.log).toContain(reason);
  expect((await health(server)).status).toBe('degraded');
  const vhost = { name: 'v', host: { names: ['v.example'] } };
  const why = 'the file system is read-only';
  expect(await server.api.call('POST', '/v1/vhosts', [vhost])).toMatchObject({
    status: 500,
    body: [{ statusCode: 500, message: `Failed to save the virtual host: [v]: ${why}` }],
  });
  expect(await server.api.call('POST', `${APP}:startRecord`, { id: 'r', stream: { name: 'live' } })).toMatchObject({
    status: 500,
    body: { message: `[HTTP] Failed to save the recording task: [r]: ${why} (500)` },
  });
  expect(await deletion(server, '/v1/vhosts/kept')).toEqual([500, why]);
  expect(await server.api.get('/v1/vhosts')).toContain('kept');
  stopAtEnd(publish({ url: server.rtmp('live') }));
  await until('the stream plays', async () => (await fetch(server.http('live', 'llhls.m3u8'))).status === 200);

  mend();
  expect((await server.api.call('POST', '/v1/vhosts', [vhost])).status).toBe(200);
  await until("the health check is 'ok'", async () => (await health(server)).status === 'ok', { deadlineMs: 30_000 });
});

test('a state folder that is removed is reported, also by every change; the server goes on serving and stops cleanly', async () => {
  const server = await startServer();
  onTestFinished(() => server.close());
  await server.api.create('/v1/vhosts', [{ name: 'kept', host: { names: ['kept.example'] } }]);
  rmSync(server.state, { recursive: true });
  const reason = 'the state folder was removed: nothing is kept there until a restart';
  await until('the reason in the health check', async () => (await health(server)).reasons?.includes(reason), { deadlineMs: 30_000 });
  expect(server.log).toContain(reason);
  const vhost = { name: 'v', host: { names: ['v.example'] } };
  expect(await server.api.call('POST', '/v1/vhosts', [vhost])).toMatchObject({
    status: 500,
    body: [{ statusCode: 500, message: 'Failed to save the virtual host: [v]: its folder is gone' }],
  });
  expect(await deletion(server, '/v1/vhosts/kept')).toEqual([500, 'its folder is gone']);
  stopAtEnd(publish({ url: server.rtmp('live') }));
  await until('the stream plays', async () => (await fetch(server.http('live', 'llhls.m3u8'))).status === 200);
  expect((await server.stop()).code).toBe(0);
});
