/** The examples of docs/guide/record.md work as described, with the shipped configuration. */
import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { ApiClient } from '../harness/api-client.ts';
import { until } from '../harness/poll.ts';
import { publish } from '../harness/publisher.ts';
import { ROOT } from '../harness/server.ts';
import { startShippedServer } from '../harness/shipped-server.ts';

const GUIDE = readFileSync(path.join(ROOT, 'docs/guide/record.md'), 'utf8');
const APP = '/v1/vhosts/default/apps/app';

function blocks(language: string): string[] {
  return [...GUIDE.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, 'gms'))].map(([, text = '']) => text);
}

/** The shipped configuration, and a publisher of `live`. */
async function start() {
  const { ports, token, state } = await startShippedServer();
  const encoder = publish({ url: `rtmp://127.0.0.1:${ports.RTMP_PROV}/app/live` });
  onTestFinished(async () => {
    await encoder.stop();
  });
  const api = `http://127.0.0.1:${ports.API}`;
  const playlist = `http://127.0.0.1:${ports.WEBRTC_SIGNALLING}/app/live/llhls.m3u8`;
  await until('the stream', async () => (await fetch(playlist)).status === 200);
  return { api, token, client: new ApiClient(api, token), state };
}

test('every command is answered with 200, and the files are at the documented places', { timeout: 60_000 }, async () => {
  const { api, token, client, state } = await start();
  const credentials = Buffer.from(token).toString('base64');
  // ffplay gets a path from an answer, which recorded-playback.test.ts plays.
  const commands = blocks('sh').filter((command) => !command.startsWith('ffplay'));
  expect(commands).toHaveLength(3);
  for (const command of commands) {
    const script = `set -euo pipefail\nAPI=${api}\nAUTH='Authorization: Basic ${credentials}'\n${command.replaceAll('curl ', "curl -sS -w '\\n' ")}`;
    const { stdout } = await promisify(execFile)('bash', ['-c', script]);
    const answers = stdout.trim().split('\n');
    expect(answers).toHaveLength(command.match(/^curl /gm)?.length ?? 0);
    for (const answer of answers) expect(JSON.parse(answer), answer).toMatchObject({ statusCode: 200 });
  }
  expect(existsSync(path.join(state, 'hls-dumps/d1/info.xml'))).toBe(true);

  // The file paths of the map file and of the API.
  const mapped = /<FilePath>(.*?)<\/FilePath>/.exec(blocks('xml').join())?.[1] ?? '';
  for (const [index, filePath] of [mapped, 'a/x.mp4', '/b/x.mp4'].entries()) {
    const { status, body } = await client.call('POST', `${APP}:startRecord`, { id: `p${index}`, stream: { name: 'live' }, filePath });
    expect(status, JSON.stringify(body)).toBe(200);
  }
  await until('the recordings', () =>
    ['a/tmp_p1_x.mp4', 'b/tmp_p2_x.mp4'].every((name) => existsSync(path.join(state, 'recordings', name))),
  );
  for (const id of ['p0', 'p1', 'p2']) await client.call('POST', `${APP}:stopRecord`, { id });
  await until('the documented files', () => ['a/x.mp4', 'b/x.mp4'].every((name) => existsSync(path.join(state, 'recordings', name))));
});
