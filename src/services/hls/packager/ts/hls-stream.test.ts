import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import HlsParser from 'hls-parser';
import { describe, expect, it } from 'vitest';
import { FakeDelivery, FakeExchange } from '../../../../../test/fakes/fake-delivery.ts';
import { FakeStream } from '../../../../../test/fakes/fake-stream.ts';
import { dataTrack, interleave } from '../../../../../test/fakes/synthetic-media.ts';
import { type EncodeRequest, encodeMedia } from '../../../../../test/support/encoded-media.ts';
import { decodeComplaints, ffprobe } from '../../../../../test/support/ffprobe.ts';
import { demuxTs } from '../../../../../test/support/ts-demuxer.ts';
import { buildId3Tag } from '../../../../containers/id3/id3-tag.ts';
import { buildCue } from '../../../../containers/markers/cue.ts';
import type { Playlist, PlaylistRendition } from '../../../../core/playlist.ts';
import type { Packet } from '../../../../media/packet.ts';
import { MILLISECONDS, toSeconds } from '../../../../media/timebase.ts';
import type { Track } from '../../../../media/track.ts';
import { HlsView } from '../../view/ts/hls-view.ts';
import type { HlsSettings } from '../../wire/settings.ts';
import type { HlsViewSettings } from '../../wire/view-settings.ts';
import { HlsPublisher } from './hls-publisher.ts';
import type { HlsStream } from './hls-stream.ts';

const SETTINGS: HlsSettings = { segmentDuration: 2, segmentCount: 3, createDefaultPlaylist: true, crossDomains: undefined };
const CLOSED = { code: 'deleted', detail: 'test' } as const;

/** A playlist for transport streams. */
function tsPlaylist(fileName: string, renditions: readonly Partial<PlaylistRendition>[]): Playlist {
  const plain: PlaylistRendition = { name: 'r', videoVariantName: '', audioVariantName: '', videoIndexHint: -1, audioIndexHint: -1 };
  return {
    name: fileName,
    fileName,
    options: { webrtcAutoAbr: true, hlsChunklistPathDepth: -1, enableTsPackaging: true, enableSubtitles: true },
    renditions: renditions.map((rendition) => ({ ...plain, ...rendition })),
  };
}

interface Sample {
  readonly tracks: readonly Track[];
  readonly packets: readonly Packet[];
}

/** Encoded media with its tracks as an output profile names them; ids are moved apart by `offset`. */
function variant(request: EncodeRequest, names: { readonly video?: string; readonly audio?: string; readonly offset?: number }): Sample {
  const sample = encodeMedia(request);
  const renamed = new Map<Track, Track>(
    sample.tracks.map((track) => {
      // Neither bit rate nor frame rate was announced, so playlists have measured values.
      const common = { id: track.id + (names.offset ?? 0), bitrateConf: 0 };
      return track.type === 'video'
        ? [track, { ...track, ...common, variantName: names.video ?? 'video', framerateConf: 0 }]
        : [track, { ...track, ...common, variantName: names.audio ?? 'audio' }];
    }),
  );
  return { tracks: [...renamed.values()], packets: sample.packets.map((packet) => ({ ...packet, track: renamed.get(packet.track)! })) };
}

/** Seconds of presentation. */
function shownFirst(packets: readonly Packet[]): number {
  return Math.min(...packets.filter(({ track }) => track.type === 'video').map(({ pts, track }) => toSeconds(pts, track.timebase)));
}

function secondsOf({ dts, track }: Packet): number {
  return toSeconds(dts, track.timebase);
}

function delayed(packet: Packet, seconds: number): Packet {
  const { num, den } = packet.track.timebase;
  const ticks = (seconds * den) / num;
  return { ...packet, pts: packet.pts + ticks, dts: packet.dts + ticks };
}

const MAIN = variant(
  { seconds: 13, video: 'libx264', audio: 'aac', size: '640x360', gop: 30, extra: ['-preset', 'ultrafast', '-bf', '2'] },
  { video: 'v', audio: 'a' },
);

