/** Cues on their way to the subtitle tracks of a stream: judged, and given their time. */
import { writeCuePayload } from '../containers/webvtt/cue-payload.ts';
import type { Packet } from '../media/packet.ts';
import { MILLISECONDS } from '../media/timebase.ts';
import { EventFormat } from '../media/timed-event.ts';
import type { SubtitleTrack, Track } from '../media/track.ts';
import type { Clock } from '../util/clock.ts';
import { TokenBucket } from '../util/token-bucket.ts';
import type { SourceCue } from './ingest.ts';

/** Name of the group of all subtitles in playlists, and of their tracks in stream information. */
export const SUBTITLE_VARIANT = 'subtitle';
/** Cues of one stream, all languages together. */
const CUES = { burst: 1000, perSecond: 50 } as const;
/** Limits of the duration of a cue, and of its distance from the preceding or following cue, ms. */
export const MAX_CUE_MS = 3_600_000;
/** UTF-16 units of the text of a cue. */
export const MAX_CUE_TEXT = 4096;
/** UTF-16 units of the settings of a cue. */
export const MAX_CUE_SETTINGS = 256;

/** One cue as its sender describes it; times in ms. */
export interface SubtitleCue {
  /** From the end of the cue before it, or from now. */
  readonly startOffset: number;
  readonly duration: number;
  /** Cue settings of WebVTT; empty for none. */
  readonly settings: string;
  /** Cue text of WebVTT. */
  readonly text: string;
}

/** Consecutive cues for the track of one label. */
export interface SubtitleWish {
  readonly label: string;
  readonly cues: readonly SubtitleCue[];
}

/** Counts of accepted and refused cues of a stream. */
export interface CueCounters {
  carried: number;
  /** Too many, too large, or before there was media. */
  refused: number;
}

/** Everything belongs to the stream; the injector needs no closing. */
export interface SubtitleInjectorOptions {
  readonly clock: Clock;
  readonly router: {
    readonly started: boolean;
    readonly tracks: readonly Track[];
    readonly end: number;
    timeOf(seconds: number): number | null;
  };
  /** Cues can still be put onto the tracks. */
  readonly isOpen: () => boolean;
  readonly onPacket: (packet: Packet) => void;
  /** All cues of a client have been passed on. */
  readonly onSent: () => void;
}

/** Tracks of configured renditions, before a stream assigns ids. */
export function subtitleTracks(
  subtitles:
    | {
        readonly enable: boolean;
        readonly defaultLabel?: string | undefined;
        readonly rendition: readonly {
          readonly label: string;
          readonly language: string;
          readonly autoSelect: boolean;
          readonly forced: boolean;
        }[];
      }
    | undefined,
): SubtitleTrack[] {
  if (subtitles?.enable !== true) return [];
  return subtitles.rendition.map(({ label, language, autoSelect, forced }) => ({
    ...{ type: 'subtitle', id: -1, publicName: label, variantName: SUBTITLE_VARIANT, language, characteristics: '' },
    ...{ timebase: MILLISECONDS, bitrateConf: 0, bypass: false },
    isDefault: label === subtitles.defaultLabel,
    ...{ autoSelect, forced },
  }));
}

/** Puts cues onto the subtitle tracks of one inbound stream. Costs nothing while there are no cues. */
export class SubtitleInjector {
  readonly counters: CueCounters = { carried: 0, refused: 0 };
  readonly #options: SubtitleInjectorOptions;
  readonly #budget = new TokenBucket(CUES);

  constructor(options: SubtitleInjectorOptions) {
    this.#options = options;
  }

  /** Media has come: cues can be given a time. */
  get hasTime(): boolean {
    return this.#options.router.started;
  }

  /**
   * Puts cues onto the tracks of their labels, each list from now on. False, without showing any, if a label has no track, or there is no
   * room for all of them.
   */
  send(wishes: readonly SubtitleWish[]): boolean {
    const lists = wishes.map(({ label, cues }) => ({ track: this.#find(({ publicName }) => publicName === label), cues }));
    const all = wishes.flatMap(({ cues }) => cues);
    const isKnown = lists.every(({ track }) => track !== null);
    if (!isKnown || !this.hasTime || !this.#options.isOpen() || !this.#admits(all)) return this.#refuse(all.length);
    for (const { track, cues } of lists) {
      let at = this.#now;
      for (const cue of cues) {
        const start = Math.max(0, at + cue.startOffset);
        if (track !== null) this.#emit(track, start, cue);
        at = start + cue.duration;
      }
    }
    this.#options.onSent();
    return true;
  }

  /** Puts a cue that the source brought onto the track of its language; false where there is none, or it cannot be carried. */
  carry(language: string, { at, ...cue }: SourceCue): boolean {
    const track = this.#find((candidate) => sameLanguage(candidate.language, language));
    const seconds = this.#options.router.timeOf(at);
    if (track === null || seconds === null || !this.#options.isOpen() || !this.#admits([cue])) return this.#refuse(1);
    this.#emit(track, Math.max(0, Math.round(seconds * 1000)), cue);
    return true;
  }

  /** Takes the cues from the budget if all of them can be carried; otherwise takes none and returns false. */
  #admits(cues: readonly Omit<SubtitleCue, 'startOffset'>[]): boolean {
    const fit = cues.every(
      ({ text, settings, duration }) =>
        text.length <= MAX_CUE_TEXT && settings.length <= MAX_CUE_SETTINGS && duration > 0 && duration <= MAX_CUE_MS,
    );
    if (!fit) return false;
    const now = this.#options.clock.monotonic();
    for (let taken = 0; taken < cues.length; taken += 1) {
      if (this.#budget.take(now)) continue;
      for (; taken > 0; taken -= 1) this.#budget.giveBack();
      return false;
    }
    return true;
  }

  #emit(track: SubtitleTrack, pts: number, { duration, settings, text }: Omit<SubtitleCue, 'startOffset'>): void {
    this.counters.carried += 1;
    const data = writeCuePayload({ settings, text });
    const event = { format: EventFormat.SUBTITLE, target: 'all' } as const;
    this.#options.onPacket({ track, pts, dts: this.#now, duration, keyframe: true, data, event });
  }

  #find(isWanted: (track: SubtitleTrack) => boolean): SubtitleTrack | null {
    for (const track of this.#options.router.tracks) if (track.type === 'subtitle' && isWanted(track)) return track;
    return null;
  }

  #refuse(count: number): false {
    this.counters.refused += count;
    return false;
  }

  /** Where the media ends, ms of the timeline. */
  get #now(): number {
    return Math.round(this.#options.router.end * 1000);
  }
}

/** Whether two language tags match; `en` includes `en-GB`. */
function sameLanguage(a: string, b: string): boolean {
  const [first, second] = [a.toLowerCase(), b.toLowerCase()];
  return first === second || first.startsWith(`${second}-`) || second.startsWith(`${first}-`);
}
