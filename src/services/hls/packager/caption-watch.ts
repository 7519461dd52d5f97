/** Closed captions within the video tracks of one packaged stream: playlists declare the detected ones. */
import { CaptionReader } from '../../../codecs/nal/captions.ts';
import { carriesSei } from '../../../codecs/nal/sei-writer.ts';
import type { Packet } from '../../../media/packet.ts';
import { toMilliseconds } from '../../../media/timebase.ts';
import type { Track } from '../../../media/track.ts';
import { serializeClosedCaptions } from '../../../playlist/multivariant-tags.ts';
import { ProtocolError } from '../../../util/protocol-error.ts';

/** Every frame is examined during this time, ms of media; after that keyframes only. */
const FIRST_MS = 10_000;
const NONE: readonly string[] = [];

interface WatchedVideo {
  readonly reader: CaptionReader;
  /** ms of media. */
  readonly from: number;
  /** In order of their names. */
  channels: readonly string[];
}

/** One for each packaged stream. It examines the data before the first slice, in tracks that can have captions. */
export class CaptionWatch {
  readonly #videos = new Map<number, WatchedVideo>();

  /** Looks into a packet; true when playlists have more to declare. */
  look({ track, dts, keyframe, data }: Packet): boolean {
    if (track.type !== 'video' || !carriesSei(track.codec)) return false;
    let video = this.#videos.get(track.id);
    if (video === undefined) {
      video = { reader: new CaptionReader(), from: toMilliseconds(dts, track.timebase), channels: NONE };
      this.#videos.set(track.id, video);
    }
    if (!keyframe && toMilliseconds(dts, track.timebase) - video.from > FIRST_MS) return false;
    const { reader } = video;
    try {
      reader.read(track.codec, data);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      return false;
    }
    if (reader.channels.size === video.channels.length) return false;
    video.channels = [...reader.channels].sort();
    return true;
  }

  /** Captions detected in a track. */
  of(track: Track | null): readonly string[] {
    return (track === null ? undefined : this.#videos.get(track.id)?.channels) ?? NONE;
  }

  /** Forgets all other tracks. */
  keep(tracks: readonly Track[]): void {
    for (const id of this.#videos.keys()) if (!tracks.some((track) => track.id === id)) this.#videos.delete(id);
  }
}

/** The caption groups of one multivariant playlist: one for each set of channels of its variants. */
export class CaptionGroups {
  readonly #ids = new Map<string, string>();
  #hasServices = false;
  #text = '';

  /** EXT-X-MEDIA of all requested groups. */
  get text(): string {
    return this.#text;
  }

  /** Services of CTA-708 need a later version of the protocol (rfc8216bis §8). */
  get hasServices(): boolean {
    return this.#hasServices;
  }

  /** GROUP-ID for a variant with these channels; null for a variant without channels. */
  idOf(channels: readonly string[]): string | null {
    if (channels.length === 0) return null;
    const key = channels.join();
    const known = this.#ids.get(key);
    if (known !== undefined) return known;
    const groupId = this.#ids.size === 0 ? 'cc' : `cc_${this.#ids.size + 1}`;
    this.#ids.set(key, groupId);
    for (const channel of channels) {
      this.#hasServices ||= channel.startsWith('SERVICE');
      this.#text += serializeClosedCaptions({ groupId, name: channel, instreamId: channel });
    }
    return groupId;
  }
}