function setUp(
  playlists: readonly Playlist[],
  settings: HlsSettings = SETTINGS,
): { delivery: FakeDelivery; stream: FakeStream; hls: HlsStream } {
  const delivery = new FakeDelivery((given, context) => new HlsView(given as HlsViewSettings, context));
  const stream = new FakeStream();
  stream.playlists = playlists;
  return { delivery, stream, hls: new HlsPublisher(delivery).attach(stream, settings) };
}

/** URIs of the media playlists of a multivariant playlist. */
function mediaNames(delivery: FakeDelivery, file = 'ts:playlist.m3u8'): string[] {
  return HlsParser.parse(delivery.get(file).text).isMasterPlaylist
    ? delivery
        .get(file)!
        .text.split('\n')
        .filter((line) => line.startsWith('medialist_'))
    : [];
}

function mediaPlaylist(delivery: FakeDelivery, name: string): HlsParser.types.MediaPlaylist {
  return HlsParser.parse(delivery.get(name).text) as HlsParser.types.MediaPlaylist;
}

/** Pushes packets and fetches every segment as soon as it is listed. */
function playThrough(
  hls: HlsStream,
  delivery: FakeDelivery,
  packets: readonly Packet[],
  file = 'ts:playlist.m3u8',
): Map<string, Map<string, Uint8Array>> {
  const fetched = new Map<string, Map<string, Uint8Array>>();
  const look = (): void => {
    for (const name of mediaNames(delivery, file)) {
      const segments = fetched.get(name) ?? new Map<string, Uint8Array>();
      fetched.set(name, segments);
      // Without a response the request waits for the first segment.
      const playlist = delivery.request(name)?.response?.text;
      if (playlist === undefined) continue;
      for (const { uri } of (HlsParser.parse(playlist) as HlsParser.types.MediaPlaylist).segments)
        if (!segments.has(uri)) segments.set(uri, delivery.get(uri).body);
    }
  };
  for (const [index, packet] of packets.entries()) {
    hls.onPacket(packet);
    if (index % 50 === 0) look();
  }
  hls.concludeHlsLive();
  look();
  return fetched;
}

const joined = (segments: Map<string, Uint8Array>): Uint8Array => new Uint8Array(Buffer.concat([...segments.values()]));
const AV = tsPlaylist('playlist', [{ videoVariantName: 'v', audioVariantName: 'a' }]);

it('numbers segments by the server clock when the setting asks for it, and counts no viewers in origin mode', () => {
  const { delivery, hls, stream } = setUp([AV], { ...SETTINGS, serverTimeBasedSegmentNumbering: true, originMode: true });
  hls.onTracks(MAIN.tracks);
  const [segments] = [...playThrough(hls, delivery, MAIN.packets).values()];
  const numbers = [...segments!.keys()].map((uri) => Number(/_(\d+)_hls\.ts$/.exec(uri)?.[1]));
  const first = Math.floor(stream.startedAt / 2000);
  expect(numbers).toEqual(Array.from({ length: 7 }, (_, index) => first + index));
  expect(delivery.context.viewers).toEqual([]);
});

