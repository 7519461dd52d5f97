/** The scripts of the guides: a publishing page and a playing page, the typed client, and URLs signed by another program. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { signUrl } from '../../src/access/signed-url.ts';
import { MillraceClient, MillraceError } from '../../src/client/index.ts';
import { PageBrowser } from '../harness/page-browser.ts';
import { until } from '../harness/poll.ts';
import { publish } from '../harness/publisher.ts';
import { ROOT } from '../harness/server.ts';
import { startShippedServer } from '../harness/shipped-server.ts';
import { blocksIn } from '../support/page-blocks.ts';

const WAIT = { deadlineMs: 60_000, everyMs: 200 };
const SOON = { deadlineMs: 15_000 };
const FRAMES = 30;
/** A fake camera and microphone, and peers on the same machine. */
const SWITCHES = ['--use-fake-device-for-media-stream', '--use-fake-ui-for-media-stream', '--allow-loopback-in-peer-connection'];

type Script = (...names: unknown[]) => Promise<void>;
const AsyncFunction = (async () => undefined).constructor as new (...source: string[]) => Script;

test('the page of publish.md publishes, and the page of watch.md plays that', { timeout: 120_000 }, async () => {
  const { ports, token } = await startShippedServer();
  const client = new MillraceClient({ url: `http://127.0.0.1:${ports.API}`, token });
  const folder = mkdtempSync(path.join(tmpdir(), 'millrace-scripts-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const http = `127.0.0.1:${ports.WEBRTC_SIGNALLING}`;
  const opened = async (page: string) => {
    const blocks = blocksIn(page, 'js');
    expect(blocks).toHaveLength(1);
    const file = path.join(folder, `${path.basename(page)}.html`);
    const script = blocks[0]?.text.replaceAll('HOST:3333', http).replaceAll('app/live', 'app/browser') ?? '';
    writeFileSync(file, `<!doctype html><video id="video" muted autoplay></video><script type="module">${script}</script>`);
    const browser = await PageBrowser.start({
      page: path.relative(path.join(ROOT, 'test/harness'), file),
      scripts: {},
      switches: SWITCHES,
    });
    onTestFinished(() => browser.close());
    return await browser.open({ width: 640, height: 360 });
  };
  const publisher = await opened('docs/guide/publish.md');
  await until('the stream', async () => (await fetch(`http://${http}/app/browser/llhls.m3u8`)).status === 200, WAIT);
  const player = await opened('docs/guide/watch.md');
  const look = '({ frames: video.getVideoPlaybackQuality().totalVideoFrames, tracks: video.srcObject?.getTracks().length ?? 0 })';
  await until(
    'frames',
    async () => {
      const { frames, tracks } = (await player.evaluate(look)) as { readonly frames: number; readonly tracks: number };
      return frames >= FRAMES && tracks === 2;
    },
    WAIT,
  );
  // Without these requests the server would take half a minute for each.
  const place = { vhost: 'default', app: 'app', stream: 'browser' };
  const sessions = () => client.get('/v1/vhosts/{vhost}/apps/{app}/streams/{stream}/sessions', { path: place });
  expect(await sessions()).toHaveLength(1);
  await player.close({ runBeforeUnload: true });
  await until('no viewer', async () => (await sessions()).length === 0, SOON);
  await publisher.close({ runBeforeUnload: true });
  const streams = () => client.get('/v1/vhosts/{vhost}/apps/{app}/streams', { path: place });
  await until('no stream', async () => !(await streams()).includes('browser'), SOON);
});

test('the scripts of api.md list streams and get the event of a new stream', { timeout: 60_000 }, async () => {
  const { ports, token } = await startShippedServer();
  const url = `http://127.0.0.1:${ports.API}`;
  const [asking, following] = blocksIn('docs/reference/api.md', 'ts').map(({ text }) => text.replace(/^import .*$/m, ''));
  const run = async (script: string, log: (...said: unknown[]) => void) =>
    await new AsyncFunction('MillraceClient', 'MillraceError', 'client', 'token', 'console', script.replace('http://127.0.0.1:8081', url))(
      MillraceClient,
      MillraceError,
      new MillraceClient({ url, token }),
      token,
      { log, warn: log },
    );
  const said: unknown[] = [];
  for (let time = 0; time < 2; time += 1) await run(asking?.replace('const client', 'client') ?? '', (text) => said.push(text));
  expect(said).toEqual(['is there already']);

  const heard: unknown[][] = [];
  // It follows the events until the server ends.
  void run(following ?? '', (...words) => heard.push(words)).catch(() => undefined);
  await until('the first event', () => heard.some(([type]) => type === 'hello'), WAIT);
  const encoder = publish({ url: `rtmp://127.0.0.1:${ports.RTMP_PROV}/app/live`, width: 320, height: 180, videoKbps: 200 });
  onTestFinished(async () => void (await encoder.stop()));
  await until('the event of the new stream', () => heard.some(([type, stream]) => type === 'stream.created' && stream === 'live'), WAIT);
});

test('the Python script of access.md signs a URL as the server does', () => {
  const [block] = blocksIn('docs/guide/access.md', 'python');
  const script = `import base64, hashlib, hmac
key = b'secret'
def base64url(data): return base64.urlsafe_b64encode(data).rstrip(b'=').decode()
${block?.text}
print(url)`;
  const { stdout, stderr } = spawnSync('/usr/bin/python3', ['-c', script], { encoding: 'utf8' });
  const names = { policyQueryKeyName: 'policy', signatureQueryKeyName: 'signature', secretKey: 'secret' };
  const signed = signUrl('ws://media.example:3333/app/live', { url_expire: 1_924_992_000_000 }, names);
  expect([stdout.trim(), stderr]).toEqual([signed, '']);
});
