/** One stream inside the thumbnail publisher: keeps its newest image of each kind in shared memory. */
import type { CloseReason } from '../../core/ingest.ts';
import { PublisherKind } from '../../core/kinds.ts';
import type { PublishableStream, PublisherStream } from '../../core/publishing.ts';
import { addressOf } from '../../core/stream-address.ts';
import { Urgency } from '../../core/urgency.ts';
import type { CrossDomainRules, DeliveryFeed, FeedOpener, Span } from '../../delivery/feed/messages.ts';
import { VideoCodec } from '../../media/codec.ts';
import type { Packet } from '../../media/packet.ts';
import type { Track } from '../../media/track.ts';
import { ImageKind, type ThumbnailUpdate } from './wire/updates.ts';

/** `Publishers/Thumbnail` of an application. */
export interface ThumbnailSettings {
  readonly crossDomains?: CrossDomainRules | undefined;
}

const KINDS: Partial<Record<VideoCodec, ImageKind>> = {
  [VideoCodec.JPEG]: ImageKind.JPG,
  [VideoCodec.PNG]: ImageKind.PNG,
  [VideoCodec.WEBP]: ImageKind.WEBP,
};

interface KeptImage {
  /** The track that provides the images of this kind. */
  readonly trackId: number;
  /** The newest image; null before the first. */
  spans: readonly Span[] | null;
}

/** Made by the publisher, closed by the core, which frees the images. A second `close` has no effect. */
export class ThumbnailStream implements PublisherStream {
  /** No request waits for the next image. */
  readonly urgency = Urgency.NONE;
  readonly #feed: DeliveryFeed;
  readonly #images = new Map<ImageKind, KeptImage>();
  #started = false;
  #closed = false;

  constructor(stream: PublishableStream, settings: ThumbnailSettings, delivery: FeedOpener) {
    this.#feed = delivery.openFeed({
      kind: PublisherKind.THUMBNAIL,
      address: addressOf(stream),
      crossDomains: settings.crossDomains ?? null,
      settings: null,
      bytesPerSecond: 0,
      snapshot: () => this.#snapshot(),
      openSession: (request) => stream.openSession({ ...request, kind: PublisherKind.THUMBNAIL }),
      onBytesSent: (bytes) => stream.meter.countBytes(bytes),
    });
  }

  /** The first image encode of a kind supplies its images; they stay the newest ones when only parameters change. */
  onTracks(tracks: readonly Track[]): void {
    if (this.#closed) return;
    const wanted = new Map<ImageKind, number>();
    for (const track of tracks) {
      const kind = kindOf(track);
      if (kind !== undefined && !wanted.has(kind)) wanted.set(kind, track.id);
    }
    const gone: (readonly Span[])[] = [];
    for (const [kind, kept] of this.#images) {
      if (wanted.get(kind) === kept.trackId) continue;
      if (kept.spans !== null) gone.push(kept.spans);
      this.#images.delete(kind);
    }
    for (const [kind, trackId] of wanted) if (!this.#images.has(kind)) this.#images.set(kind, { trackId, spans: null });
    this.#started = true;
    this.#update({ type: 'kinds', kinds: [...this.#images.keys()] });
    for (const spans of gone) this.#feed.release(spans);
  }

  onPacket(packet: Packet): void {
    if (this.#closed) return;
    const kind = kindOf(packet.track);
    const kept = kind === undefined ? undefined : this.#images.get(kind);
    if (kind === undefined || kept?.trackId !== packet.track.id) return;
    const previous = kept.spans;
    kept.spans = this.#feed.store([packet.data]);
    this.#update({ type: 'image', kind, spans: kept.spans });
    if (previous !== null) this.#feed.release(previous);
  }

  close(_reason: CloseReason): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#images.clear();
    this.#feed.close();
  }

  #snapshot(): ThumbnailUpdate[] {
    if (!this.#started) return [];
    const updates: ThumbnailUpdate[] = [{ type: 'kinds', kinds: [...this.#images.keys()] }];
    for (const [kind, { spans }] of this.#images) if (spans !== null) updates.push({ type: 'image', kind, spans });
    return updates;
  }

  #update(update: ThumbnailUpdate): void {
    this.#feed.update(update);
  }
}

function kindOf(track: Track): ImageKind | undefined {
  return track.type === 'video' ? KINDS[track.codec] : undefined;
}
