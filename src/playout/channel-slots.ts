/** The tracks of a channel: they stay the same whatever is on air. */
import { routedConfig } from '../core/access-unit.ts';
import type { SourceAudioTrack, SourceDataTrack, SourceTrack, SourceVideoTrack } from '../core/ingest.ts';
import { BitstreamFormat, VideoCodec } from '../media/codec.ts';
import { MPEG_90K } from '../media/timebase.ts';
import type { Track } from '../media/track.ts';
import { type Conversion, conversionOf } from './conversion.ts';
import { SILENT_TRACK } from './silence.ts';
import { isOfSource, sourceTrackOf } from './source-track.ts';

const VIDEO_ID = 0;
const FIRST_AUDIO_ID = 100;
const DATA_ID = 200;

const EMPTY_TRACK: SourceDataTrack = { type: 'data', id: DATA_ID, timebase: MPEG_90K, bitrateConf: 0 };

/** How one audio track of a channel is called. */
export interface AudioLabel {
  readonly publicName?: string;
  readonly language?: string;
  readonly characteristics?: string;
}

/** One track of the channel. */
export class ChannelSlot {
  readonly id: number;
  readonly type: SourceTrack['type'];
  readonly #label: AudioLabel;
  /** Its announced track; null: none yet. */
  track: SourceTrack | null = null;
  /** Where its sent media ends, ms of the channel. */
  end = Number.NEGATIVE_INFINITY;
  /** End of the frame that is shown last, ms of the channel. */
  lastPts = Number.NEGATIVE_INFINITY;
  /** DTS of the last packet, 1/90000 s. */
  lastDts = Number.NEGATIVE_INFINITY;
  /** When the latest packet is shown, 1/90000 s, including packets that are only references for others. */
  latestPts = Number.NEGATIVE_INFINITY;

  constructor(id: number, type: SourceTrack['type'], label: AudioLabel) {
    this.id = id;
    this.type = type;
    this.#label = label;
  }

  /** `source` as the channel announces it. Throws ProtocolError when its configuration cannot be read. */
  announced(source: SourceTrack): SourceTrack {
    const common = { id: this.id, timebase: MPEG_90K, ...this.#label };
    switch (source.type) {
      case 'video':
        return { ...source, ...common, ...routed(source) };
      case 'audio': {
        const { language = source.language, characteristics = source.characteristics } = this.#label;
        return {
          ...source,
          ...common,
          ...(language !== undefined && { language }),
          ...(characteristics !== undefined && { characteristics }),
        };
      }
      case 'data':
        return { ...source, ...common };
    }
  }
}

/** The arrangement of an item's tracks in the channel. */
export interface Arrangement {
  /** By the id of the source track; tracks that go nowhere are missing. */
  readonly routes: ReadonlyMap<number, readonly ChannelSlot[]>;
  /** Announced tracks while it lasts, by slot; slots with silence or nothing are missing. */
  readonly tracks: ReadonlyMap<ChannelSlot, SourceTrack>;
}

/** The wanted tracks of a channel. */
export interface ChannelSlotsOptions {
  readonly video: boolean;
  readonly audio: readonly AudioLabel[];
  /** Tracks that viewers have already: the first item continues with their codecs and names. */
  readonly present?: readonly Track[];
}

/** Which tracks a channel has. */
export class ChannelSlots {
  readonly video: ChannelSlot | null;
  readonly audio: readonly ChannelSlot[];
  readonly data: ChannelSlot;
  readonly all: readonly ChannelSlot[];

  constructor({ video, audio, present = [] }: ChannelSlotsOptions) {
    const before = present.filter(isOfSource);
    const slot = (id: number, type: SourceTrack['type'], label: AudioLabel, index = 0): ChannelSlot => {
      const known = before.filter((track) => track.type === type)[index];
      const made = new ChannelSlot(id, type, known === undefined ? label : { ...label, ...labelOf(known) });
      if (known !== undefined) made.track = made.announced(sourceTrackOf(known));
      return made;
    };
    this.video = video ? slot(VIDEO_ID, 'video', { publicName: `Video_${VIDEO_ID}` }) : null;
    this.audio = audio.map((label, index) => {
      const id = FIRST_AUDIO_ID + index;
      return slot(id, 'audio', { publicName: `Audio_${id}`, ...label }, index);
    });
    this.data = slot(DATA_ID, 'data', { publicName: `Data_${DATA_ID}` });
    this.all = [...(this.video === null ? [] : [this.video]), ...this.audio, this.data];
  }

  /**
   * Maps the first video to the channel's video, and audio to audio in order. Surplus tracks are left out; missing audio repeats the first
   * audio track. Throws for an item without a required track, and ProtocolError for an unreadable one.
   */
  arrange(sources: readonly SourceTrack[]): Arrangement {
    const routes = new Map<number, ChannelSlot[]>();
    const tracks = new Map<ChannelSlot, SourceTrack>();
    const put = (slot: ChannelSlot, source: SourceVideoTrack | SourceAudioTrack | SourceDataTrack): void => {
      routes.set(source.id, [...(routes.get(source.id) ?? []), slot]);
      tracks.set(slot, slot.announced(source));
    };
    if (this.video !== null) {
      const video = sources.find(({ type }) => type === 'video');
      if (video === undefined) throw new Error('it has no video, which the channel needs');
      put(this.video, video);
    }
    const audio = sources.filter(({ type }) => type === 'audio');
    if (this.video === null && this.audio.length > 0 && audio.length === 0)
      throw new Error('it has no audio, which is all that the channel has');
    this.audio.forEach((slot, index) => {
      const source = audio[index] ?? audio[0];
      if (source !== undefined) put(slot, source);
    });
    const data = sources.find(({ type }) => type === 'data');
    if (data !== undefined) put(this.data, data);
    return { routes, tracks };
  }

  /**
   * The conversions that an item needs to match the announced tracks; with `fromTheFirst` also the conversion of codecs that channels do
   * not support, before any announcement. Throws as `arrange`.
   */
  conversions(sources: readonly SourceTrack[], { fromTheFirst }: { readonly fromTheFirst: boolean }): Conversion[] {
    const { routes } = this.arrange(sources);
    return sources.flatMap((source) => {
      const [slot] = routes.get(source.id) ?? [];
      if (slot === undefined || (slot.track === null && !fromTheFirst)) return [];
      return conversionOf(source, slot.track) ?? [];
    });
  }

  /** The announced tracks while an arrangement lasts: slots outside of it stay as they were. */
  announce({ tracks }: Arrangement): SourceTrack[] {
    return this.all.map((slot) => {
      slot.track = tracks.get(slot) ?? slot.track ?? slot.announced(slot.type === 'data' ? EMPTY_TRACK : SILENT_TRACK);
      return slot.track;
    });
  }
}

function labelOf({ publicName, language, characteristics }: Track): AudioLabel {
  return { publicName, language, characteristics };
}

/** Packets are in the layout of the router before they get here. */
function routed(source: SourceVideoTrack): Partial<SourceVideoTrack> {
  const { codec } = source;
  if (codec !== VideoCodec.H264 && codec !== VideoCodec.H265) return {};
  return { format: BitstreamFormat.LENGTH_PREFIXED, config: routedConfig(source) };
}
