import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { RecordingLogger } from '../test/fakes/recording-logger.ts';
import { RtmpPublisher } from '../test/fakes/rtmp-publisher.ts';
import { ApiClient } from '../test/harness/api-client.ts';
import { freePorts } from '../test/harness/ports.ts';
import { ACCESS_TOKEN, serverXml } from '../test/harness/server-xml.ts';
import { defaultServerFile, loadServerConfig } from './config/index.ts';
import { ConfigProblem, MillraceServer } from './server.ts';
import { Dumper } from './services/hls/dump/dumper.ts';
import { FilePublisher } from './services/record/file-publisher.ts';

const STREAM = '/v1/vhosts/default/apps/app';
/** No delivery thread has had anybody to serve for so long that it rests. */
const QUIET_MS = 60_000;

/** A server in this process, and a publisher of audio to it. */
async function startPublished(features: Parameters<typeof serverXml>[1], change = (xml: string): string => xml) {
  const [rtmp = 0, http = 0, api = 0, ice = 0, relay = 0] = await freePorts(5);
  const folder = mkdtempSync(path.join(tmpdir(), 'millrace-server-'));
  const configFile = path.join(folder, 'Server.xml');
  writeFileSync(configFile, change(serverXml({ rtmp, http, api, ice, relay }, features)));
  const server = await MillraceServer.start({ configFile, stateFolder: path.join(folder, 'state'), logger: new RecordingLogger() });
  onTestFinished(async () => {
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  });
  const publisher = await RtmpPublisher.publish(rtmp);
  onTestFinished(() => publisher.close());
  publisher.metadata({ audiocodecid: 10 });
  publisher.audio(0, 'af001190');
  return { client: new ApiClient(`http://127.0.0.1:${api}`, ACCESS_TOKEN), publisher, http, folder };
}

test('an RTMP publisher without viewers rests until a push or a viewer starts', { timeout: 120_000 }, async () => {
  // Sweeps of the listener come when the test says so: a socket that is read without one does not rest.
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  const { client, publisher, http } = await startPublished({ push: '' });
  onTestFinished(() => {
    vi.useRealTimers();
  });
  let sent = 0;
  const frame = (): void => {
    sent += 1;
    publisher.audio(20 * sent, 'af0121aa');
  };
  const bytesIn = async (): Promise<number> =>
    (await client.get<{ totalBytesIn: number }>(`/v1/stats/current${STREAM.slice(3)}/streams/stream`)).totalBytesIn;
  /** A socket that does not rest is read meanwhile: each look takes several turns of the event loop. */
  const grows = async (act: () => unknown): Promise<boolean> => {
    const before = await bytesIn();
    await act();
    for (let look = 0; look < 20; look += 1) {
      if ((await bytesIn()) > before) return true;
    }
    return false;
  };

  await expect.poll(async () => (await client.call('GET', `${STREAM}/streams/stream`)).status).toBe(200);
  // Frame after frame is read, until the threads of viewers have nobody to serve, and the connection is not new any more.
  await expect
    .poll(
      async () => {
        vi.advanceTimersByTime(100);
        return (await grows(frame)) && !(await grows(frame));
      },
      { timeout: QUIET_MS },
    )
    .toBe(true);
  const push = { id: 'p', stream: { name: 'stream' }, protocol: 'rtmp', url: 'rtmp://127.0.0.1:1/app', streamKey: 'k' };
  expect(await grows(() => client.call('POST', `${STREAM}:startPush`, push))).toBe(true);
  expect([await grows(frame), await grows(frame)]).toEqual([true, true]);
  await client.call('POST', `${STREAM}:stopPush`, { id: 'p' });
  expect([await grows(frame), await grows(frame)]).toEqual([true, false]);
  // The answer waits for a segment, which never comes.
  const viewer = new AbortController();
  onTestFinished(() => viewer.abort());
  const ask = (): void => {
    fetch(`http://127.0.0.1:${http}/app/stream/llhls.m3u8`, { signal: viewer.signal }).catch(() => undefined);
  };
  const before = await bytesIn();
  ask();
  await expect.poll(bytesIn).toBeGreaterThan(before);
});

