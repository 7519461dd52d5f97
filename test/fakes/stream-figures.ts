/** Figures of a stream and its traffic as monitoring reads them. */
import { ProviderKind, PublisherKind, SourceType } from '../../src/core/kinds.ts';
import type { Track } from '../../src/media/track.ts';
import type { OutputFigures, StreamFigures } from '../../src/monitoring/stream-info.ts';
import type { ByteFigures, TrafficFigures } from '../../src/monitoring/traffic-figures.ts';
import { audioTrack, dataTrack, videoTrack } from './synthetic-media.ts';

/** An RTMP stream with video, audio and data, and one output. */
export function fakeStream(name: string): StreamFigures {
  return {
    name,
    createdAt: Date.UTC(2026, 1, 1, 10, 0, 0, 120),
    sourceType: SourceType.RTMP,
    sourceUrl: 'TCP://198.51.100.7:50412',
    tracks: fakeTracks('', ''),
    outputs: [fakeOutput(name)],
    figures: fakeFigures,
  };
}

function fakeOutput(name: string): OutputFigures {
  const rendition = { name: 'default', videoVariantName: 'bypass_video', audioVariantName: 'aac', videoIndexHint: -1, audioIndexHint: -1 };
  const options = { webrtcAutoAbr: false, hlsChunklistPathDepth: -1, enableTsPackaging: false, enableSubtitles: true };
  return {
    name,
    tracks: fakeTracks('bypass_video', 'aac'),
    playlists: [
      { name: 'llhls_default', fileName: 'llhls', options, renditions: [rendition] },
      { name: 'abr', fileName: 'abr', options, renditions: [{ ...rendition, audioVariantName: '' }] },
    ],
    warnings: [],
    figures: fakeFigures,
  };
}

function fakeTracks(video: string, audio: string): Track[] {
  const timebase = { num: 1, den: 1000 };
  return [
    dataTrack(2),
    videoTrack({ variantName: video, timebase, bypass: video !== '', framerateConf: 0 }),
    audioTrack({ variantName: audio, timebase, bypass: video !== '', bitrateConf: 0 }),
  ];
}

function fakeFigures() {
  return {
    bitrateAvg: 2_391_000,
    bitrateLatest: 2_410_000,
    framerateAvg: 30,
    framerateLatest: 29.97,
    keyFrameIntervalAvg: 60,
    keyFrameIntervalLatest: 60,
    deltaFramesSinceLastKeyFrame: 12,
    hasBframes: false,
    maxWidth: 1280,
    maxHeight: 720,
  };
}

/** Counters with different values, so that swapped members are detected. */
export function fakeTraffic(): TrafficFigures {
  const at = Date.UTC(2026, 1, 1, 10, 0, 0, 0);
  const bytes = (base: number): ByteFigures => ({ total: base + 1, lastAt: at + base, last: base + 2, avg: base + 3, max: base + 4 });
  return {
    createdAt: at,
    updatedAt: at + 999,
    in: bytes(100),
    out: bytes(200),
    ingests: countsOf(Object.values(ProviderKind)),
    sessions: countsOf(Object.values(PublisherKind)),
    totalSessions: 28,
    maxTotalSessions: 30,
    maxTotalSessionsAt: at + 500,
  };
}

function countsOf<K extends string>(kinds: readonly K[]): Record<K, number> {
  return Object.fromEntries(kinds.map((kind, index) => [kind, index])) as Record<K, number>;
}
