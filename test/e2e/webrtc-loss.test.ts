/** Playing and publishing over paths that lose, repeat and reorder packets; playing with the addon and with the fallback in JavaScript. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { apiPath } from '../harness/api-client.ts';
import { LossyRelay, type LossyRelayOptions } from '../harness/lossy-relay.ts';
import { figure, metricsPage } from '../harness/metrics-page.ts';
import { until } from '../harness/poll.ts';
import { type FfmpegPublisher, PUBLISH_DEFAULTS, publish } from '../harness/publisher.ts';
import { startServer, type TestServer } from '../harness/server.ts';
import { watchWhep } from '../harness/watch-whep.ts';
import { openWebrtcBrowser, type WebrtcBrowser } from '../harness/webrtc-browser.ts';

let browser: WebrtcBrowser;

beforeAll(async () => {
  browser = await openWebrtcBrowser();
});

afterAll(async () => {
  await browser?.close();
});

describe.each([
  { name: 'the addon', env: {}, warned: false, kinds: 3, timeoutScale: 1 },
  { name: 'JavaScript', env: { MILLRACE_NATIVE: 'off' }, warned: true, kinds: 1, timeoutScale: 2 },
])('sent by $name', ({ env, warned, kinds, timeoutScale }) => {
  let server: TestServer;
  let encoder: FfmpegPublisher;

  beforeAll(async () => {
    server = await startServer({ webrtc: { publisher: '<Rtx>true</Rtx>' }, withoutHls: true, env });
    encoder = publish({ url: server.rtmp('live') });
    await encoder.sent(2 * PUBLISH_DEFAULTS.fps);
  });

  afterAll(async () => {
    await encoder?.stop();
    await server?.close();
  });

  /** `freezes`: permitted number of freezes; without retransmissions every lost packet would cause one. */
  const cases: { name: string; path: Omit<LossyRelayOptions, 'server'>; freezes: number }[] = [
    { name: '5 % loss', path: { loss: 0.05 }, freezes: 3 },
    { name: '15 % loss', path: { loss: 0.15 }, freezes: 8 },
    { name: 'reordering and repetition', path: { reordering: 0.05, duplication: 0.05 }, freezes: 3 },
  ];

  test.each(cases.slice(0, kinds))('$name is repaired', async ({ path, freezes }) => {
    const relay = await LossyRelay.open({ server: server.ports.ice, ...path });
    const page = await browser.open();
    // Includes earlier viewers.
    const before = await metricsPage(server);
    const risen = (text: string, name: string): number =>
      (figure(text, `millrace_webrtc_${name}`) ?? 0) - (figure(before, `millrace_webrtc_${name}`) ?? 0);
    try {
      const url = `http://127.0.0.1:${server.ports.http}/app/live?direction=whep`;
      await page.whep(url, ['video'], relay.port);
      await page.decoded(30);
      const dropped = relay.dropped;
      const { video } = await page.decoded(270, 40_000);
      expect(video.framesDropped).toBeLessThan(27);
      if (path.loss === undefined) {
        expect(Math.min(relay.overtaken, relay.repeated)).toBeGreaterThan(20);
        expect(video.freezeCount).toBeLessThanOrEqual(freezes * timeoutScale);
        return;
      }
      expect(relay.dropped - dropped).toBeGreaterThan(20);
      expect(video.nackCount).toBeGreaterThan(0);
      // Packets that the player could not recover show as loss; retransmissions are lost as often as originals.
      const recovered = await until(
        'most losses are made good',
        async () => {
          const { video: now } = await page.stats();
          const again = now?.retransmittedPacketsReceived ?? 0;
          return again >= 0.6 * relay.dropped ? again : null;
        },
        { deadlineMs: 15_000 },
      );
      expect(recovered).toBeGreaterThan(0);
      // The server shows the player's figures: reports and requests of losses pass the relay intact.
      const { video: told } = await page.stats();
      const text = await until(
        'the figures of the server',
        async () => {
          const now = await metricsPage(server);
          return risen(now, 'nacks_total') >= (told?.nackCount ?? Number.NaN) && risen(now, 'lost_packets_total') > 0 ? now : null;
        },
        { deadlineMs: 15_000, everyMs: 300 },
      );
      expect(risen(text, 'resent_packets_total')).toBeGreaterThanOrEqual(recovered);
      expect(risen(text, 'nacked_packets_total')).toBeGreaterThanOrEqual(recovered);
      expect(risen(text, 'sent_packets_total')).toBeGreaterThan(270);
      expect(risen(text, 'loss_ratio_sum')).toBeGreaterThan(0);
      expect(risen(text, 'rtt_seconds_count')).toBeGreaterThan(0);
      expect(risen(text, 'rtt_seconds_sum')).toBeGreaterThan(0);
      expect(figure(text, 'millrace_webrtc_longest_rtt_seconds', 'stream="live"')).toBeGreaterThan(0);
      expect((await page.stats()).video?.freezeCount ?? 0).toBeLessThanOrEqual(freezes * timeoutScale);
    } finally {
      await page.page.close();
      relay.close();
    }
  });

  test.runIf(kinds > 1)('2 % loss is repaired by error correction alone', async () => {
    const publishers = { webrtc: { ulpfec: true } };
    await server.api.create('/v1/vhosts', [{ name: 'second', host: { names: ['localhost'] } }]);
    await server.api.create(`${apiPath.vhost('second')}/apps`, [{ name: 'fec', type: 'live', providers: { rtmp: {} }, publishers }]);
    const source = publish({ url: server.rtmp('live', 'fec', 'localhost'), withoutAudio: true });
    const relay = await LossyRelay.open({ server: server.ports.ice, loss: 0.02 });
    const page = await browser.open();
    try {
      const url = `ws://localhost:${server.ports.http}/fec/live`;
      const answer = await until('the stream can be played', () => page.socket(url, relay.port), { deadlineMs: 20_000, everyMs: 500 });
      expect(answer).toMatch(/^a=rtpmap:120 red\/90000\r$/m);
      expect(answer).not.toMatch(/^a=rtcp-fb:\d+ nack\r$/m);
      const { video: begun } = await page.decoded(10);
      const [sent, dropped] = [source.progress?.frames ?? 0, relay.dropped];
      await source.sent(180);
      const { video } = await page.decoded(10);
      const shown = (video.framesDecoded - begun.framesDecoded) / ((source.progress?.frames ?? 0) - sent);
      expect(relay.dropped - dropped).toBeGreaterThan(10);
      // Every tenth frame loses a packet: without correction only a quarter of the frames would be shown. Chromium does not count the
      // packets of this correction, so the shown frames are the proof.
      expect(shown).toBeGreaterThan(0.5);
      expect(video.nackCount).toBe(0);
    } finally {
      await page.page.close();
      relay.close();
      await source.stop();
    }
  });

  test('the log names the sending implementation', () => {
    expect(server.log.includes('WebRTC is sent from JavaScript')).toBe(warned);
  });
});