test('output paths of the API must lie in the allowed folders, which the shipped configuration names', async () => {
  expect(loadServerConfig(defaultServerFile).config.storage.allowedRoots).toEqual(['recordings', 'hls-dumps']);
  const storage = '<Storage><AllowedRoots><Path>recordings</Path></AllowedRoots></Storage>';
  const { client, publisher, folder } = await startPublished({ recordRoot: '' }, (xml) => xml.replace('<Bind>', `${storage}<Bind>`));
  publisher.audio(20, 'af0121aa');
  await expect.poll(async () => (await client.call('GET', `${STREAM}/streams/stream`)).status).toBe(200);
  const outside = path.join(folder, 'outside');
  const record = { id: 'r', stream: { name: 'stream' } };
  const dump = { id: 'd', outputStreamName: 'stream' };
  const start = (action: string, body: object) => client.call('POST', `${STREAM}${action}`, body);
  for (const refused of [
    await start(':startRecord', { ...record, filePath: path.join(outside, 'x.mp4') }),
    await start(':startRecord', { ...record, infoPath: path.join(outside, 'x.xml') }),
    await start('/streams/stream:startHlsDump', { ...dump, outputPath: outside }),
    await start('/streams/stream:startHlsDump', { ...dump, outputPath: 'recordings/d', infoFile: path.join(outside, 'i.xml') }),
  ]) {
    const message = expect.stringMatching(/^\[HTTP\] Invalid path: .*outside.* that Server\/Storage\/AllowedRoots allows \(400\)$/);
    expect(refused).toMatchObject({ status: 400, body: { message } });
  }
  const dvr = (tempStoragePath: string) => ({ llhls: { dvr: { enable: true, tempStoragePath } } });
  const app = (name: string, wanted: string) =>
    client.call('POST', '/v1/vhosts/made/apps', [{ name, type: 'live', publishers: dvr(wanted) }]);
  const made = { name: 'made', host: { names: ['made.test'] } };
  expect((await client.call('POST', '/v1/vhosts', [made])).status).toBe(200);
  const inside = path.join(folder, 'state/recordings');
  for (const wanted of [outside, path.join(inside, '..', 'outside'), `${inside}/../outside`]) {
    expect(await app('refused', wanted)).toMatchObject({ status: 400, body: [{ message: expect.stringContaining('AllowedRoots') }] });
  }
  expect((await app('taken', path.join(inside, 'dvr'))).status).toBe(200);
  expect(existsSync(outside)).toBe(false);
  expect((await start(':startRecord', record)).status).toBe(200);
  expect((await start('/streams/stream:startHlsDump', { ...dump, outputPath: 'recordings/d' })).status).toBe(200);
});

test('an option that its service cannot read refuses the start, with its line', async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'millrace-server-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const configFile = path.join(folder, 'Server.xml');
  const srt = '<SRT>\n<Options><Option><Key>OHEADBW</Key><Value>4</Value></Option></Options></SRT>';
  writeFileSync(
    configFile,
    `<Server version="8"><Type>origin</Type><IP>127.0.0.1</IP>\n<Bind><Providers>${srt}</Providers></Bind></Server>`,
  );
  const start = MillraceServer.start({ configFile, stateFolder: path.join(folder, 'state'), logger: new RecordingLogger() });
  const where = `${configFile}:2: Server/Bind/Providers/SRT/Options`;
  await expect(start).rejects.toThrow(
    new ConfigProblem(`${where}: OHEADBW is "4", must be a whole number from 5 to 100\n${configFile} cannot be used.`),
  );
  expect(existsSync(path.join(folder, 'state'))).toBe(false);
});

test('files of the last run are recovered after every port is open, and not by a start that fails', { timeout: 60_000 }, async () => {
  const recoveries = [vi.spyOn(FilePublisher.prototype, 'recover'), vi.spyOn(Dumper.prototype, 'recover')];
  onTestFinished(() => void vi.restoreAllMocks());
  const folder = mkdtempSync(path.join(tmpdir(), 'millrace-server-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const [rtmp = 0, http = 0, api = 0, ice = 0, relay = 0] = await freePorts(5);
  const configFile = path.join(folder, 'Server.xml');
  writeFileSync(configFile, serverXml({ rtmp, http, api, ice, relay }, {}));
  const start = () => MillraceServer.start({ configFile, stateFolder: path.join(folder, 'state'), logger: new RecordingLogger() });
  const other = createServer().listen(rtmp, '127.0.0.1');
  await once(other, 'listening');
  await expect(start()).rejects.toThrow(`RTMP port ${rtmp} (Bind/Providers/RTMP/`);
  expect(recoveries.map(({ mock }) => mock.calls.length)).toEqual([0, 0]);
  other.close();
  await once(other, 'close');
  const server = await start();
  onTestFinished(() => server.stop());
  expect(recoveries.map(({ mock }) => mock.calls.length)).toEqual([1, 1]);
});
