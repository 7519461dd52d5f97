/** Subtitles in HLS over MPEG-TS: their segments beside those of the video, and the cues in them. */
import { describe, expect, it } from 'vitest';
import { FakeDelivery } from '../../../../../test/fakes/fake-delivery.ts';
import { FakeStream } from '../../../../../test/fakes/fake-stream.ts';
import {
  audioPackets,
  audioTrack,
  constantFrames,
  cuePacket,
  interleave,
  subtitleTrack,
  videoPackets,
  videoTrack,
} from '../../../../../test/fakes/synthetic-media.ts';
import { demuxTs } from '../../../../../test/support/ts-demuxer.ts';
import type { Packet } from '../../../../media/packet.ts';
import type { Track } from '../../../../media/track.ts';
import { HlsView } from '../../view/ts/hls-view.ts';
import type { HlsViewSettings } from '../../wire/view-settings.ts';
import type { ObservedSegment } from '../segment-observer.ts';
import { HlsPublisher } from './hls-publisher.ts';
import { SubtitleSegments } from './subtitle-segments.ts';
import type { VariantSegments } from './variant-segments.ts';

const video = videoTrack();
const audio = audioTrack();
const english = subtitleTrack({ isDefault: true });
const TRACKS: readonly Track[] = [
  video,
  audio,
  english,
  subtitleTrack({ id: 6, publicName: 'Korean\u0001', language: 'auto', forced: true }),
];

function setUp({ enableSubtitles = true, tracks = TRACKS } = {}) {
  const delivery = new FakeDelivery((given, context) => new HlsView(given as HlsViewSettings, context));
  const stream = new FakeStream();
  const rendition = { name: 'r', videoIndexHint: -1, audioIndexHint: -1 };
  const [videoVariantName, audioVariantName] = ['video', 'audio'];
  const options = { webrtcAutoAbr: true, hlsChunklistPathDepth: -1, enableTsPackaging: true, enableSubtitles };
  const renditions = [
    { ...rendition, videoVariantName: '', audioVariantName },
    { ...rendition, videoVariantName, audioVariantName },
  ];
  stream.playlists = [{ name: 'playlist', fileName: 'playlist', options, renditions }];
  stream.tracks = tracks;
  const hls = new HlsPublisher(delivery).attach(stream, { segmentDuration: 2, segmentCount: 4, createDefaultPlaylist: true });
  hls.onTracks(tracks);
  const feed = (seconds: number, cues: readonly Packet[] = [], from = 0) => {
    const frames = videoPackets(video, constantFrames({ rate: 30, gop: 60, seconds, from }));
    for (const packet of interleave(frames, audioPackets(audio, seconds, from), [...cues])) hls.onPacket(packet);
  };
  return { delivery, stream, hls, feed };
}