test('lost and reordered packets of a publisher are requested again', async () => {
  const server = await startServer({
    segmentDuration: 1,
    webrtc: { publisher: '<Rtx>true</Rtx>', provider: '<FIRInterval>1000</FIRInterval>' },
    withoutHls: true,
  });
  const url = (direction: string): string => `http://127.0.0.1:${server.ports.http}/app/lossy?direction=${direction}`;
  const relay = await LossyRelay.open({ server: server.ports.ice, towards: 'server', loss: 0.1, reordering: 0.03, duplication: 0.02 });
  const page = await browser.open();
  try {
    const { location } = await page.whip(url('whip'), { path: relay.port });
    await until('the stream', async () => (await server.api.call('GET', apiPath.stream('lossy'))).status === 200, { deadlineMs: 15_000 });
    const viewer = await watchWhep(browser, url('whep'), { frames: 150, size: { width: 640, height: 360 } });
    const { video } = await viewer.stats();
    // The path to the viewer is lossless, so frozen frames were lost before the server.
    expect(video?.freezeCount ?? 0).toBeLessThanOrEqual(3);
    const sender = (await page.sent()).find(({ kind }) => kind === 'video');
    expect(relay.dropped).toBeGreaterThan(10);
    expect(sender?.nackCount ?? 0).toBeGreaterThan(0);
    expect(sender?.retransmittedPacketsSent ?? 0).toBeGreaterThan(0);
    const text = await metricsPage(server);
    const told = (name: string): number => figure(text, `millrace_webrtc_${name}`, 'stream="lossy"') ?? Number.NaN;
    expect(told('received_recovered_packets_total')).toBeGreaterThan(5);
    // A lost retransmission is requested again.
    expect(told('requested_packets_total')).toBeGreaterThanOrEqual(told('received_recovered_packets_total'));
    expect(told('received_packets_total')).toBeGreaterThan(relay.dropped);
    // Lost audio is not requested again.
    expect(told('received_lost_packets_total')).toBeGreaterThan(0);
    await viewer.page.close();
    await fetch(new URL(location, url('whip')).href, { method: 'DELETE' });
    await until('the server logs the end of the publication', () => /"stream":"lossy".*WebRTC publication closed/.test(server.log), {
      deadlineMs: 5000,
    });
    const line = server.log.split('\n').find((one) => one.includes('"stream":"lossy"') && one.includes('publication closed')) ?? '{}';
    const { tracks } = JSON.parse(line) as { tracks: { codec: string; recovered: number; lost: number; malformed: number }[] };
    const track = tracks.find(({ codec }) => codec === 'H264');
    expect(track?.recovered).toBeGreaterThan(5);
    expect(track?.lost).toBeLessThan(0.2 * (track?.recovered ?? 0) + 2);
    expect(track?.malformed).toBe(0);
  } finally {
    await page.page.close();
    relay.close();
    await server.close();
  }
});
