/** Answers the requests for one LL-HLS stream inside a delivery thread. */

import { ErrorTexts, respondText } from '../../../../delivery/feed/error-texts.ts';
import type { DeliveryExchange, DeliveryView, ViewContext } from '../../../../delivery/feed/view.ts';
import { WaitingRoom } from '../../../../delivery/feed/waiting-room.ts';
import { type HlsResource, parseResourceName } from '../../wire/fmp4/resource-name.ts';
import { type PartModel, StreamModel, type TrackModel } from '../../wire/fmp4/stream-model.ts';
import type { LlhlsUpdate } from '../../wire/fmp4/update.ts';
import type { LlhlsViewSettings } from '../../wire/view-settings.ts';
import { type Directives, isAvailable, parseDirectives, tooFar } from './delivery-directives.ts';
import { PlaylistCache } from './playlist-cache.ts';
import { clientOptions, mediaTail, playlistTail } from './query-tail.ts';
import { type ResponseHeaders, responseHeaders } from './response-headers.ts';

/** Maximum wait for the first playlists of a stream, ms. */
const START_WAIT = 10_000;
/** Blocking requests wait three target durations (rfc8216bis §6.2.5.2). */
const WAIT_TARGET_DURATIONS = 3;

const EXTENSION = '.m3u8';

/**
 * Holds requests for media that is about to come (rfc8216bis §6.2.5), as many as the thread allows (`DeliveryLimits.waiting`). `close`
 * answers them all; it may be called twice.
 */
export class LlhlsView implements DeliveryView {
  readonly #settings: LlhlsViewSettings;
  readonly #context: ViewContext;
  readonly #headers: ResponseHeaders;
  readonly #model = new StreamModel();
  readonly #playlists: PlaylistCache;
  /** Requests that came before the stream was playable. */
  readonly #lobby: WaitingRoom;
  readonly #rooms = new Map<number, WaitingRoom>();
  #closed = false;

  constructor(settings: LlhlsViewSettings, context: ViewContext) {
    this.#settings = settings;
    this.#context = context;
    this.#headers = responseHeaders(settings.cacheControl);
    this.#playlists = new PlaylistCache(this.#model, settings);
    this.#lobby = new WaitingRoom(context);
  }

  update(payload: unknown): void {
    for (const update of payload as readonly LlhlsUpdate[]) this.#model.apply(update);
    this.#lobby.retry();
    for (const [trackId, room] of this.#rooms) {
      room.retry();
      if (this.#model.tracks.has(trackId)) continue;
      room.close();
      this.#rooms.delete(trackId);
    }
  }

  handle(exchange: DeliveryExchange): boolean {
    const resource = parseResourceName(exchange.file);
    if (resource !== null) {
      this.#handleChild(exchange, resource);
      return true;
    }
    return this.#handleMultivariant(exchange);
  }

  close(): void {
    this.#closed = true;
    this.#lobby.close();
    for (const room of this.#rooms.values()) room.close();
  }

  #handleMultivariant(exchange: DeliveryExchange): boolean {
    const { file } = exchange;
    if (!file.endsWith(EXTENSION) || file.endsWith('_hls.m3u8') || file.startsWith('ts:')) return false;
    if (exchange.queryValue('format') === 'ts') return false;
    if (!this.#model.started) {
      // The stream exists but has not begun: players of the reference server know 201 as "come again".
      exchange.respond(201, this.#headers.empty, []);
      return true;
    }
    const fileName = file.slice(0, -EXTENSION.length);
    if (!this.#model.multivariants.has(fileName)) return false;
    this.#whenPlayable(
      exchange,
      () => this.#model.playable,
      () => this.#respondMultivariant(exchange, fileName),
    );
    return true;
  }

  /**
   * A cache in front, for which `OriginMode` is meant, has no viewers of its own; but an admission, here or redirected here, is known only
   * by its session. `admitted`: the client of the request was admitted.
   */
  #isSessionless(admitted: boolean): boolean {
    return this.#settings.originMode && !this.#context.guarded && !admitted;
  }

  #respondMultivariant(exchange: DeliveryExchange, fileName: string): void {
    const sessionless = this.#isSessionless(exchange.admission !== null);
    const session = sessionless ? null : this.#context.createSession(exchange);
    if (session === null && !sessionless) {
      respondText(exchange, 429, ErrorTexts.TOO_MANY);
      return;
    }
    const tail = playlistTail(mediaTail(exchange, session?.token ?? null), clientOptions(exchange, this.#settings), this.#settings);
    const pieces = this.#playlists.multivariant(fileName, exchange.admission?.base);
    if (pieces === null) respondText(exchange, 404, ErrorTexts.NO_PLAYLIST);
    else exchange.respondTailored(200, this.#headers.multivariant, pieces, tail);
  }

  #handleChild(exchange: DeliveryExchange, resource: HlsResource): void {
    let token: string | null = null;
    if (this.#isSessionless(exchange.queryValue('session') !== undefined)) this.#context.noteReader();
    else {
      const session = this.#context.session(exchange);
      if (session === null) {
        respondText(exchange, 401, ErrorTexts.NO_SESSION);
        return;
      }
      token = session.token;
    }
    const track = this.#model.tracks.get(resource.trackId);
    if (track === undefined || track.type !== resource.type || resource.runMark !== this.#settings.runMark) {
      respondText(exchange, 404, ErrorTexts.NO_TRACK);
      return;
    }
    if (resource.kind === 'chunklist') this.#handleChunklist(exchange, track, token);
    else if (resource.kind === 'part') this.#handlePart(exchange, track, resource.msn, resource.part);
    else if (resource.kind === 'segment') this.#respondSegment(exchange, track, resource.msn);
    else this.#respondInit(exchange, track, resource.generation);
  }

  #handleChunklist(exchange: DeliveryExchange, track: TrackModel, token: string | null): void {
    const directives = parseDirectives((key) => exchange.queryValue(key));
    if (typeof directives === 'string') {
      this.#refuse(exchange, directives);
      return;
    }
    const ready = (): boolean => this.#model.playable && track.completeCount > 0 && track.partTarget > 0;
    // A viewer that comes before the first media knows the stream from another edge, and is ahead of this edge until it has caught up.
    const isAhead = !ready();
    const attempt = (): boolean => this.#respondIfAvailable(exchange, track, directives, token);
    this.#whenPlayable(exchange, ready, () => {
      if (attempt()) return;
      const problem = isAhead ? null : tooFar(track, directives);
      if (problem === null) this.#wait(exchange, track, attempt);
      else this.#refuse(exchange, problem);
    });
  }