/** The entries of a playlist, as duration and name. */
function listed(text: string): (readonly [string, string])[] {
  return [...text.matchAll(/#EXTINF:([\d.]+),\n(\S+)/g)].map(([, duration = '', name = '']) => [duration, name]);
}

/** The media playlist of the variant with video. */
function videoPlaylist(delivery: FakeDelivery): string {
  const [, name = ''] = /RESOLUTION[^\n]+\n(\S+)/.exec(delivery.get('ts:playlist.m3u8').text) ?? [];
  return delivery.get(name).text;
}

describe('subtitles in HLS over MPEG-TS', () => {
  it('are offered by their playlists, under their names', () => {
    const { delivery, feed } = setUp();
    feed(9);
    const { text } = delivery.get('ts:playlist.m3u8?_HLS_rewind=NO');
    expect(text.split('\n').filter((line) => line.startsWith('#EXT-X-MEDIA'))).toEqual([
      '#EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID="subtitle",NAME="English",DEFAULT=YES,AUTOSELECT=YES,FORCED=NO,LANGUAGE="en",URI="medialist_sub5_hls.m3u8?_HLS_rewind=NO"',
      '#EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID="subtitle",NAME="Korean",DEFAULT=NO,AUTOSELECT=YES,FORCED=YES,URI="medialist_sub6_hls.m3u8?_HLS_rewind=NO"',
    ]);
    expect(text.match(/,SUBTITLES="subtitle"\n/g)).toHaveLength(2);
  });

  it('have the segments of the video, with the clock of its transport stream', () => {
    const { delivery, feed } = setUp();
    feed(9, [cuePacket(english, [3500, 4500], 'over a cut', { settings: 'line:1' }), cuePacket(english, [5000, 5500], 'inside')]);
    const texts = listed(delivery.get('medialist_sub5_hls.m3u8').text);
    const frames = listed(videoPlaylist(delivery));
    expect(texts.map(([duration]) => duration)).toEqual(frames.map(([duration]) => duration));
    const dates = (text: string) => text.match(/#EXT-X-PROGRAM-DATE-TIME:.*/g);
    expect(dates(delivery.get('medialist_sub5_hls.m3u8').text)).toEqual(dates(videoPlaylist(delivery)));
    const answers = texts.map(([, name]) => delivery.get(name));
    expect(answers.every(({ headers }) => headers.includes('Content-Type: text/vtt; charset=utf-8'))).toBe(true);
    expect(answers.map(({ text }) => [text.includes('over a cut'), text.includes('inside')])).toEqual([
      [false, false],
      [true, false],
      [true, true],
      [false, false],
    ]);
    for (const [index, { text }] of answers.entries()) {
      const [, seconds = '', ticks = ''] = /LOCAL:00:00:([\d.]+),MPEGTS:(\d+)/.exec(text) ?? [];
      expect(Number(seconds)).toBeCloseTo(index * 2, 3);
      const first = demuxTs(delivery.get(frames[index]?.[1] ?? '').body).streams.find(({ streamType }) => streamType === 0x0f);
      // Frames of audio are 1920 ticks long.
      expect(Math.abs(Number(ticks) - (first?.pes[0]?.pts ?? 0))).toBeLessThanOrEqual(1920);
    }
    expect(delivery.request('seg_sub5_0_hls.ts')?.response?.status).toBe(400);
    expect(delivery.request('seg_sub7_0_hls.vtt')?.response?.status).toBe(404);
  });

  it('are left out of playlists with EnableSubtitles off', () => {
    const { delivery, feed } = setUp({ enableSubtitles: false });
    feed(5);
    expect(delivery.get('ts:playlist.m3u8').text).not.toContain('SUBTITLES');
  });

  it('are added and removed with their track, and end with the playlist', () => {
    const { delivery, hls, feed } = setUp({ tracks: [video, audio] });
    feed(5);
    hls.onTracks([video, audio, english]);
    feed(8, [cuePacket(english, [8000, 9000], 'late')], 5);
    const texts = listed(delivery.get('medialist_sub5_hls.m3u8').text);
    expect(texts.length).toBeGreaterThan(1);
    expect(texts.some(([, name]) => delivery.get(name).text.includes('late'))).toBe(true);
    hls.concludeHlsLive();
    expect(delivery.get('medialist_sub5_hls.m3u8').text.endsWith('#EXT-X-ENDLIST\n')).toBe(true);
    const other = setUp();
    other.feed(5);
    other.hls.onTracks([video, audio]);
    expect(other.delivery.get('ts:playlist.m3u8').text).not.toContain('SUBTITLES');
    expect(other.delivery.request('medialist_sub5_hls.m3u8')?.response?.status).toBe(404);
  });

  it('are passed to the observers of finished segments', () => {
    const { hls, feed } = setUp();
    const seen: (Pick<ObservedSegment, 'playlist' | 'uri'> & { readonly text: string })[] = [];
    hls.observe({
      segmentFinished: ({ playlist, uri, read }) => seen.push({ playlist, uri, text: read().toString() }),
      streamEnded: () => undefined,
    });
    feed(5, [cuePacket(english, [1000, 1500], 'kept')]);
    const [first] = seen.filter(({ uri }) => uri.endsWith('.vtt'));
    expect(first).toMatchObject({ playlist: 'medialist_sub5_hls.m3u8', uri: 'seg_sub5_0_hls.vtt' });
    expect(first?.text).toContain('kept');
    expect(hls.plainMultivariants([])[0]?.[1]).toContain('URI="medialist_sub5_hls.m3u8"');
  });
});

it('segments have consecutive numbers, and ended cues are freed', () => {
  const segments = new SubtitleSegments(english, {} as VariantSegments);
  const beside = (number: number, start: number): number => {
    const lead = { number, start, duration: 2, discontinuity: false, discontinuities: 0, tags: '', spans: [] };
    return segments.beside(lead, () => []).number;
  };
  const cue = (start: number) => segments.push(cuePacket(english, [start, start + 100], 'x'.repeat(4096)));
  // The second segment follows another variant, which began later.
  expect([beside(7, 0), beside(3, 2000), beside(4, 4000)]).toEqual([7, 8, 9]);
  for (let turn = 3; turn < 40; turn += 1) {
    cue(turn * 2000 + 100);
    beside(turn + 2, turn * 2000);
  }
  expect(segments.dropped).toBe(0);
});
