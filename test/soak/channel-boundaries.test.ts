/** The boundaries of two kinds of channels for two minutes, watched by three players at once. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ChannelBrowser } from '../harness/channel-watcher.ts';
import { BoundaryJudge, FlashChannel } from '../harness/flash-channel.ts';

const SECONDS = 120;

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

test('every boundary of two minutes passes without a gap in hls.js and OvenPlayer, with audio in sync', async () => {
  await Promise.all([channel.play('bypass'), channel.play('made')]);
  const recordings = await Promise.all([channel.record('bypass'), channel.record('made')]);
  const judges = [
    new BoundaryJudge(await browser.hls(channel.hls('bypass'))),
    new BoundaryJudge(await browser.hls(channel.hls('made'))),
    new BoundaryJudge(await browser.oven(channel.socket)),
  ];
  await Promise.all(judges.map((judge) => judge.settle()));
  await Promise.all(judges.map((judge) => judge.watch(SECONDS)));
  await Promise.all(recordings.map((recording) => recording.stop()));
  for (const recording of recordings) expect.soft((await recording.problems()).problems).toEqual([]);
  const facts = (await Promise.all(recordings.map((recording) => recording.facts()))).join('\n');
  // The jitter buffer of the last player stretches and shortens audio by itself.
  expect(
    judges.map((judge, index) => judge.problems({ hears: index < 2 })),
    facts,
  ).toEqual([[], [], []]);
}, 400_000);
