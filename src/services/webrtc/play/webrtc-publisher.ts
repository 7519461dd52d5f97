/** The WebRTC publisher: knows which streams can be played and opens sessions for viewers. */
import { defaultPlaylist } from '../../../core/default-playlist.ts';
import { DRAINING } from '../../../core/drain.ts';
import { PublisherKind } from '../../../core/kinds.ts';
import type { Playlist } from '../../../core/playlist.ts';
import { NO_ROOM, type PublishableStream, type Publisher } from '../../../core/publishing.ts';
import { addressOf, type StreamAddress, streamKey } from '../../../core/stream-address.ts';
import type { StreamFinder } from '../../../core/stream-demand.ts';
import { UNKNOWN_STREAM } from '../../../core/unknown-stream.ts';
import { VideoCodec } from '../../../media/codec.ts';
import type { AudioTrack, Track, VideoTrack } from '../../../media/track.ts';
import type { Clock } from '../../../util/clock.ts';
import { forEachGuarded } from '../../../util/guarded.ts';
import type { Logger } from '../../../util/logger.ts';
import { ProtocolError } from '../../../util/protocol-error.ts';
import type { StreamTarget } from '../signalling/request-place.ts';
import type { PeerTransport } from '../transport/peer-transport.ts';
import { ViewerReports, type ViewerTotals } from '../webrtc-metrics.ts';
import { isPlayable } from './codec-plan.ts';
import { PlaySession, type PlaySessionOptions } from './play-session.ts';
import { settingsFor, type WebrtcSettings } from './settings.ts';
import { WebrtcStream } from './webrtc-stream.ts';

const DEFAULT_PLAYLIST = 'webrtc_default';
const COUNT_INTERVAL_MS = 1000;

/** Options; the server closes the transport after the publisher. */
export interface WebrtcPublisherOptions {
  readonly transport: PeerTransport;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Finds missing streams; without it there is no search. */
  readonly finder?: StreamFinder;
}

/**
 * Registered in the core, which attaches streams and closes them. Counts bytes by a timer of its own from the beginning, so it needs its
 * `stop`.
 */
export class WebrtcPublisher implements Publisher<WebrtcSettings> {
  readonly kind = PublisherKind.WEBRTC;
  readonly #options: WebrtcPublisherOptions;
  readonly #streams = new Map<string, WebrtcStream>();
  /** Reports of viewers. */
  readonly reports = new ViewerReports();
  readonly #counter: NodeJS.Timeout;

  constructor(options: WebrtcPublisherOptions) {
    this.#options = options;
    this.#counter = setInterval(() => {
      const failed = (_stream: unknown, error: unknown): void =>
        options.logger.error({ err: error }, 'the bytes of a stream could not be counted');
      forEachGuarded(this.#streams.values(), (stream) => stream.countBytes(), failed);
    }, COUNT_INTERVAL_MS);
  }

  /** The first video and the first audio that WebRTC carries. */
  defaultPlaylist(tracks: readonly Track[], settings: WebrtcSettings): Playlist | null {
    if (!settings.createDefaultPlaylist) return null;
    // Not every browser decodes AV1.
    const choice = { canServe: isPlayable, isCommon: ({ codec }: VideoTrack | AudioTrack): boolean => codec !== VideoCodec.AV1 };
    return defaultPlaylist(tracks, choice, {
      name: DEFAULT_PLAYLIST,
      fileName: DEFAULT_PLAYLIST,
      options: { webrtcAutoAbr: false, hlsChunklistPathDepth: -1, enableTsPackaging: false, enableSubtitles: true },
    });
  }

  attach(stream: PublishableStream, settings: WebrtcSettings): WebrtcStream {
    const { transport, clock, logger } = this.#options;
    if (settings.jitterBuffer) {
      logger.warn(
        addressOf(stream),
        'JitterBuffer of the WebRTC publisher has no effect: frames are sent at once, and players buffer them',
      );
    }
    const followed = settingsFor(transport.fanout.kind, settings);
    if (followed.ulpfec !== settings.ulpfec || followed.bandwidthEstimation !== settings.bandwidthEstimation) {
      const text =
        'Ulpfec and TransportCC of the WebRTC publisher need the native addon: viewers get no parities and estimate for themselves';
      logger.warn(addressOf(stream), text);
    }
    const key = streamKey(addressOf(stream));
    const attached = new WebrtcStream({
      stream,
      settings: followed,
      transport,
      clock,
      logger: logger.limited,
      reports: this.reports,
      onClosed: (closed) => {
        if (this.#streams.get(key) === closed) this.#streams.delete(key);
      },
    });
    this.#streams.set(key, attached);
    return attached;
  }

  /** Null when `target` can be opened or refused now; else resolves when an origin was asked for its stream. Never rejects. */
  fetch(target: StreamTarget, client: string): Promise<unknown> | null {
    return this.#streams.has(streamKey(target)) ? null : (this.#options.finder?.find({ query: '', ...target, client }) ?? null);
  }

  /** Opens a session for a viewer. Throws ProtocolError if the stream or playlist is missing or unknown, or has nothing playable. */
  openSession(target: StreamTarget, options: Pick<PlaySessionOptions, 'client' | 'onEnded' | 'onRendition'>): PlaySession {
    const { transport, logger } = this.#options;
    if (this.#options.finder?.draining === true) throw new ProtocolError('WEBRTC_DRAINING', DRAINING);
    const stream = this.#streams.get(streamKey(target));
    if (stream === undefined && this.#options.finder?.isUnknown?.(target) === true) throw new ProtocolError('WEBRTC_MAP', UNKNOWN_STREAM);
    if (stream === undefined) throw new ProtocolError('WEBRTC_STREAM', `there is no stream '${target.app}/${target.stream}'`);
    const name = target.playlist === '' ? DEFAULT_PLAYLIST : target.playlist;
    const playlist = stream.playlist(name);
    if (playlist === undefined)
      throw new ProtocolError('WEBRTC_PLAYLIST', `stream '${target.app}/${target.stream}' has no playlist '${name}' for WebRTC`);
    if (!stream.published.hasRoom(PublisherKind.WEBRTC)) throw new ProtocolError('WEBRTC_FULL', NO_ROOM);
    return new PlaySession({ ...options, stream, playlist, transport, logger });
  }

  /** Figures of each stream's viewers. */
  *totals(): Iterable<readonly [StreamAddress, ViewerTotals]> {
    for (const stream of this.#streams.values()) yield [stream.fields, stream.totals];
  }

  /** Ends counting; the transport is closed by its owner. Idempotent. */
  stop(): void {
    clearInterval(this.#counter);
  }
}
