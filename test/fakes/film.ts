/** Synthetic films for a channel: whole files in memory, of any frame rate, reordering and audio. */
import type { SourceTrack } from '../../src/core/ingest.ts';
import { AudioCodec, BitstreamFormat, VideoCodec } from '../../src/media/codec.ts';
import type { Timebase } from '../../src/media/timebase.ts';
import type { ItemSource, ItemSources } from '../../src/playout/item-source.ts';
import type { FileEvent } from '../../src/playout/media-file.ts';
import type { ItemSubtitles } from '../../src/playout/sidecars.ts';
import { ASC, AVCC } from '../fixtures/bitstreams.ts';
import { accessUnit, audioTrack, videoTrack } from './source.ts';

export interface FilmOptions {
  readonly seconds: number;
  readonly fps?: number;
  /** Distance of keyframes, frames. */
  readonly gop?: number;
  /** B-frames between two reference frames. */
  readonly bframes?: number;
  /** A keyframe is decoded before the B-frames that are shown before it; `gop` is a multiple of `bframes` + 1. */
  readonly openGop?: boolean;
  /** Hz; 0 for a film without audio. */
  readonly sampleRate?: number;
  readonly audioTracks?: number;
  /** Audio only. */
  readonly silentFilm?: boolean;
  readonly videoCodec?: VideoCodec;
  readonly audioCodec?: AudioCodec;
  /** Configuration of H.264; default: 320x180. */
  readonly config?: Uint8Array;
  /** Time of the first frame, seconds. */
  readonly start?: number;
  /** Delay of the audio relative to the first frame, seconds. */
  readonly audioDelay?: number;
  /** Second at which reading fails. */
  readonly brokenAt?: number;
  /** Second at which reading hangs. */
  readonly hangsAt?: number;
  /** Subtitle files of the item. */
  readonly subtitles?: readonly ItemSubtitles[];
}

const FRAME_SAMPLES = 1024;
const VIDEO_ID = 0;

export class Film {
  readonly options: FilmOptions;
  readonly tracks: readonly SourceTrack[];
  readonly #video: Timebase;
  readonly #audio: Timebase;

  constructor(options: FilmOptions) {
    this.options = options;
    const { fps = 25, sampleRate = 48_000, audioTracks = 1, videoCodec = VideoCodec.H264, audioCodec = AudioCodec.AAC } = options;
    this.#video = { num: 1, den: fps * 1000 };
    this.#audio = { num: 1, den: sampleRate };
    const audio = {
      timebase: this.#audio,
      sampleRate,
      codec: audioCodec,
      config: audioCodec === AudioCodec.AAC ? ascOf(sampleRate) : null,
    };
    const format = audioCodec === AudioCodec.AAC ? BitstreamFormat.AAC_RAW : BitstreamFormat.RAW;
    this.tracks = [
      ...(options.silentFilm === true
        ? []
        : [
            videoTrack({
              id: VIDEO_ID,
              timebase: this.#video,
              codec: videoCodec,
              config: videoCodec === VideoCodec.H264 ? (options.config ?? AVCC.baseline180) : null,
            }),
          ]),
      ...Array.from({ length: sampleRate === 0 ? 0 : audioTracks }, (_, index) => audioTrack({ id: 1 + index, ...audio, format })),
    ];
  }

  /** Duration of the presented media, ms. */
  get length(): number {
    const { fps = 25, seconds } = this.options;
    return (Math.round(seconds * fps) / fps) * 1000;
  }

