import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { FilmSources } from '../../test/fakes/film.ts';
import { ChannelSlots } from './channel-slots.ts';
import type { FileEvent } from './media-file.ts';
import { PlayedItem } from './played-item.ts';

/** An item whose packets become endless garbage after this many. */
function garbageBehind(packets: number, clock: { read: number }): PlayedItem {
  const slots = new ChannelSlots({ video: true, audio: [{}] });
  const films = new FilmSources({ film: { seconds: 1 } });
  return new PlayedItem({
    cued: { url: 'file://film', from: 0, at: 0, until: Number.POSITIVE_INFINITY },
    now: () => 0,
    arrange: (tracks) => slots.arrange(tracks),
    onChange: () => undefined,
    open: async () => {
      const film = await films.open('file://film', { position: 0 });
      let last: FileEvent | null = null;
      const next = async (): Promise<FileEvent | null> => {
        clock.read += 1;
        if (clock.read % 1000 === 0) await nextTurn();
        if (clock.read <= packets || last?.type !== 'packet') last = (await film.next()) ?? last;
        if (clock.read <= packets || last?.type !== 'packet') return last;
        return { ...last, packet: { ...last.packet, trackId: 0, data: new Uint8Array([1]) } };
      };
      return { ...film, next };
    },
  });
}

it.each([
  ['at its beginning', 0, false],
  ['after playable packets', 40, true],
])('an item with 100,000 unplayable packets in a row fails and is read no further: %s', async (_when, packets, ready) => {
  const clock = { read: 0 };
  const item = garbageBehind(packets, clock);
  while (item.failure === null && clock.read < 300_000) await nextTurn();
  expect(item.failure).toBe('of 100000 packets in a row none can be played');
  const { read } = clock;
  await nextTurn();
  expect(clock.read).toBe(read);
  expect([item.ready, item.peek() !== null]).toEqual([ready, ready]);
  item.close();
});

it('an item with audio but no keyframe fails, and holds a bounded number of packets', async () => {
  const slots = new ChannelSlots({ video: true, audio: [{}] });
  const films = new FilmSources({ film: { seconds: 600, gop: 100_000 } });
  let read = 0;
  const item = new PlayedItem({
    cued: { url: 'file://film', from: 0, at: 0, until: Number.POSITIVE_INFINITY },
    now: () => 0,
    arrange: (tracks) => slots.arrange(tracks),
    onChange: () => undefined,
    open: async () => {
      const film = await films.open('file://film', { position: 0 });
      const next = async (): Promise<FileEvent | null> => {
        const event = await film.next();
        read += 1;
        return event?.type === 'packet' && event.packet.trackId === 0 && event.packet.keyframe === true ? await next() : event;
      };
      return { ...film, next };
    },
  });
  while (item.failure === null && !item.ended) await nextTurn();
  expect(item.failure).toBe('no keyframe arrived to begin with');
  expect(read).toBeLessThan(7000);
  item.close();
});
