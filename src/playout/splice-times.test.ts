/** Times of a channel over every kind of splice: items of any frame rate and reordering that come late, are cut, moved, stopped and fail. */
import { expect, it } from 'vitest';
import { FakeChannel, isMonotonic } from '../../test/fakes/fake-channel.ts';
import type { FilmOptions } from '../../test/fakes/film.ts';
import { Random } from '../../test/fuzz/support/random.ts';
import { MediaRouter } from '../core/media-router.ts';
import { toSeconds } from '../media/timebase.ts';

const NAMES = ['a', 'b', 'c', 'd'];
const VIDEO = 0;
const AUDIO = 100;

function film(random: Random): FilmOptions {
  const bframes = random.pick([0, 0, 1, 2, 3]);
  return {
    seconds: 1 + random.below(8000) / 1000,
    fps: random.pick([12, 23.976, 24, 25, 30, 50, 59.94]),
    bframes,
    gop: (bframes + 1) * random.pick([4, 8, 12]),
    openGop: bframes > 0 && random.once(3),
    sampleRate: random.pick([32_000, 44_100, 48_000]),
    start: random.once(2) ? 0 : random.below(5000) / 1000,
    audioDelay: random.once(2) ? 0 : random.below(300) / 1000,
  };
}

/** Half a minute of random events of a channel. */
async function play(random: Random): Promise<FakeChannel> {
  const channel = new FakeChannel(Object.fromEntries(NAMES.map((name) => [name, film(random)])));
  const later = (ms: number): Promise<void> => new Promise((resolve) => void channel.timers.later(resolve, ms));
  const open = channel.sources.open.bind(channel.sources);
  channel.sources.open = async (url, opening) => {
    const source = await open(url, opening);
    if (random.once(3)) await later(random.below(700));
    const stalls = random.once(3);
    let read = 0;
    const next = async () => {
      read += 1;
      if (stalls && read % 40 === 0) await later(random.below(450));
      return await source.next();
    };
    return { ...source, next };
  };
  const { playout } = channel;
  const cue = (at: number): void => {
    const until = random.once(2) ? Number.POSITIVE_INFINITY : at + 200 + random.below(5000);
    playout.cue({ url: `file://${random.pick(NAMES)}`, from: random.once(2) ? 0 : random.below(4000), at, until });
  };
  const now = (): number => channel.clock.now();
  channel.onEndingHook = (_item, endsAt) => cue(Math.round(endsAt + (random.once(3) ? random.below(100) - 50 : 0)));
  channel.onEndedHook = () => cue(now() + random.below(200));
  channel.onFailedHook = () => void channel.timers.later(() => cue(now()), random.below(100));
  cue(now());
  const acts: readonly (() => void)[] = [
    () => cue(now() + random.below(3500) - 500),
    () => playout.retime(now() + random.below(1000)),
    () => playout.endAt(now() + random.below(2000)),
    () => {
      playout.stop();
      cue(now());
    },
    () => {
      playout.cue(null);
      channel.timers.later(() => cue(now()), 300);
    },
    // The process was held up.
    () => channel.clock.advance(random.below(1500)),
    () => undefined,
    () => undefined,
  ];
  for (let act = 0; act < 25; act += 1) {
    await channel.timers.pass(random.below(2000));
    random.pick(acts)();
  }
  playout.close();
  return channel;
}

interface Shown {
  readonly dts: number;
  readonly pts: number;
  readonly keyframe: boolean | null;
}

/** The faults in the times of a track, in ticks or seconds. */
function faultsOf(packets: readonly Shown[]): string[] {
  const faults: string[] = [];
  if (!isMonotonic(packets.map(({ dts }) => dts))) faults.push('a packet is decoded before, or with, the one before');
  if (packets.some(({ pts, dts }) => pts < dts)) faults.push('a packet is shown before it is decoded');
  if (new Set(packets.map(({ pts }) => pts)).size < packets.length) faults.push('two packets are shown at once');
  let latest = Number.NEGATIVE_INFINITY;
  for (const { pts, keyframe } of packets) {
    if (keyframe === true && pts <= latest) faults.push(`a keyframe is shown at ${pts}, behind ${latest}`);
    latest = Math.max(latest, pts);
  }
  return faults;
}

it('always increase, both as the channel sends them and as viewers receive them', async () => {
  for (let seed = 1; seed <= 50; seed += 1) {
    const channel = await play(new Random(seed));
    const routed: (Shown & { readonly id: number })[] = [];
    const router = new MediaRouter({
      onTracks: () => undefined,
      onPacket: ({ track, pts, dts, keyframe }) =>
        routed.push({ id: track.id, pts: toSeconds(pts, track.timebase), dts: toSeconds(dts, track.timebase), keyframe }),
    });
    let set = 0;
    channel.stream.packets.forEach((packet, index) => {
      for (; (channel.tracksBefore[set] ?? Number.POSITIVE_INFINITY) <= index; set += 1) router.setTracks(channel.stream.trackSets[set]!);
      router.push(packet);
    });
    for (const id of [VIDEO, AUDIO]) {
      const sent = channel.stream.packets.filter(({ trackId }) => trackId === id);
      const got = routed.filter((packet) => packet.id === id);
      expect(got.length).toBeGreaterThan(100);
      expect({ seed, id, sent: faultsOf(sent), got: faultsOf(got) }).toEqual({ seed, id, sent: [], got: [] });
    }
  }
}, 60_000);
