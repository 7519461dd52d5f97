/** Answers requests for HLS over MPEG-TS in a delivery thread. */

import { ErrorTexts, respondText } from '../../../../delivery/feed/error-texts.ts';
import type { DeliveryExchange, DeliveryView, ViewContext } from '../../../../delivery/feed/view.ts';
import { WaitingRoom } from '../../../../delivery/feed/waiting-room.ts';
import { multivariantText } from '../../wire/ts/multivariant-text.ts';
import type { HlsMultivariant, HlsSegment, HlsUpdate } from '../../wire/ts/update.ts';
import { type HlsViewSettings, REWIND_KEY } from '../../wire/view-settings.ts';
import { cacheControl, PLAYLIST_TYPE, VTT_TYPE } from '../header-lines.ts';
import { mediaPieces } from './media-text.ts';

interface ViewedVariant {
  /** In order of their numbers, without gaps. */
  segments: HlsSegment[];
  /** Media playlists already written, by whether they are rewindable; cut where a session belongs, and whole. */
  readonly texts: Map<boolean, { readonly pieces: readonly string[]; readonly whole: Uint8Array }>;
}

const SEGMENT_TYPES = { ts: 'Content-Type: video/mp2t', vtt: VTT_TYPE } as const;
const TS_PREFIX = 'ts:';
const PLAYLIST_EXTENSION = '.m3u8';
const MEDIA_SUFFIX = '_hls.m3u8';
const SEGMENT_SUFFIX = /_hls\.(?:ts|vtt)$/;
const MEDIA_NAME = /^medialist_((?:sub)?\d+)_hls\.m3u8$/;
const SEGMENT_NAME = /^seg_(\d+(?=.*\.ts$)|sub\d+(?=.*\.vtt$))_(\d{1,15})_hls\.(ts|vtt)$/;
/** Segment durations without a request after which a player counts as gone. */
const VIEWER_TIMEOUT_SEGMENTS = 2.5;
/** Maximum wait for the first segment of a stream, ms: many players give up a stream whose playlist is empty. */
const START_WAIT = 10_000;

const encoder = new TextEncoder();

/**
 * Holds requests for a media playlist until it has a segment, as many as the thread allows (`DeliveryLimits.waiting`); nothing else waits.
 * `close` answers them and releases everything.
 */
export class HlsView implements DeliveryView {
  readonly #settings: HlsViewSettings;
  readonly #context: ViewContext;
  readonly #variants = new Map<string, ViewedVariant>();
  /** By file name; null until the stream has started. */
  #playlists: Map<string, HlsMultivariant> | null = null;
  #concluded = false;
  readonly #lobby: WaitingRoom;

  constructor(settings: HlsViewSettings, context: ViewContext) {
    this.#settings = settings;
    this.#context = context;
    this.#lobby = new WaitingRoom(context);
  }