  /** Starts at the last keyframe at or before `position` seconds. */
  *events(position: number): Generator<FileEvent> {
    const { fps = 25, gop = 50, seconds, bframes = 0, sampleRate = 48_000, start = 0, audioDelay = 0, silentFilm = false } = this.options;
    yield { type: 'tracks', tracks: this.tracks };
    const frames = silentFilm ? 0 : Math.round(seconds * fps);
    const first = Math.floor((position * fps + 0.001) / gop) * gop;
    const from = silentFilm ? position : first / fps;
    const video = this.options.openGop === true ? inOpenOrder(first, frames, bframes) : inDecodingOrder(first, frames, gop, bframes);
    const audioIds = this.tracks.filter(({ type }) => type === 'audio').map(({ id }) => id);
    const samples = audioIds.length === 0 ? 0 : Math.floor((seconds * sampleRate) / FRAME_SAMPLES);
    let sample = Math.floor((from * sampleRate) / FRAME_SAMPLES) || 0;
    let index = 0;
    for (;;) {
      const frame = video[index];
      const videoAt = frame === undefined ? Number.POSITIVE_INFINITY : (first + index - (bframes === 0 ? 0 : 1)) / fps;
      const audioAt = sample < samples ? (sample * FRAME_SAMPLES) / sampleRate + audioDelay : Number.POSITIVE_INFINITY;
      if (frame !== undefined && videoAt <= audioAt) {
        const ticks = (at: number): number => Math.round(start * fps * 1000) + at * 1000;
        const packet = {
          trackId: VIDEO_ID,
          pts: ticks(frame),
          dts: ticks(first + index - (bframes === 0 ? 0 : 1) - (this.options.openGop === true ? bframes : 0)),
          keyframe: frame % gop === 0,
          data: stamped(frame, frame % gop === 0),
        };
        yield { type: 'packet', packet, timebase: this.#video, duration: 1000 };
        index += 1;
        continue;
      }
      if (!Number.isFinite(audioAt)) return;
      const at = Math.round((start + audioDelay) * sampleRate) + sample * FRAME_SAMPLES;
      for (const trackId of audioIds) {
        const data = new Uint8Array(12);
        new DataView(data.buffer).setUint32(0, sample);
        data[4] = trackId;
        yield {
          type: 'packet',
          packet: { trackId, pts: at, dts: at, keyframe: true, data },
          timebase: this.#audio,
          duration: FRAME_SAMPLES,
        };
      }
      sample += 1;
    }
  }
}

/** Number of the frame in a packet of a film. */
export function frameNumber(data: Uint8Array): number {
  return new DataView(data.buffer, data.byteOffset).getUint32(data.length >= 64 ? 16 : 0);
}

/** Films by the path after `file://`. */
export class FilmSources implements ItemSources {
  readonly films: ReadonlyMap<string, Film>;
  readonly opened: { readonly url: string; readonly position: number }[] = [];
  closed = 0;

  constructor(films: Readonly<Record<string, FilmOptions>>) {
    this.films = new Map(Object.entries(films).map(([name, options]) => [`file://${name}`, new Film(options)]));
  }

  length(url: string): number {
    return this.films.get(url)?.length ?? 0;
  }

  async open(url: string, { position }: { readonly position: number }): Promise<ItemSource> {
    this.opened.push({ url, position });
    const film = this.films.get(url);
    if (film === undefined) throw new Error(`ENOENT: no such file, ${url}`);
    const { subtitles, start = 0, brokenAt = Number.POSITIVE_INFINITY, hangsAt = Number.POSITIVE_INFINITY } = film.options;
    const events = film.events(position / 1000);
    return {
      live: false,
      start,
      ...(subtitles !== undefined && { subtitles }),
      next: async () => {
        const { value } = events.next();
        if (value === undefined) return null;
        if (value.type === 'packet') {
          const seconds = (value.packet.dts * value.timebase.num) / value.timebase.den - start;
          if (seconds >= brokenAt) throw new Error('the sample is broken');
          if (seconds >= hangsAt) return await new Promise(() => undefined);
        }
        return value;
      },
      close: () => {
        this.closed += 1;
      },
    };
  }
}

function ascOf(sampleRate: number): Uint8Array {
  const index = [96_000, 88_200, 64_000, 48_000, 44_100, 32_000].indexOf(sampleRate);
  return index < 0 ? ASC.plainStereo48 : new Uint8Array([(2 << 3) | (index >> 1), ((index & 1) << 7) | (2 << 3)]);
}

/** Presentation numbers of frames in decoding order. */
function inDecodingOrder(first: number, frames: number, gop: number, bframes: number): number[] {
  const order: number[] = [];
  for (let key = first; key < frames; key += gop) {
    const end = Math.min(key + gop, frames);
    order.push(key);
    for (let at = key + 1; at < end; at += bframes + 1) {
      const reference = Math.min(at + bframes, end - 1);
      order.push(reference);
      for (let between = at; between < reference; between += 1) order.push(between);
    }
  }
  return order;
}

/** As `inDecodingOrder`, with each reference frame before the B-frames that are shown before it. */
function inOpenOrder(first: number, frames: number, bframes: number): number[] {
  const order: number[] = [];
  for (let at = first; at - bframes < frames; at += bframes + 1) {
    const reference = Math.min(at, frames - 1);
    order.push(reference);
    for (let between = Math.max(0, at - bframes); between < reference; between += 1) order.push(between);
  }
  return order;
}

function stamped(frame: number, keyframe: boolean): Uint8Array {
  const unit = accessUnit(keyframe);
  new DataView(unit.buffer, unit.byteOffset).setUint32(16, frame);
  return unit;
}
