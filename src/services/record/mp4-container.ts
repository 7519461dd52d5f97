/** A recording as MP4: fragments while it runs (see `recording-layout.ts`), so that it can be played after any end. */
import { BoxWriter } from '../../containers/isobmff/box-writer.ts';
import { type FragmentSample, writeFragmentHeader } from '../../containers/isobmff/fragment.ts';
import type { MovieTrack } from '../../containers/isobmff/movie-box.ts';
import { buildRecordingHead } from '../../containers/isobmff/recording-layout.ts';
import { hasSampleEntry } from '../../containers/isobmff/sample-entry.ts';
import type { Packet } from '../../media/packet.ts';
import { MPEG_90K, rescale, type Timebase } from '../../media/timebase.ts';
import { type AudioTrack, isMediaTrack, type Track, type VideoTrack } from '../../media/track.ts';
import { MAX_HELD_BACK, type RecordContainer } from './record-container.ts';

/** Fragments are written before a run would grow too long, or when this many bytes wait. */
const MAX_RUN_BYTES = 1024 * 1024;
/** The same in packets: with a clock that stands still they may be tiny and last no time. */
const MAX_RUN_PACKETS = 4096;
/**
 * A keyframe begins a run if the last run with one began this long ago, 90 kHz: playback pieces are no shorter, and each run costs a write.
 */
const JOINT_INTERVAL = 315_000;

/** True when an MP4 file can hold the track. */
export function mp4CanCarry(track: Track): track is VideoTrack | AudioTrack {
  return isMediaTrack(track) && hasSampleEntry(track);
}

/** The packets of a track that are not written yet; they become one moof and mdat. */
class Run {
  readonly trackId: number;
  readonly video: boolean;
  readonly timebase: Timebase;
  /** Taken off every dts, in the timebase of the track. */
  readonly origin: number;
  readonly packets: Packet[] = [];
  bytes = 0;
  /** A video track begins with a frame that can be decoded alone. */
  begun: boolean;

  constructor(track: Track, trackId: number, origin: number) {
    this.trackId = trackId;
    this.video = track.type === 'video';
    this.begun = !this.video;
    this.timebase = track.timebase;
    this.origin = origin;
  }
}

/** Writes a fragment on `flush` or when enough is gathered, within the call. Opens no file and needs no closing. */
export class Mp4Container implements RecordContainer {
  readonly #runs = new Map<number, Run>();
  readonly #write: (chunks: readonly Uint8Array[]) => void;
  readonly #writer = new BoxWriter();
  #sequence = 0;
  /** Index of the track that decides where the file can be cut; -1 without video. */
  #leaderId = -1;
  /** When the last run that begins with a keyframe of it began, 90 kHz. */
  #jointAt = Number.NaN;

  /**
   * `first`: the packet the file begins with; its presentation time becomes `startAt` (90 kHz), and tracks are placed
   * relative to it. Only tracks for which `mp4CanCarry` holds are taken.
   */
  constructor(options: {
    tracks: readonly Track[];
    first: Packet;
    /** 90 kHz; 0 lets the file begin at 0. */
    startAt: number;
    write: (chunks: readonly Uint8Array[]) => void;
  }) {
    const { tracks, first, startAt } = options;
    this.#write = options.write;
    const start = rescale(first.pts, first.track.timebase, MPEG_90K) - startAt;
    // The first frame is decoded before it is shown. The tracks begin that much earlier, and an edit skips the time.
    const lead = first.track.type === 'video' ? rescale(first.pts - first.dts, first.track.timebase, MPEG_90K) : 0;
    const entries: MovieTrack[] = [];
    for (const track of tracks) {
      if (!mp4CanCarry(track)) continue;
      const trackId = entries.length + 1;
      if (track.type === 'video' && this.#leaderId < 0) this.#leaderId = track.id;
      const delay = track.type === 'video' ? rescale(lead, MPEG_90K, track.timebase) : 0;
      this.#runs.set(track.id, new Run(track, trackId, rescale(start, MPEG_90K, track.timebase) - delay));
      const entry = { track, trackId, timescale: track.timebase.den };
      entries.push(delay > 0 ? { ...entry, editMediaTime: delay } : entry);
    }
    this.#write([buildRecordingHead(entries)]);
  }

  get pending(): number {
    let bytes = 0;
    for (const run of this.#runs.values()) bytes += run.bytes;
    return bytes;
  }

  push(packet: Packet): void {
    const run = this.#runs.get(packet.track.id);
    if (run === undefined || packet.dts < run.origin || !(run.begun || packet.keyframe)) return;
    const { length } = packet.data;
    run.begun = true;
    if (packet.keyframe && packet.track.id === this.#leaderId) {
      const at = rescale(packet.dts, run.timebase, MPEG_90K);
      // Players of the file in segments begin each with a keyframe.
      const isDue = at - this.#jointAt >= JOINT_INTERVAL;
      if (isDue) this.flush();
      if (isDue || Number.isNaN(this.#jointAt)) this.#jointAt = at;
    }
    run.packets.push(packet);
    run.bytes += length;
    const since = run.packets[0]?.dts ?? packet.dts;
    // One more packet of this kind would exceed the limit, so the present ones are written.
    const grown = rescale(packet.dts + 2 * packet.duration - since, run.timebase, MPEG_90K);
    // The other tracks are written with it.
    if (grown > MAX_HELD_BACK || run.bytes >= MAX_RUN_BYTES || run.packets.length >= MAX_RUN_PACKETS) this.flush();
  }

  flush(): void {
    for (const run of this.#runs.values()) this.#writeRun(run);
  }

  #writeRun(run: Run): void {
    const first = run.packets[0];
    if (first === undefined) return;
    this.#sequence += 1;
    this.#writer.reset();
    writeFragmentHeader(this.#writer, {
      trackId: run.trackId,
      sequence: this.#sequence,
      baseDecodeTime: first.dts - run.origin,
      video: run.video,
      samples: run.packets.map(
        (packet, index): FragmentSample => ({
          size: packet.data.length,
          duration: (run.packets[index + 1]?.dts ?? packet.dts + packet.duration) - packet.dts,
          compositionOffset: packet.pts - packet.dts,
          keyframe: packet.keyframe,
        }),
      ),
    });
    this.#write([this.#writer.view(), ...run.packets.map(({ data }) => data)]);
    run.packets.length = 0;
    run.bytes = 0;
  }
}
