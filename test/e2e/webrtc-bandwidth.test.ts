/** A path becomes too narrow for the rendition: the player gets a smaller one, and the large one again when there is room. */
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { apiPath, type StreamInformation } from '../harness/api-client.ts';
import { LossyRelay } from '../harness/lossy-relay.ts';
import { until } from '../harness/poll.ts';
import { type FfmpegPublisher, publish } from '../harness/publisher.ts';
import { startServer, type TestServer } from '../harness/server.ts';
import { openWebrtcBrowser, type WebrtcBrowser } from '../harness/webrtc-browser.ts';

const HOST = 'localhost';
const LARGE = { width: 320, height: 180, videoKbps: 800 };
const NARROW = 450_000;
const LADDER = {
  name: 'ladder',
  outputStreamName: `\${OriginStreamName}`,
  encodes: {
    videos: [
      { name: 'large', bypass: true },
      { name: 'small', codec: 'h264', bitrate: 150_000, width: 160, height: 90, framerate: 15, keyFrameInterval: 15 },
    ],
    audios: [{ name: 'opus', codec: 'opus', bitrate: 64_000, samplerate: 48_000, channel: 2 }],
  },
  playlists: [
    {
      name: 'abr',
      fileName: 'abr',
      options: { webrtcAutoAbr: true },
      renditions: [
        { name: 'large', video: 'large', audio: 'opus' },
        { name: 'small', video: 'small', audio: 'opus' },
      ],
    },
  ],
};

let server: TestServer;
let browser: WebrtcBrowser;
const encoders: FfmpegPublisher[] = [];

beforeAll(async () => {
  server = await startServer({ hostNames: ['127.0.0.1'], webrtc: {} });
  browser = await openWebrtcBrowser();
  await server.api.create('/v1/vhosts', [{ name: 'second', host: { names: [HOST] } }]);
});

afterAll(async () => {
  await browser?.close();
  for (const encoder of encoders) await encoder.stop();
  await server?.close();
});

test.each([
  ['TransportCC', 'transport-cc', 'goog-remb'],
  ['REMB', 'goog-remb', 'transport-cc'],
] as const)('%s detects a narrow path, and its recovery', async (bandwidthEstimation, used, unused) => {
  const app = bandwidthEstimation.toLowerCase();
  const publishers = { webrtc: { rtx: true, bandwidthEstimation } };
  const application = { name: app, type: 'live', providers: { rtmp: {} }, publishers, outputProfiles: { outputProfile: [LADDER] } };
  await server.api.create(`${apiPath.vhost('second')}/apps`, [application]);
  const encoder = publish({ url: server.rtmp('live', app, HOST), ...LARGE });
  encoders.push(encoder);
  await until('the output stream begins', async () => {
    const { outputs } = await server.api.get<StreamInformation>(apiPath.stream('live', app, 'second'));
    return outputs[0]?.tracks.filter(({ type }) => type !== 'Data').length === 3;
  });
  const relay = await LossyRelay.open({ server: server.ports.ice });
  const page = await browser.open();
  onTestFinished(async () => {
    await page.page.close();
    relay.close();
    await encoder.stop();
  });
  const width = async (): Promise<number> => (await page.stats()).video?.frameWidth ?? 0;

  const { answer } = await page.whep(`http://${HOST}:${server.ports.http}/${app}/live/abr?direction=whep`, ['video', 'audio'], relay.port);
  expect([answer.includes(used), answer.includes(unused)]).toEqual([true, false]);
  await page.decoded(60);
  expect(await width()).toBe(LARGE.width);
  relay.capacity = NARROW;
  await until('the small rendition', async () => (await width()) === 160, { deadlineMs: 20_000, everyMs: 200 });
  const { video } = await page.decoded(0);
  await page.decoded(video.framesDecoded + 20);
  relay.capacity = Number.POSITIVE_INFINITY;
  await until('the large rendition again', async () => (await width()) === LARGE.width, { deadlineMs: 60_000, everyMs: 200 });
  const { video: last } = await page.decoded(0);
  const { audio } = await page.decoded(last.framesDecoded + 30);
  expect(audio?.packetsReceived).toBeGreaterThan(100);
  await encoder.stop();
});
