/** The port of `Bind/Managers/Metrics`, in a server of this process. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { RecordingLogger } from '../test/fakes/recording-logger.ts';
import { freePorts } from '../test/harness/ports.ts';
import { serverXml } from '../test/harness/server-xml.ts';
import { MillraceServer } from './server.ts';

test('a metrics port without a token serves metrics to all clients, and nothing else', { timeout: 30_000 }, async () => {
  const [rtmp = 0, http = 0, api = 0, ice = 0, relay = 0, port = 0] = await freePorts(6);
  const folder = mkdtempSync(path.join(tmpdir(), 'millrace-metrics-port-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const configFile = path.join(folder, 'Server.xml');
  writeFileSync(configFile, serverXml({ rtmp, http, api, ice, relay }, { metrics: { port } }));
  const server = await MillraceServer.start({ configFile, stateFolder: path.join(folder, 'state'), logger: new RecordingLogger() });
  onTestFinished(() => server.stop());
  const status = async (url: string): Promise<number> => (await fetch(url)).status;
  const answer = await fetch(`http://127.0.0.1:${port}/metrics`);
  expect([answer.status, await answer.text()]).toEqual([200, expect.stringContaining('\nmillrace_streams 0\n')]);
  expect(await status(`http://127.0.0.1:${port}/v1/vhosts`)).toBe(401);
  expect(await status(`http://127.0.0.1:${api}/metrics`)).toBe(401);
  await server.stop();
  await expect(status(`http://127.0.0.1:${port}/metrics`)).rejects.toThrow();
});
