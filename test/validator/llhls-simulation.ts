/** Runs packets through the LL-HLS publisher, and a player that fetches and judges everything on the way. */

import { tmpdir } from 'node:os';
import type { Playlist } from '../../src/core/playlist.ts';
import type { Packet } from '../../src/media/packet.ts';
import type { Track } from '../../src/media/track.ts';
import { DvrStorage } from '../../src/services/hls/dvr/dvr-storage.ts';
import { LlhlsPublisher } from '../../src/services/hls/packager/fmp4/llhls-publisher.ts';
import type { LlhlsStream } from '../../src/services/hls/packager/fmp4/llhls-stream.ts';
import { LlhlsView } from '../../src/services/hls/view/fmp4/llhls-view.ts';
import type { LlhlsSettings } from '../../src/services/hls/wire/settings.ts';
import type { LlhlsViewSettings } from '../../src/services/hls/wire/view-settings.ts';
import { AllowedFolders } from '../../src/util/allowed-folders.ts';
import { Conditions } from '../../src/util/conditions.ts';
import { FakeDelivery } from '../fakes/fake-delivery.ts';
import { FakeStream } from '../fakes/fake-stream.ts';
import { RecordingLogger } from '../fakes/recording-logger.ts';
import type { MediaPlaylist } from '../support/playlist/media-playlist.ts';
import { parseMultivariantPlaylist } from '../support/playlist/multivariant-playlist.ts';
import { LlhlsValidator } from './llhls-validator.ts';

export const DEFAULT_SETTINGS: LlhlsSettings = {
  chunkDuration: 0.5,
  partHoldBack: 1.5,
  segmentDuration: 6,
  segmentCount: 10,
  originMode: false,
  serverTimeBasedSegmentNumbering: false,
  createDefaultPlaylist: true,
  enablePreloadHint: true,
  cacheControl: {
    masterPlaylistMaxAge: 0,
    chunklistMaxAge: 0,
    chunklistWithDirectivesMaxAge: 60,
    segmentMaxAge: -1,
    partialSegmentMaxAge: -1,
  },
};

/** One media playlist under observation. */
export interface WatchedTrack {
  readonly id: number;
  readonly uri: string;
  readonly timescale: number;
  readonly validator: LlhlsValidator;
  playlist: MediaPlaylist | null;
  /** Bytes of parts by URI, in order. */
  readonly parts: Map<string, Uint8Array>;
  /** Decode time (s) at the end of the last part. */
  end: number | null;
  /** Gaps and overlaps between consecutive parts, seconds. */
  readonly jumps: number[];
}

export class LlhlsSimulation {
  readonly delivery = new FakeDelivery((settings, context) => new LlhlsView(settings as LlhlsViewSettings, context));
  readonly source = new FakeStream();
  readonly logger = new RecordingLogger();
  readonly conditions = new Conditions();
  readonly stream: LlhlsStream;
  readonly watched: WatchedTrack[] = [];
  /** Media time (s) of the packet that made the stream playable. */
  playableAt: number | null = null;

  constructor(tracks: readonly Track[], settings: Partial<LlhlsSettings> = {}, playlist: Playlist | null = null) {
    const merged = { ...DEFAULT_SETTINGS, ...settings };
    const { logger, conditions } = this;
    const allowed = new AllowedFolders(null, 'the setting');
    const publisher = new LlhlsPublisher(this.delivery, null, new DvrStorage({ stateFolder: tmpdir(), allowed, conditions, logger }));
    this.stream = publisher.attach(this.source, merged);
    this.source.tracks = tracks;
    const served = playlist ?? publisher.defaultPlaylist(tracks, merged);
    if (served !== null) this.source.playlists = [served];
    this.stream.onTracks(tracks);
  }

  /** Faults found by the validators, by track. */
  get problems(): string[] {
    return this.watched.flatMap((track) => track.validator.problems.map((problem) => `track ${track.id}: ${problem}`));
  }

  /** Passes packets on one by one; after each packet every changed playlist is fetched and judged. */
  run(packets: readonly Packet[]): void {
    for (const packet of packets) {
      const before = this.stream.model.version;
      this.stream.onPacket(packet);
      if (this.stream.model.version === before || !this.stream.model.playable) continue;
      if (this.playableAt === null) {
        this.playableAt = (packet.dts * packet.track.timebase.num) / packet.track.timebase.den;
        this.#join();
      }
      for (const track of this.watched) this.fetch(track);
    }
  }

  /** Fetches the playlist of `track` and all its new parts. */
  fetch(track: WatchedTrack): MediaPlaylist {
    const text = this.delivery.get(track.uri).text;
    const playlist = track.validator.observe(text);
    track.playlist = playlist;
    for (const segment of playlist.segments) {
      for (const part of segment.parts) {
        if (track.parts.has(part.uri)) continue;
        const bytes = this.delivery.get(part.uri).body;
        track.parts.set(part.uri, bytes);
        if (part.uri.includes('.vtt')) continue;
        const { start, end } = track.validator.observePart(part, bytes, track.timescale);
        if (track.end !== null && Math.abs(start - track.end) > 1e-9) track.jumps.push(start - track.end);
        track.end = end;
      }
    }
    return playlist;
  }

  /** Bytes of a media segment and of its parts joined: they must be equal. */
  segmentAndParts(track: WatchedTrack, msn: number): { segment: Uint8Array; parts: Uint8Array } {
    const listed = track.playlist?.segments.find((segment) => segment.msn === msn);
    if (listed === undefined || listed.uri === null) throw new Error(`segment ${msn} is not listed`);
    const pieces = listed.parts.map((part) => track.parts.get(part.uri) ?? new Uint8Array());
    return { segment: this.delivery.get(listed.uri).body, parts: Buffer.concat(pieces) };
  }

  #join(): void {
    const master = parseMultivariantPlaylist(this.delivery.get(`${this.source.playlists[0]?.fileName}.m3u8`).text);
    const uris = [...master.variants.map((variant) => variant.uri), ...master.media.flatMap((media) => media.get('URI') ?? [])];
    for (const uri of uris) {
      const file = uri.split('/').at(-1) ?? '';
      const id = Number(file.split('_')[1]);
      const track = this.source.tracks.find((candidate) => candidate.id === id);
      const timescale = track?.type === 'audio' ? track.sampleRate : (track?.timebase.den ?? 1);
      this.watched.push({
        id,
        uri: file,
        timescale,
        validator: new LlhlsValidator(),
        playlist: null,
        parts: new Map(),
        end: null,
        jumps: [],
      });
    }
  }
}