describe('HLS of one rendition with video and audio', () => {
  const { delivery, hls, stream } = setUp([AV]);
  hls.onTracks(MAIN.tracks);
  const [segments] = [...playThrough(hls, delivery, MAIN.packets).values()];

  it('cuts at the first keyframe at or after the target duration', () => {
    expect(segments!.size).toBe(7);
    for (const segment of segments!.values()) {
      const content = demuxTs(segment);
      expect(content.faults).toEqual([]);
      expect(content.pmtVersions).toEqual([0]);
      const random = content.adaptationFlags.find(({ pid }) => pid === content.pcrPid);
      expect(random!.flags & 0x40).toBe(0x40);
    }
  });

  it('makes segments that join to one stream without errors', () => {
    const ts = joined(segments!);
    expect(demuxTs(ts).faults).toEqual([]);
    const { streams, packets, complaints } = ffprobe(ts);
    expect(complaints).toEqual([]);
    expect(decodeComplaints(ts)).toEqual([]);
    expect(streams.map(({ codec_name }) => codec_name)).toEqual(['h264', 'aac']);
    expect(packets.filter(({ codec_type }) => codec_type === 'video')).toHaveLength(390);
  });

  it('lists the last segments with their durations and wall clock', () => {
    const [name] = mediaNames(delivery);
    const playlist = mediaPlaylist(delivery, name!);
    expect(playlist).toMatchObject({ version: 3, targetDuration: 2, mediaSequenceBase: 4, endlist: true });
    expect(playlist.segments.map(({ duration }) => duration)).toEqual([2, 2, 1]);
    expect(playlist.segments.map(({ programDateTime }) => programDateTime!.getTime() - stream.startedAt)).toEqual([8067, 10_067, 12_067]);
  });

  it('keeps three segments after they left the playlist and releases older ones', () => {
    const [name] = mediaNames(delivery);
    const variantId = /\d+/.exec(name!)![0];
    const statuses = [0, 1, 2, 6, 7].map((number) => delivery.get(`seg_${variantId}_${number}_hls.ts`).status);
    expect(statuses).toEqual([404, 200, 200, 200, 404]);
    const kept = [...segments!.values()].slice(1).reduce((sum, { length }) => sum + length, 0);
    expect(delivery.feed.storedBytes).toBe(kept);
  });

  it('sends the complete state to a thread that starts late', () => {
    const { request, view, read } = delivery.feed;
    const late = new HlsView(request.settings as HlsViewSettings, delivery.context);
    for (const payload of request.snapshot()) late.update(structuredClone(payload));
    for (const file of ['ts:playlist.m3u8', ...mediaNames(delivery)]) {
      const [now, later] = [view, late].map((asked) => {
        const exchange = new FakeExchange(file, read);
        asked.handle(exchange);
        return exchange.response;
      });
      expect(later).toEqual(now);
    }
  });
});

describe('HLS of several renditions', () => {
  const small = variant(
    { seconds: 9, video: 'libx264', audio: null, gop: 30, extra: ['-preset', 'ultrafast'] },
    { video: 'small', offset: 100 },
  );
  const { delivery, hls, stream } = setUp([
    tsPlaylist('playlist', [
      { videoVariantName: 'v', audioVariantName: 'a' },
      { videoVariantName: 'small', audioVariantName: 'a' },
      { audioVariantName: 'a' },
      { videoVariantName: 'v' },
    ]),
    tsPlaylist('again', [{ videoVariantName: 'v', audioVariantName: 'a' }]),
    { ...tsPlaylist('other', [{ videoVariantName: 'v' }]), options: { ...AV.options, enableTsPackaging: false } },
  ]);
  stream.figuresById.set(MAIN.tracks[0]!.id, { bitrateLatest: 500_000, bitrateAvg: 400_000, framerateAvg: 29.97 });
  hls.onTracks([...MAIN.tracks, ...small.tracks]);
  const packets = interleave(MAIN.packets, small.packets).filter((packet) => secondsOf(packet) < 8.5);
  const fetched = playThrough(hls, delivery, packets);

  it('cuts all of them at the same times', () => {
    const starts = mediaNames(delivery).map((name) =>
      mediaPlaylist(delivery, name).segments.map(({ programDateTime, mediaSequenceNumber }) => [
        mediaSequenceNumber,
        Math.round(programDateTime!.getTime() / 100),
      ]),
    );
    expect(starts).toHaveLength(4);
    for (const [index, list] of starts.entries()) {
      expect(list, `rendition ${index}`).toHaveLength(3);
      for (const [position, [number, start]] of list.entries()) {
        expect(number).toBe(starts[0]![position]![0]);
        expect(Math.abs(start! - starts[0]![position]![1]!)).toBeLessThanOrEqual(2);
      }
    }
  });

  it('muxes the tracks that each rendition names', () => {
    const codecs = [...fetched.values()].map((segments) =>
      ffprobe(joined(segments)).streams.map(({ codec_name, width }) => width ?? codec_name),
    );
    expect(codecs).toEqual([[640, 'aac'], [320, 'aac'], ['aac'], [640]]);
    for (const segments of fetched.values()) expect(demuxTs(joined(segments)).faults).toEqual([]);
  });

  it('describes them in the multivariant playlist', () => {
    const { variants } = HlsParser.parse(delivery.get('ts:playlist.m3u8').text) as HlsParser.types.MasterPlaylist;
    expect(variants[0]).toMatchObject({
      bandwidth: 500_000,
      averageBandwidth: 400_000,
      frameRate: 29.97,
      resolution: { width: 640, height: 360 },
    });
    expect(variants[0]!.codecs).toMatch(/^avc1\.[0-9a-f]{6},mp4a\.40\.2$/);
    expect(variants[1]).toMatchObject({ bandwidth: 1_000_000, frameRate: 30 });
    expect(variants[2]).toMatchObject({ codecs: 'mp4a.40.2' });
    expect(variants[2]!.resolution).toBeUndefined();
  });

  it('shares a variant between playlists, and serves only playlists for MPEG-TS', () => {
    expect(mediaNames(delivery, 'ts:again.m3u8')).toEqual(mediaNames(delivery).slice(0, 1));
    expect(delivery.get('ts:other.m3u8').status).toBe(404);
    expect(Buffer.from(delivery.get('ts:other.m3u8').body).toString()).toBe('the stream has no playlist of this name\n');
  });
});

