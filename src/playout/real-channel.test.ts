/** Films of real encoders on one channel, decoded again: the frames and audio that viewers get over each splice. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { FakeChannel } from '../../test/fakes/fake-channel.ts';
import { RecordingLogger } from '../../test/fakes/recording-logger.ts';
import { until } from '../../test/harness/poll.ts';
import { TransportOutput } from '../containers/mpegts/transport-output.ts';
import { MediaRouter } from '../core/media-router.ts';
import { QueueRegistry } from '../core/queue-registry.ts';
import { StreamLineage } from '../core/stream-lineage.ts';
import type { Packet } from '../media/packet.ts';
import { toSeconds } from '../media/timebase.ts';
import { isMediaTrack, type Track } from '../media/track.ts';
import { TranscoderSupervisor } from '../transcoder/supervisor.ts';
import { AllowedFolders } from '../util/allowed-folders.ts';
import { systemClock } from '../util/clock.ts';
import { ChannelSources } from './channel-sources.ts';
import { LiveStreams } from './live-source.ts';
import { MediaRoot } from './media-root.ts';

const CHANNEL = { vhost: 'default', app: 'app', stream: 'tv' };
/** Flash and beep half a second after each second. */
const NOW = 'lt(mod(t+0.5,1),0.2)';
const X264 = ['-c:v', 'libx264', '-preset', 'ultrafast', '-pix_fmt', 'yuv420p', '-sc_threshold', '0'];
const X265 = ['-c:v', 'libx265', '-preset', 'ultrafast', '-x265-params', 'log-level=none'];
const VP9 = ['-c:v', 'libvpx-vp9', '-deadline', 'realtime', '-cpu-used', '8'];
const AAC = ['-c:a', 'aac', '-ac'];

/** Name, size, frames a second, Hz (0: silent film), seconds and how it is encoded. */
const FILMS: readonly (readonly [string, string, number, number, number, readonly string[]])[] = [
  ['first.mp4', '160x90', 25, 44_100, 3, [...X264, '-bf', '0', '-g', '25', ...AAC, '1']],
  ['frames.mp4', '176x144', 30, 48_000, 3.1, [...X264, '-bf', '3', '-g', '30', ...AAC, '2']],
  ['other.mp4', '160x90', 24, 48_000, 2.9, [...X265, '-g', '24', ...AAC, '2']],
  ['mute.mp4', '160x90', 25, 0, 1, [...X264, '-bf', '2', '-g', '25', '-an']],
  ['stream.ts', '192x108', 25, 48_000, 3.04, [...X264, '-bf', '2', '-g', '25', ...AAC, '2']],
  ['foreign.mkv', '160x90', 25, 48_000, 3, [...VP9, '-g', '25', '-c:a', 'libopus', '-ac', '2']],
];

