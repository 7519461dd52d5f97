/** Several encoders, name conflicts, and encoders that return. */
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { requireProgram } from '../../scripts/ensure-tools.ts';
import { apiPath, type StreamInformation } from '../harness/api-client.ts';
import { openBrowser, type PlayerBrowser } from '../harness/browser.ts';
import { Child } from '../harness/child.ts';
import { until } from '../harness/poll.ts';
import { probe } from '../harness/probe.ts';
import { type FfmpegPublisher, type PublishOptions, publish } from '../harness/publisher.ts';
import { startServer, type TestServer } from '../harness/server.ts';

let server: TestServer;
let browser: PlayerBrowser;

beforeAll(async () => {
  server = await startServer({ segmentDuration: 1 });
  browser = await openBrowser();
});

afterAll(async () => {
  await browser?.close();
  await server?.close();
});

function encode(stream: string, options: Partial<PublishOptions> = {}): FfmpegPublisher {
  const encoder = publish({ url: server.rtmp(stream), ...options });
  onTestFinished(async () => {
    await encoder.stop();
  });
  return encoder;
}

async function streamNames(): Promise<readonly string[]> {
  return await server.api.get('/v1/vhosts/default/apps/app/streams');
}

test('two encoders publish at once and each stream shows its own frame', async () => {
  const left = encode('left', { width: 320, height: 180, videoKbps: 300 });
  const right = encode('right', { width: 480, height: 272, videoKbps: 300 });
  await Promise.all([left.sent(90), right.sent(90)]);
  expect([...(await streamNames())].sort()).toEqual(['left', 'right']);
  const probed = await Promise.all([probe(server.http('left', 'llhls.m3u8')), probe(server.http('right', 'llhls.m3u8'))]);
  expect(probed.map(({ video }) => video?.width)).toEqual([320, 480]);
});

test('a second encoder with the same stream name is refused and the first keeps running', async () => {
  const first = encode('taken', { width: 320, height: 180, videoKbps: 300 });
  await first.sent(60);
  const second = encode('taken', { width: 480, height: 272, videoKbps: 300 });
  const exit = await second.child.ended(15_000);
  expect(exit.code).not.toBe(0);
  expect(second.child.stderr).toContain("Server error: Stream 'taken' is already being published.");
  expect(server.log).toContain("publisher refused: stream 'taken' is already being published by TCP://");
  await first.sent(60);
  const { input } = await server.api.get<StreamInformation>(apiPath.stream('taken'));
  expect(input.tracks.find((track) => track.type === 'Video')?.video).toMatchObject({ width: 320, height: 180 });
});

test.each([
  ['an unknown application', (url: string) => url.replace('/app/', '/nowhere/'), "There is no application 'nowhere'.", 'no application'],
  [
    'no stream key',
    (url: string) => url.replace('/app/key', '/app'),
    'There is no stream key: publish to rtmp://HOST/APP/KEY',
    'no stream key',
  ],
])('ffmpeg shows the reason when it publishes to %s, and the server logs it', async (_what, urlOf, shown, logged) => {
  const encoder = encode('key', { url: urlOf(server.rtmp('key')), width: 320, height: 180, videoKbps: 300 });
  expect((await encoder.child.ended(15_000)).code).not.toBe(0);
  expect(encoder.child.stderr).toContain(`Server error: ${shown}`);
  expect(server.log).toMatch(new RegExp(`publisher refused: .*${logged}`));
});

test('ffmpeg shows why when it would play over RTMP', async () => {
  const player = new Child(requireProgram('ffmpeg'), ['-v', 'error', '-nostdin', '-i', server.rtmp('live'), '-f', 'null', '-']);
  onTestFinished(async () => {
    await player.kill();
  });
  expect((await player.ended(15_000)).code).not.toBe(0);
  expect(player.stderr).toContain('RTMP is for publishing only: play this stream by LL-HLS, WebRTC or SRT.');
  expect(server.log).toContain("viewer refused: RTMP is not served to players: 'app/live'");
});

test('a stream disappears from the list and from HTTP when its encoder has stopped', async () => {
  const encoder = encode('short', { width: 320, height: 180, videoKbps: 300 });
  await encoder.sent(60);
  expect(await streamNames()).toContain('short');
  await encoder.stop();
  await until('the stream to leave the list', async () => !(await streamNames()).includes('short'));
  expect((await fetch(server.http('short', 'llhls.m3u8'))).status).toBe(404);
});

test('a player resumes without a reload after its encoder was killed and restarted', async () => {
  const first = encode('phoenix', { withClock: true });
  await first.sent(90);
  const player = await browser.play(server.http('phoenix', 'llhls.m3u8'));
  await player.played(3, 30_000);

  await first.kill();
  await until('the stream to leave the list', async () => !(await streamNames()).includes('phoenix'));
  const again = encode('phoenix', { withClock: true });
  await again.sent(60);
  await until(
    'the player to show what the second encoder sends',
    async () => {
      const delay = await player.delay();
      return delay !== null && delay < 5000 && (await player.state()).playing;
    },
    { deadlineMs: 30_000, everyMs: 250 },
  );
  await player.played(5, 20_000);
});
