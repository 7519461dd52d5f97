/** Boundaries in a channel of unequal films and a camera, as viewers notice them: in hls.js, in OvenPlayer, and in the served media. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ChannelBrowser } from '../harness/channel-watcher.ts';
import { BoundaryJudge, FlashChannel, ROUND_SECONDS } from '../harness/flash-channel.ts';

let channel: FlashChannel;
let browser: ChannelBrowser;

beforeAll(async () => {
  channel = await FlashChannel.start();
  browser = await ChannelBrowser.open();
}, 60_000);

afterAll(async () => {
  await browser?.close();
  await channel?.close();
});

test('hls.js plays across item boundaries of a bypassed channel without a gap, in sync and fully decodable', async () => {
  await channel.play('bypass');
  const recording = await channel.record('bypass');
  const judge = new BoundaryJudge(await browser.hls(channel.hls('bypass')));
  await judge.settle();
  await judge.watch(ROUND_SECONDS);
  const { problems, runs } = await recording.problems();
  expect(problems).toEqual([]);
  expect(runs).toBeGreaterThan(4);
  expect(judge.problems({ hears: true })).toEqual([]);
}, 240_000);

test('hls.js and OvenPlayer play across item boundaries of an encoded channel without a gap', async () => {
  await channel.play('made');
  const recording = await channel.record('made');
  const judges = [
    new BoundaryJudge(await browser.hls(channel.hls('made'))),
    new BoundaryJudge(await browser.oven(channel.socket)),
  ] as const;
  await Promise.all(judges.map((judge) => judge.settle()));
  await Promise.all(judges.map((judge) => judge.watch(ROUND_SECONDS)));
  expect((await recording.problems()).problems).toEqual([]);
  expect(judges[0].problems({ hears: true })).toEqual([]);
  // The jitter buffer of WebRTC stretches and shortens audio by itself.
  expect(judges[1].problems({ hears: false })).toEqual([]);
}, 240_000);