let folder: string;
let supervisor: TranscoderSupervisor;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'millrace-channel-'));
  supervisor = new TranscoderSupervisor({ clock: systemClock, logger: new RecordingLogger(), queues: new QueueRegistry(systemClock) });
  for (const [name, size, fps, rate, seconds, options] of FILMS) {
    const picture = `color=black:size=${size}:rate=${fps},drawbox=color=white:t=fill:enable='${NOW}'`;
    const sound = `aevalsrc='0.8*sin(2*PI*1000*t)*${NOW}':sample_rate=${rate || 48_000}`;
    const input = ['-f', 'lavfi', '-i', picture, '-f', 'lavfi', '-i', sound, '-t', `${seconds}`];
    execFileSync('ffmpeg', ['-v', 'error', '-y', ...input, ...options, join(folder, name)]);
  }
}, 60_000);
afterAll(async () => {
  await supervisor.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Plays the items one behind the other; time passes as fast as they are read and converted. */
async function play(names: readonly string[]): Promise<{ packets: Packet[]; tracks: (readonly Track[])[]; channel: FakeChannel }> {
  const sources = new ChannelSources({
    channel: CHANNEL,
    root: new MediaRoot(folder, new AllowedFolders(null, '')),
    foreign: supervisor,
    clock: systemClock,
    live: new LiveStreams(() => undefined, new StreamLineage()),
    logger: new RecordingLogger(),
  });
  const channel = new FakeChannel({}, { sources, transcoder: supervisor, address: CHANNEL });
  let next = 0;
  const cue = (at: number): void => {
    const name = names[next];
    next += 1;
    if (name !== undefined) channel.playout.cue({ url: `file://${name}`, from: 0, at, until: Number.POSITIVE_INFINITY });
  };
  channel.onEndingHook = (_item, endsAt) => cue(endsAt);
  cue(channel.startedAt);
  const ended = (): boolean => channel.told.some(([what]) => what === 'ended' || what === 'failed');
  const latest = (): number => (channel.stream.packets.findLast(({ trackId }) => trackId === 0)?.dts ?? 0) / 90;
  while (!ended()) {
    const goal = channel.clock.monotonic() - 300;
    await until(
      'video until now',
      async () => {
        await channel.timers.pass(0);
        return ended() || latest() >= goal;
      },
      { everyMs: 1, deadlineMs: 30_000 },
    );
    if (!ended()) await channel.timers.pass(20);
  }
  channel.playout.close();
  const packets: Packet[] = [];
  const tracks: (readonly Track[])[] = [];
  const router = new MediaRouter({ onTracks: (told) => tracks.push(told), onPacket: (packet) => packets.push(packet) });
  let set = 0;
  channel.stream.packets.forEach((packet, index) => {
    for (; (channel.tracksBefore[set] ?? Number.POSITIVE_INFINITY) <= index; set += 1) router.setTracks(channel.stream.trackSets[set]!);
    router.push(packet);
  });
  expect(router.counters.malformed).toBe(0);
  return { packets, tracks, channel };
}

/** The packets as a transport stream, as SRT carries it. */
function transportStream(packets: readonly Packet[]): string {
  const chunks: Uint8Array[] = [];
  const known = new Map<number, Track>();
  for (const { track } of packets) if (!known.has(track.id)) known.set(track.id, track);
  const output = new TransportOutput([...known.values()], { onPayload: (payload) => chunks.push(payload), onEntryPoint: () => undefined });
  for (const packet of packets) {
    if (known.get(packet.track.id) !== packet.track) {
      known.set(packet.track.id, packet.track);
      output.setTracks([...known.values()]);
    }
    output.push(packet);
  }
  output.flush();
  const path = join(folder, 'seen.ts');
  writeFileSync(path, Buffer.concat(chunks));
  return path;
}

/** Seconds at which what `graph` measures of the frames of a file rises above `limit`; frames are told by their beginning. */
function rises(graph: string, tag: string, limit: number): number[] {
  const entries = `frame=pts_time:frame_tags=${tag}`;
  const options = ['-v', 'fatal', '-f', 'lavfi', '-i', graph, '-show_entries', entries, '-of', 'csv=p=0'];
  const lines = execFileSync('ffprobe', options, { encoding: 'utf8' }).trim().split('\n');
  const frames = lines.map((line) => line.split(',').map((word) => (word === '-inf' ? -1000 : Number(word))));
  return frames.flatMap(([at = 0, level = 0], index) => (level > limit && (frames[index - 1]?.[1] ?? -1000) <= limit ? [at] : []));
}

const flashes = (path: string): number[] => rises(`movie=${path},signalstats`, 'lavfi.signalstats.YAVG', 120);
const beeps = (path: string): number[] => rises(`amovie=${path},astats=metadata=1:reset=1`, 'lavfi.astats.Overall.RMS_level', -30);

it('shows films of all kinds without a gap, in sync and fully decodable', async () => {
  const names = ['first.mp4', 'frames.mp4', 'other.mp4', 'mute.mp4', 'stream.ts', 'foreign.mkv', 'first.mp4'];
  const { packets, tracks, channel } = await play(names);
  expect(channel.told.filter(([what]) => what === 'failed')).toEqual([]);
  expect(channel.told.filter(([what]) => what === 'on air').map(([, url]) => url.slice('file://'.length))).toEqual(names);

  // One set of tracks with one codec each, whatever is on air.
  const shapes = new Set(
    tracks.map((told) => told.map((track) => (isMediaTrack(track) ? `${track.id} ${track.codec}` : track.type)).join()),
  );
  expect([...shapes]).toEqual(['0 H264,100 AAC,data']);
  for (const id of [0, 100]) {
    const mine = packets.filter(({ track }) => track.id === id);
    const shown = mine.map(({ pts, track }) => toSeconds(pts, track.timebase)).sort((a, b) => a - b);
    const gaps = shown.slice(1).map((at, index) => at - (shown[index] ?? 0));
    expect(Math.max(...gaps)).toBeLessThan(id === 0 ? 0.045 : 0.03);
    const decoded = mine.map(({ dts, track }) => toSeconds(dts, track.timebase));
    expect(decoded.every((at, index) => index === 0 || at > (decoded[index - 1] ?? 0))).toBe(true);
  }

  const path = transportStream(packets);
  const faults = execFileSync('sh', ['-c', `ffmpeg -v error -i "${path}" -fps_mode passthrough -enc_time_base:v 1:90000 -f null - 2>&1`], {
    encoding: 'utf8',
  });
  expect(faults).toBe('');

  const ends = channel.told.filter(([what]) => what === 'ending').map(([, , , at]) => Number(at) / 1000);
  const offsets: number[] = [];
  names.forEach((name, index) => {
    const [from, to] = [(ends[index - 1] ?? 0) - 0.002, (ends[index] ?? 0) - 0.002];
    const mine = packets.filter(({ pts, track }) => toSeconds(pts, track.timebase) >= from && toSeconds(pts, track.timebase) < to);
    const seen = transportStream(mine);
    const light = flashes(seen);
    const sound = beeps(seen);
    const isMute = name === 'mute.mp4';
    expect({ name, light: light.length, sound: sound.length }).toEqual({ name, light: isMute ? 1 : 3, sound: isMute ? 0 : 3 });
    // Beeps are told by the audio frame in which they begin, flashes by the first frame that is bright.
    for (const [place, at] of sound.entries()) offsets.push(at + 0.0107 - (light[place] ?? 0));
  });
  expect(offsets.length).toBe(18);
  for (const offset of offsets) expect(Math.abs(offset)).toBeLessThan(0.04);
}, 120_000);
