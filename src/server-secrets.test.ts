import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { RecordingLogger } from '../test/fakes/recording-logger.ts';
import { ApiClient } from '../test/harness/api-client.ts';
import { freePorts } from '../test/harness/ports.ts';
import { ACCESS_TOKEN, serverXml } from '../test/harness/server-xml.ts';
import { EventReader } from '../test/support/event-reader.ts';
import { MillraceServer } from './server.ts';

const APP = '/v1/vhosts/default/apps/app';
const [HOST, WEBHOOK, PUSH, PULL] = ['policy-of-a-host', 'signs-for-webhooks', 'stream-key-of-a-push', 'p4ss-of-a-camera'];

async function start(configFile: string, stateFolder: string): Promise<MillraceServer> {
  const server = await MillraceServer.start({ configFile, stateFolder, logger: new RecordingLogger() });
  onTestFinished(() => server.stop());
  return server;
}

test('secrets set through the API are masked for all followers, also after the next start', { timeout: 60_000 }, async () => {
  const [rtmp = 0, http = 0, api = 0, ice = 0, relay = 0] = await freePorts(5);
  const folder = mkdtempSync(path.join(tmpdir(), 'millrace-secrets-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const [configFile, stateFolder] = [path.join(folder, 'Server.xml'), path.join(folder, 'state')];
  writeFileSync(configFile, serverXml({ rtmp, http, api, ice, relay }, { push: '' }));
  const client = new ApiClient(`http://127.0.0.1:${api}`, ACCESS_TOKEN);
  const authorization = `Basic ${Buffer.from(ACCESS_TOKEN).toString('base64')}`;
  /** The texts that followers see of pulls whose streams have the secrets as their names. */
  const told = async (): Promise<string[]> => {
    const readers = await Promise.all(
      ['/v2/logs?lines=0', '/v1/events'].map((place) => EventReader.open(`http://127.0.0.1:${api}${place}`, { authorization })),
    );
    const [log] = readers;
    for (const name of [HOST, WEBHOOK, PUSH, PULL, 'no-secret']) {
      await client.call('POST', `${APP}/streams`, { name, urls: ['rtsp://127.0.0.1:1/x'], properties: { retryCount: 0 } });
    }
    await log?.of('log', ({ fields }) => fields.stream === 'no-secret');
    for (const reader of readers) reader.close();
    const shown = JSON.stringify(readers.map(({ events }) => events));
    return [HOST, WEBHOOK, PUSH, PULL, 'no-secret'].filter((secret) => shown.includes(secret ?? ''));
  };

  const made = async (place: string, body: unknown): Promise<void> => {
    const { status, body: answer } = await client.call('POST', place, body);
    expect([place, status, answer]).toEqual([place, 200, answer]);
  };
  const first = await start(configFile, stateFolder);
  expect(await told()).toEqual([HOST, WEBHOOK, PUSH, PULL, 'no-secret']);
  const signedPolicy = { policyQueryKeyName: 'policy', signatureQueryKeyName: 'signature', secretKey: HOST };
  await made('/v1/vhosts', [{ name: 'made', host: { names: ['made.test'] }, signedPolicy }]);
  const transcodeWebhook = { enable: true, controlServerUrl: 'http://127.0.0.1:1/', secretKey: WEBHOOK, timeout: 100 };
  await made('/v1/vhosts/made/apps', [{ name: 'app', type: 'live', providers: { rtmp: {} }, transcodeWebhook }]);
  await made(`${APP}:startPush`, { id: 'p', stream: { name: 'x' }, protocol: 'rtmp', url: 'rtmp://127.0.0.1:1/app', streamKey: PUSH });
  // It is known, though nothing comes of it.
  const camera = { name: 'camera', urls: [`rtsp://me:${PULL}@127.0.0.1:1/x`], properties: { persistent: true } };
  await client.call('POST', `${APP}/streams`, camera);
  expect(await told()).toEqual(['no-secret']);
  await first.stop();
  const second = await start(configFile, stateFolder);
  expect((await told()).filter((secret) => secret !== PULL)).toEqual(['no-secret']);
  await second.stop();
});