describe('HLS over time', () => {
  it('begins with a keyframe of the video', () => {
    const { delivery, hls } = setUp([AV]);
    hls.onTracks(MAIN.tracks);
    const [segments] = [
      ...playThrough(
        hls,
        delivery,
        MAIN.packets.filter((packet) => secondsOf(packet) > 0.5 && secondsOf(packet) < 4.5),
      ).values(),
    ];
    const content = demuxTs(joined(segments!));
    expect(content.faults).toEqual([]);
    expect(content.streams.every(({ pes }) => pes[0]!.dts >= 90_000 * 2 - 10_000)).toBe(true);
    expect(decodeComplaints(joined(segments!))).toEqual([]);
  });

  it('marks a change of the frame size as a discontinuity', () => {
    const { delivery, hls } = setUp([AV], { ...SETTINGS, segmentCount: 4 });
    const other = variant(
      { seconds: 5, video: 'libx264', audio: 'aac', size: '320x240', gop: 30, extra: ['-preset', 'ultrafast'] },
      { video: 'v', audio: 'a' },
    );
    hls.onTracks(MAIN.tracks);
    for (const packet of MAIN.packets.filter((packet) => secondsOf(packet) < 5)) hls.onPacket(packet);
    hls.onTracks(MAIN.tracks.map((track) => ({ ...track, publicName: 'renamed' })));
    hls.onTracks(other.tracks);
    const later = other.packets.map((packet) => delayed(packet, 5));
    for (const packet of later) hls.onPacket(packet);
    const [name] = mediaNames(delivery);
    const playlist = mediaPlaylist(delivery, name!);
    expect(playlist.segments.map(({ discontinuity }) => discontinuity === true)).toEqual([false, false, true, false]);
    const first = delivery.get(playlist.segments[2]!.uri).body;
    expect(ffprobe(first).streams[0]).toMatchObject({ width: 320, height: 240 });
    hls.onTracks(MAIN.tracks);
    for (const packet of MAIN.packets) hls.onPacket(delayed(packet, 10));
    expect(delivery.get(name!).text).toContain('#EXT-X-DISCONTINUITY-SEQUENCE:2\n');
  });

  it.each([
    { what: 'a frame that was cut short', by: 4.975, missing: -0.025 },
    { what: 'a hole of a frame', by: 5.05, missing: 0.05 },
    { what: 'a pause', by: 7, missing: 0 },
  ])('lists media before a change of tracks up to the first frame after it: $what', ({ by, missing }) => {
    const { delivery, hls } = setUp([AV], { ...SETTINGS, segmentCount: 4 });
    const other = variant(
      { seconds: 5, video: 'libx264', audio: 'aac', size: '320x240', gop: 30, extra: ['-preset', 'ultrafast'] },
      { video: 'v', audio: 'a' },
    );
    hls.onTracks(MAIN.tracks);
    for (const packet of MAIN.packets.filter((packet) => secondsOf(packet) < 5)) hls.onPacket(packet);
    hls.onTracks(other.tracks);
    const lead = shownFirst(MAIN.packets) - shownFirst(other.packets);
    for (const packet of other.packets) hls.onPacket(delayed(packet, by + lead));
    const { segments } = mediaPlaylist(delivery, mediaNames(delivery)[0]!);
    const change = segments.findIndex(({ discontinuity }) => discontinuity === true);
    expect(change).toBeGreaterThan(0);
    expect(segments[change - 1]?.duration).toBeCloseTo(1 + missing, 2);
  });

  it('drops a rendition whose tracks were removed and releases its segments', () => {
    const { delivery, hls } = setUp([
      tsPlaylist('playlist', [{ videoVariantName: 'v', audioVariantName: 'a' }, { audioVariantName: 'a' }]),
    ]);
    hls.onTracks(MAIN.tracks);
    for (const packet of MAIN.packets.filter((packet) => secondsOf(packet) < 5)) hls.onPacket(packet);
    const [, audioOnly] = mediaNames(delivery);
    const before = delivery.feed.storedBytes;
    hls.onTracks(MAIN.tracks.filter(({ type }) => type === 'video'));
    expect(mediaNames(delivery)).toHaveLength(1);
    expect(delivery.get(audioOnly!).status).toBe(404);
    expect(delivery.feed.storedBytes).toBeLessThan(before);
  });

  it('lists a longer target duration when a keyframe was late', () => {
    const { delivery, hls } = setUp([AV], { ...SETTINGS, segmentDuration: 1 });
    hls.onTracks(MAIN.tracks);
    let keyframes = 0;
    for (const packet of MAIN.packets) {
      const sparse = packet.track.type === 'video' && packet.keyframe && keyframes++ % 3 !== 0 ? { ...packet, keyframe: false } : packet;
      hls.onPacket(sparse);
    }
    const [name] = mediaNames(delivery);
    expect(mediaPlaylist(delivery, name!)).toMatchObject({ targetDuration: 3 });
  });

  it('carries ID3 but no other data', () => {
    const { delivery, hls } = setUp([AV]);
    const data = dataTrack(9);
    const tag = buildId3Tag([{ type: 'text', id: 'TIT2', text: 'now' }]);
    hls.onTracks([...MAIN.tracks, data]);
    const events = [tag, Uint8Array.of(1, 2, 3)].map(
      (bytes): Packet => ({ track: data, pts: 90_000, dts: 90_000, duration: 0, keyframe: true, data: bytes }),
    );
    const packets = interleave(
      MAIN.packets.filter((packet) => secondsOf(packet) < 3),
      events,
    );
    const [segments] = [...playThrough(hls, delivery, packets).values()];
    const content = demuxTs(joined(segments!));
    expect(content.faults).toEqual([]);
    expect(content.streams.find(({ streamType }) => streamType === 0x15)!.pes.map((pes) => pes.data)).toEqual([tag]);
  });

  it('cuts at the time of a marker and tags the segment, in all variants', () => {
    const { delivery, hls } = setUp([AV]);
    const data = { ...dataTrack(9), timebase: MILLISECONDS };
    hls.onTracks([...MAIN.tracks, data]);
    const marker = (pts: number, bytes: Uint8Array): Packet => ({
      ...{ track: data, pts, dts: pts - 900, duration: 0, keyframe: true, data: bytes, event: { format: 'cue', target: 'all' } },
    });
    const out = marker(3000, buildCue({ type: 'out', duration: 1000, elapsed: 0 }));
    const back = marker(4000, buildCue({ type: 'in', duration: 0, elapsed: 0 }));
    const packets = MAIN.packets.filter((packet) => secondsOf(packet) < 6);
    playThrough(hls, delivery, interleave(packets, [out, back]));
    const [name = ''] = mediaNames(delivery);
    const lines = delivery
      .get(name)
      .text.split('\n')
      .filter((line) => /^#EXT(INF|-X-CUE)/.test(line));
    // Segments of two seconds with a keyframe each second.
    expect(lines.slice(-5)).toEqual([
      '#EXTINF:1.000,',
      '#EXT-X-CUE-OUT:DURATION=1.000',
      '#EXTINF:1.000,',
      '#EXT-X-CUE-IN',
      '#EXTINF:2.000,',
    ]);
  });

  it('is concluded by an event in the stream', () => {
    const { hls } = setUp([AV]);
    const data = dataTrack(9);
    hls.onTracks([...MAIN.tracks, data]);
    const event: Packet = { track: data, pts: 0, dts: 0, duration: 0, keyframe: true, data: new Uint8Array(0) };
    hls.onPacket({ ...event, event: { format: 'id3v2', target: 'all' } });
    expect(hls.concluded).toBe(false);
    hls.onPacket({ ...event, event: { format: 'conclusion', target: 'all' } });
    expect(hls.concluded).toBe(true);
  });

  it('counts malformed packets and continues', () => {
    const { delivery, hls } = setUp([AV]);
    hls.onTracks(MAIN.tracks);
    const broken = MAIN.packets
      .filter((packet) => secondsOf(packet) < 3)
      .map((packet, index) => (index === 20 ? { ...packet, data: Uint8Array.of(9, 9, 9, 9, 9) } : packet));
    const [segments] = [...playThrough(hls, delivery, broken).values()];
    expect(hls.brokenPackets).toBe(broken[20]!.track.type === 'video' ? 1 : 0);
    expect(demuxTs(joined(segments!)).faults).toEqual([]);
  });

  it('stops taking packets when it is concluded or closed, both once', () => {
    const { delivery, hls } = setUp([AV]);
    hls.onTracks(MAIN.tracks);
    hls.concludeHlsLive();
    hls.concludeHlsLive();
    hls.onTracks(MAIN.tracks);
    for (const packet of MAIN.packets) hls.onPacket(packet);
    expect(hls.concluded).toBe(true);
    expect(delivery.feed.updates).toHaveLength(2);
    hls.close(CLOSED);
    hls.close(CLOSED);
    hls.onPacket(MAIN.packets[0]!);
    hls.concludeHlsLive();
    expect(hls.closed).toBe(true);
    expect(delivery.feed.closed).toBe(true);
    expect(delivery.get('ts:playlist.m3u8').status).toBe(404);
  });

  it('reports sessions and bytes to the meter of the stream', () => {
    const { delivery, stream } = setUp([AV], { ...SETTINGS, crossDomains: { urls: ['*'], headers: [] } });
    const { openSession } = delivery.feed.request;
    const sessions = ['a', 'b', 'c'].map((id) => openSession?.({ id, onTerminate: () => undefined }));
    sessions[1]?.close();
    sessions[1]?.close();
    expect(stream.sessions.map(({ request: { id, kind } }) => [id, kind])).toEqual([
      ['a', 'hlsv3'],
      ['c', 'hlsv3'],
    ]);
    delivery.feed.request.onBytesSent(100);
    expect(stream).toMatchObject({ viewers: 2, bytes: 100 });
    expect(delivery.feed.request).toMatchObject({
      kind: 'hlsv3',
      address: { vhost: 'default', app: 'app', stream: 'stream' },
      crossDomains: { urls: ['*'] },
    });
  });
});

describe('HLS with DVR', () => {
  it('serves segments from files after they left memory, until the stream ends', async () => {
    const tempStoragePath = await mkdtemp(join(tmpdir(), 'hls-'));
    const dVR = { enable: true, tempStoragePath, maxDuration: 60, eventPlaylistType: false };
    const { delivery, hls } = setUp([AV], { ...SETTINGS, segmentDuration: 1, segmentCount: 2, dVR });
    hls.onTracks(MAIN.tracks);
    for (const packet of MAIN.packets) hls.onPacket(packet);
    hls.concludeHlsLive();
    await hls.settled;
    const [name] = mediaNames(delivery);
    expect(mediaPlaylist(delivery, `${name}?_HLS_rewind=NO`).segments).toHaveLength(2);
    const { segments } = mediaPlaylist(delivery, name!);
    expect(segments).toHaveLength(13);
    const answers = segments.map(({ uri }) => delivery.get(uri));
    expect(answers.map(({ path }) => path !== null)).toEqual(segments.map((_segment, index) => index < 8));
    const parts = await Promise.all(answers.map(({ path, body }) => (path === null ? body : readFile(path))));
    const ts = new Uint8Array(Buffer.concat(parts));
    expect(demuxTs(ts).faults).toEqual([]);
    expect(decodeComplaints(ts)).toEqual([]);
    hls.close(CLOSED);
    await hls.settled;
    expect((await readdir(tempStoragePath, { recursive: true })).filter((file) => file.endsWith('.ts'))).toEqual([]);
    await rm(tempStoragePath, { recursive: true });
  });
});
