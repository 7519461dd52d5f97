/** The examples of docs/guide/record.md do what it says, with the configuration that comes along. */
import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test, vi } from 'vitest';
import { defaultServerXml } from '../../src/config/index.ts';
import { MillraceServer } from '../../src/server.ts';
import { RecordingLogger } from '../fakes/recording-logger.ts';
import { ApiClient } from '../harness/api-client.ts';
import { until } from '../harness/poll.ts';
import { freePorts } from '../harness/ports.ts';
import { publish } from '../harness/publisher.ts';
import { ROOT } from '../harness/server.ts';

const GUIDE = readFileSync(path.join(ROOT, 'docs/guide/record.md'), 'utf8');
const TOKEN = 'token';
const APP = '/v1/vhosts/default/apps/app';

function blocks(language: string): string[] {
  return [...GUIDE.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, 'gms'))].map(([, text = '']) => text);
}

/** The shipped configuration on free ports, and a publisher of `live`. */
async function start() {
  const names = [
    'API',
    'RTMP_PROV',
    'SRT_PROV',
    'WEBRTC_SIGNALLING',
    'WEBRTC_CANDIDATE',
    'WEBRTC_TCP_RELAY',
    'ORIGIN',
    'MPEGTS_PROV',
    'SRT_PUB',
  ];
  const ports = new Map((await freePorts(names.length)).map((port, index) => [names[index], port]));
  const udp = new Set(['WEBRTC_CANDIDATE', 'MPEGTS_PROV']);
  for (const [name = '', port] of ports) vi.stubEnv(`OME_${name}_PORT`, udp.has(name) ? `${port}/udp` : String(port));
  vi.stubEnv('OME_LLHLS_STREAM_PORT', String(ports.get('WEBRTC_SIGNALLING')));
  vi.stubEnv('MILLRACE_ACCESS_TOKEN', TOKEN);
  const folder = mkdtempSync(path.join(tmpdir(), 'millrace-guide-'));
  const configFile = path.join(folder, 'Server.xml');
  writeFileSync(configFile, defaultServerXml().replace('>9998<', `>${ports.get('SRT_PUB')}<`));
  const state = path.join(folder, 'state');
  const server = await MillraceServer.start({ configFile, stateFolder: state, logger: new RecordingLogger() });
  const encoder = publish({ url: `rtmp://127.0.0.1:${ports.get('RTMP_PROV')}/app/live` });
  onTestFinished(async () => {
    await encoder.stop();
    await server.stop();
    vi.unstubAllEnvs();
    rmSync(folder, { recursive: true, force: true });
  });
  const api = `http://127.0.0.1:${ports.get('API')}`;
  const client = new ApiClient(api, TOKEN);
  const playlist = `http://127.0.0.1:${ports.get('WEBRTC_SIGNALLING')}/app/live/llhls.m3u8`;
  await until('the stream', async () => (await fetch(playlist)).status === 200);
  return { api, client, state };
}

test('every command is answered with 200, and the files are where the guide says', { timeout: 60_000 }, async () => {
  const { api, client, state } = await start();
  const token = Buffer.from(TOKEN).toString('base64');
  const commands = blocks('sh');
  expect(commands).toHaveLength(2);
  for (const command of commands) {
    const script = `set -euo pipefail\nAPI=${api}\nAUTH='Authorization: Basic ${token}'\n${command.replaceAll('curl ', "curl -sS -w '\\n' ")}`;
    const { stdout } = await promisify(execFile)('bash', ['-c', script]);
    const answers = stdout.trim().split('\n');
    expect(answers).toHaveLength(3);
    for (const answer of answers) expect(JSON.parse(answer), answer).toMatchObject({ statusCode: 200 });
  }
  expect(existsSync(path.join(state, 'hls-dumps/d1/info.xml'))).toBe(true);

  // The path of the map file, and the ways to write one, through the API.
  const mapped = /<FilePath>(.*?)<\/FilePath>/.exec(blocks('xml').join())?.[1] ?? '';
  for (const [index, filePath] of [mapped, 'a/x.mp4', '/b/x.mp4'].entries()) {
    const { status, body } = await client.call('POST', `${APP}:startRecord`, { id: `p${index}`, stream: { name: 'live' }, filePath });
    expect(status, JSON.stringify(body)).toBe(200);
  }
  await until('the recordings', () =>
    ['a/tmp_p1_x.mp4', 'b/tmp_p2_x.mp4'].every((name) => existsSync(path.join(state, 'recordings', name))),
  );
  for (const id of ['p0', 'p1', 'p2']) await client.call('POST', `${APP}:stopRecord`, { id });
  await until('their names', () => ['a/x.mp4', 'b/x.mp4'].every((name) => existsSync(path.join(state, 'recordings', name))));
});