  update(payload: unknown): void {
    // Both ends are ours: payloads of this feed are made by HlsStream only.
    const update = payload as HlsUpdate;
    if (update.type === 'playlists') this.#setPlaylists(update.playlists, update.variants);
    else if (update.type === 'conclude') this.#conclude();
    else this.#change(update);
    if (this.#lobby.size > 0) this.#lobby.retry();
  }

  handle(exchange: DeliveryExchange): boolean {
    const { file } = exchange;
    const multivariant = multivariantName(exchange);
    if (multivariant === null && !file.endsWith(MEDIA_SUFFIX) && !SEGMENT_SUFFIX.test(file)) return false;
    // Players take 201 as "come again": the stream is there, its tracks are not known yet.
    if (this.#playlists === null) exchange.respond(201, [], []);
    else if (multivariant !== null) this.#answerMultivariant(exchange, this.#playlists.get(multivariant));
    else if (file.endsWith(MEDIA_SUFFIX)) this.#answerMedia(exchange, MEDIA_NAME.exec(file));
    else this.#answerSegment(exchange, SEGMENT_NAME.exec(file));
    return true;
  }

  close(): void {
    this.#variants.clear();
    this.#playlists = new Map();
    this.#lobby.close();
  }

  #setPlaylists(playlists: readonly HlsMultivariant[], variants: readonly string[]): void {
    this.#playlists = new Map(playlists.map((playlist) => [playlist.fileName, playlist]));
    for (const id of this.#variants.keys()) if (!variants.includes(id)) this.#variants.delete(id);
    for (const id of variants) if (!this.#variants.has(id)) this.#variants.set(id, { segments: [], texts: new Map() });
  }

  #change(update: Extract<HlsUpdate, { readonly variant: string }>): void {
    const variant = this.#variants.get(update.variant);
    if (variant === undefined) return;
    if (update.type === 'archive') {
      const { number, path } = update;
      variant.segments = variant.segments.map((segment) => (segment.number === number ? { ...segment, path } : segment));
      return;
    }
    if (update.type === 'segment') variant.segments.push(update.segment);
    else variant.segments = variant.segments.filter(({ number }) => number >= update.firstNumber);
    variant.texts.clear();
  }

  #conclude(): void {
    this.#concluded = true;
    for (const variant of this.#variants.values()) variant.texts.clear();
  }

  #answerMultivariant(exchange: DeliveryExchange, playlist: HlsMultivariant | undefined): void {
    if (playlist === undefined) {
      respondText(exchange, 404, ErrorTexts.NO_PLAYLIST);
      return;
    }
    // A client admitted elsewhere and redirected here also has a time limit.
    const hasSession = this.#context.guarded || exchange.admission !== null;
    const session = hasSession ? this.#context.createSession(exchange) : null;
    if (session === null && hasSession) {
      respondText(exchange, 429, ErrorTexts.TOO_MANY);
      return;
    }
    const rewind = this.#rewind(exchange);
    const query = [
      ...(session === null ? [] : [`session=${session.token}`]),
      ...(rewind === this.#settings.defaultRewind ? [] : [`${REWIND_KEY}=${rewind ? 'YES' : 'NO'}`]),
    ].join('&');
    const headers = [PLAYLIST_TYPE, ...cacheControl(this.#settings.cacheControl.masterPlaylistMaxAge)];
    exchange.respond(200, headers, [encoder.encode(multivariantText(playlist, query, exchange.admission?.base))]);
  }

  #answerMedia(exchange: DeliveryExchange, name: RegExpExecArray | null): void {
    const variantId = name?.[1];
    if (variantId === undefined) {
      respondText(exchange, 400, ErrorTexts.NO_NAME);
      return;
    }
    const viewer = this.#variants.has(variantId) ? this.#viewerOf(exchange) : '';
    if (viewer === null) return;
    const answer = (): void => this.#respondMedia(exchange, variantId, viewer);
    const attempt = (): boolean => {
      if (!this.#concluded && this.#variants.get(variantId)?.segments.length === 0) return false;
      answer();
      return true;
    };
    if (!attempt()) this.#lobby.add({ exchange, attempt, giveUp: answer }, START_WAIT);
  }

  /** With the present segments; `viewer` is the query of its URIs. */
  #respondMedia(exchange: DeliveryExchange, variantId: string, viewer: string): void {
    const variant = this.#variants.get(variantId);
    if (variant === undefined) {
      respondText(exchange, 404, ErrorTexts.NO_TRACK);
      return;
    }
    const { pieces, whole } = this.#mediaText(variantId, variant, this.#rewind(exchange));
    const headers = [PLAYLIST_TYPE, ...cacheControl(this.#settings.cacheControl.chunklistMaxAge)];
    if (viewer === '') exchange.respond(200, headers, [whole]);
    else exchange.respondTailored(200, headers, pieces, viewer);
  }

  #mediaText(variantId: string, variant: ViewedVariant, rewind: boolean): { pieces: readonly string[]; whole: Uint8Array } {
    const known = variant.texts.get(rewind);
    if (known !== undefined) return known;
    const { dvr, eventPlaylistType, segmentCount, segmentDuration } = this.#settings;
    const pieces = mediaPieces({
      variant: variantId,
      segments: rewind && dvr ? variant.segments : variant.segments.slice(-segmentCount),
      segmentDuration,
      event: rewind && eventPlaylistType,
      concluded: this.#concluded,
    });
    const text = { pieces, whole: encoder.encode(pieces.join('')) };
    variant.texts.set(rewind, text);
    return text;
  }

  /** Only upper case counts, as in the reference server. */
  #rewind(exchange: DeliveryExchange): boolean {
    const value = exchange.queryValue(REWIND_KEY);
    return value === 'YES' || (value !== 'NO' && this.#settings.defaultRewind);
  }

  #answerSegment(exchange: DeliveryExchange, name: RegExpExecArray | null): void {
    if (name === null) {
      respondText(exchange, 400, ErrorTexts.NO_NAME);
      return;
    }
    const segment = this.#findSegment(name[1] ?? '', Number(name[2]));
    if (segment === undefined) {
      respondText(exchange, 404, ErrorTexts.NO_MEDIA);
      return;
    }
    if (this.#viewerOf(exchange) === null) return;
    const headers = [SEGMENT_TYPES[name[3] === 'vtt' ? 'vtt' : 'ts'], ...cacheControl(this.#settings.cacheControl.segmentMaxAge)];
    if (segment.path === null) exchange.respondSpans(200, headers, segment.spans);
    else exchange.respondFile(200, headers, segment.path);
  }

  /**
   * The query for the URIs in a viewer's playlist, '' for none; null for a refused viewer, which then has its answer. Behind a CDN viewers
   * cannot be told apart and are not counted; an admitted client has a session all the same, with its time limit.
   */
  #viewerOf(exchange: DeliveryExchange): string | null {
    if (this.#context.guarded || exchange.queryValue('session') !== undefined) {
      const session = this.#context.session(exchange);
      if (session !== null) return `?session=${session.token}`;
      respondText(exchange, 401, ErrorTexts.NO_SESSION);
      return null;
    }
    if (this.#settings.originMode) {
      this.#context.noteReader();
      return '';
    }
    if (this.#context.countViewer(exchange, VIEWER_TIMEOUT_SEGMENTS * this.#settings.segmentDuration * 1000)) return '';
    respondText(exchange, 401, ErrorTexts.SENT_AWAY);
    return null;
  }

  #findSegment(variantId: string, number: number): HlsSegment | undefined {
    const segments = this.#variants.get(variantId)?.segments;
    return segments?.[number - (segments[0]?.number ?? 0)];
  }
}

/** Name of the multivariant playlist without extension, or null for other kinds of files. */
function multivariantName(exchange: DeliveryExchange): string | null {
  const { file } = exchange;
  if (!file.endsWith(PLAYLIST_EXTENSION) || file.endsWith(MEDIA_SUFFIX)) return null;
  if (file.startsWith(TS_PREFIX)) return file.slice(TS_PREFIX.length, -PLAYLIST_EXTENSION.length);
  return exchange.queryValue('format') === 'ts' ? file.slice(0, -PLAYLIST_EXTENSION.length) : null;
}