  #respondIfAvailable(exchange: DeliveryExchange, track: TrackModel, directives: Directives, token: string | null): boolean {
    if (!this.#model.concluded && !isAvailable(track, directives)) return false;
    const options = clientOptions(exchange, this.#settings);
    const media = mediaTail(exchange, token);
    const suffix = playlistTail(media, options, this.#settings).slice(media.length);
    const pieces = this.#playlists.media(track, { ...options, skip: directives.skip }, suffix);
    const headers = directives.msn === null ? this.#headers.chunklist : this.#headers.chunklistWithDirectives;
    exchange.respondTailored(200, headers, pieces, media);
    return true;
  }

  #handlePart(exchange: DeliveryExchange, track: TrackModel, msn: number, part: number): void {
    const found = findPart(track, msn, part);
    if (found !== null) this.#respondPart(exchange, track, found);
    else if (this.#model.concluded || !this.#isHinted(track, msn, part)) respondText(exchange, 404, ErrorTexts.NO_MEDIA);
    else
      this.#wait(exchange, track, () => {
        const arrived = findPart(track, msn, part);
        if (arrived !== null) this.#respondPart(exchange, track, arrived);
        // A segment that ends in a gap leaves the part hinted after its end unmade.
        else if (this.#model.concluded || !this.#isHinted(track, msn, part)) respondText(exchange, 404, ErrorTexts.NO_MEDIA);
        else return false;
        return true;
      });
  }

  /** The part is the next one, by its own name or because the segment may end before it. */
  #isHinted(track: TrackModel, msn: number, part: number): boolean {
    const { next } = track;
    if (msn === next.msn && part === next.part) return true;
    return part === 0 ? msn === next.msn + 1 : msn + 1 === next.msn && part === track.segment(msn)?.parts.length;
  }

  #respondPart(exchange: DeliveryExchange, track: TrackModel, part: PartModel): void {
    exchange.respondSpans(200, this.#headers.part[track.type], part.spans);
  }

  #respondSegment(exchange: DeliveryExchange, track: TrackModel, msn: number): void {
    const segment = track.segment(msn);
    const headers = this.#headers.segment[track.type];
    if (segment === null || segment.duration === null || segment.gap) respondText(exchange, 404, ErrorTexts.NO_MEDIA);
    else if (segment.path !== null) exchange.respondFile(200, headers, segment.path);
    else {
      segment.spans ??= segment.whole ?? segment.parts.flatMap((part) => part.spans);
      exchange.respondSpans(200, headers, segment.spans);
    }
  }

  #respondInit(exchange: DeliveryExchange, track: TrackModel, generation: number): void {
    const bytes = track.inits.get(generation);
    if (bytes === undefined) respondText(exchange, 404, ErrorTexts.NO_MEDIA);
    else exchange.respond(200, this.#headers.segment[track.type], [bytes]);
  }

  /** Runs `answer` now, or as soon as `ready` says so; 503 when that takes too long. */
  #whenPlayable(exchange: DeliveryExchange, ready: () => boolean, answer: () => void): void {
    if (ready()) {
      answer();
      return;
    }
    const attempt = (): boolean => {
      if (!ready()) return false;
      answer();
      return true;
    };
    this.#lobby.add({ exchange, attempt, giveUp: () => this.#respondRetry(exchange, ErrorTexts.NOT_YET) }, START_WAIT);
  }

  #wait(exchange: DeliveryExchange, track: TrackModel, attempt: () => boolean): void {
    let room = this.#rooms.get(track.id);
    if (room === undefined) {
      room = new WaitingRoom(this.#context);
      this.#rooms.set(track.id, room);
    }
    const ms = WAIT_TARGET_DURATIONS * Math.max(1, this.#model.targetDuration) * 1000;
    room.add({ exchange, attempt, giveUp: () => this.#respondRetry(exchange, ErrorTexts.LATE) }, ms);
  }

  #refuse(exchange: DeliveryExchange, problem: string): void {
    exchange.respond(400, this.#headers.refusal, [Buffer.from(`${problem}\n`)]);
  }

  #respondRetry(exchange: DeliveryExchange, words: readonly Uint8Array[]): void {
    if (this.#closed) respondText(exchange, 404, ErrorTexts.NO_MEDIA);
    else respondText(exchange, 503, words, this.#headers.retry);
  }
}

/** A part number right behind the end of a finished segment means the first part of the next one. */
function findPart(track: TrackModel, msn: number, part: number): PartModel | null {
  const segment = track.segment(msn);
  if (segment === null || segment.path !== null) return null;
  const found = segment.parts[part];
  if (found !== undefined) return found;
  if (segment.duration === null || part !== segment.parts.length) return null;
  return track.segment(msn + 1)?.parts[0] ?? null;
}
