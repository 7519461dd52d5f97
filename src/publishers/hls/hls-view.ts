/** Answers requests for HLS over MPEG-TS in an egress thread. */
import type { DeliveryExchange, OutletView, ViewContext } from '../outlet/view.ts';
import { mediaText, multivariantText } from './playlist-text.ts';
import type { HlsViewSettings } from './settings.ts';
import type { HlsMultivariant, HlsSegment, HlsUpdate } from './updates.ts';

interface ViewedVariant {
  /** In order of their numbers, without gaps. */
  segments: HlsSegment[];
  /** Text of the media playlist; null when it must be written anew. */
  text: Uint8Array | null;
}

const PLAYLIST_TYPE = 'Content-Type: application/vnd.apple.mpegurl';
const SEGMENT_TYPE = 'Content-Type: video/mp2t';
const TS_PREFIX = 'ts:';
const PLAYLIST_EXTENSION = '.m3u8';
const MEDIA_SUFFIX = '_hls.m3u8';
const SEGMENT_SUFFIX = '_hls.ts';
const MEDIA_NAME = /^medialist_(\d+)_hls\.m3u8$/;
const SEGMENT_NAME = /^seg_(\d+)_(\d{1,15})_hls\.ts$/;
const REWIND_KEY = '_HLS_rewind';
const DEFAULT_REWIND = 'YES';
/** A player that has not asked for anything for so many segment durations is gone. */
const VIEWER_PATIENCE = 2.5;

const encoder = new TextEncoder();

export class HlsView implements OutletView {
  readonly #settings: HlsViewSettings;
  readonly #context: ViewContext;
  readonly #variants = new Map<string, ViewedVariant>();
  /** By file name; null until the stream has started. */
  #playlists: Map<string, HlsMultivariant> | null = null;
  #concluded = false;

  constructor(settings: HlsViewSettings, context: ViewContext) {
    this.#settings = settings;
    this.#context = context;
  }

  update(payload: unknown): void {
    // Both ends are ours: payloads of this outlet are made by HlsStream only.
    const update = payload as HlsUpdate;
    if (update.type === 'playlists') this.#setPlaylists(update.playlists, update.variants);
    else if (update.type === 'segment') this.#append(update.variant, update.segment, update.firstNumber);
    else this.#conclude();
  }

  handle(exchange: DeliveryExchange): boolean {
    const { file } = exchange;
    const multivariant = multivariantName(exchange);
    if (multivariant === null && !file.endsWith(MEDIA_SUFFIX) && !file.endsWith(SEGMENT_SUFFIX)) return false;
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
  }

  #setPlaylists(playlists: readonly HlsMultivariant[], variants: readonly string[]): void {
    this.#playlists = new Map(playlists.map((playlist) => [playlist.fileName, playlist]));
    for (const id of this.#variants.keys()) if (!variants.includes(id)) this.#variants.delete(id);
    for (const id of variants) if (!this.#variants.has(id)) this.#variants.set(id, { segments: [], text: null });
  }

  #append(variantId: string, segment: HlsSegment, firstNumber: number): void {
    const variant = this.#variants.get(variantId);
    if (variant === undefined) return;
    variant.segments.push(segment);
    variant.segments = variant.segments.filter(({ number }) => number >= firstNumber);
    variant.text = null;
  }

  #conclude(): void {
    this.#concluded = true;
    for (const variant of this.#variants.values()) variant.text = null;
  }

  #answerMultivariant(exchange: DeliveryExchange, playlist: HlsMultivariant | undefined): void {
    if (playlist === undefined) {
      exchange.respond(404, [], []);
      return;
    }
    const rewind = exchange.queryValue(REWIND_KEY);
    const query = (rewind === 'YES' || rewind === 'NO') && rewind !== DEFAULT_REWIND ? `${REWIND_KEY}=${rewind}` : '';
    const headers = [PLAYLIST_TYPE, ...cacheControl(this.#settings.cacheControl.masterPlaylistMaxAge)];
    exchange.respond(200, headers, [encoder.encode(multivariantText(playlist, query))]);
  }

  #answerMedia(exchange: DeliveryExchange, name: RegExpExecArray | null): void {
    const variantId = name?.[1];
    const variant = this.#variants.get(variantId ?? '');
    if (variantId === undefined || variant === undefined) {
      exchange.respond(variantId === undefined ? 400 : 404, [], []);
      return;
    }
    this.#context.countViewer(exchange, VIEWER_PATIENCE * this.#settings.segmentDuration * 1000);
    variant.text ??= encoder.encode(
      mediaText({
        variant: variantId,
        segments: variant.segments.slice(-this.#settings.segmentCount),
        segmentDuration: this.#settings.segmentDuration,
        concluded: this.#concluded,
      }),
    );
    exchange.respond(200, [PLAYLIST_TYPE, ...cacheControl(this.#settings.cacheControl.chunklistMaxAge)], [variant.text]);
  }

  #answerSegment(exchange: DeliveryExchange, name: RegExpExecArray | null): void {
    if (name === null) {
      exchange.respond(400, [], []);
      return;
    }
    const segment = this.#findSegment(name[1] ?? '', Number(name[2]));
    if (segment === undefined) {
      exchange.respond(404, [], []);
      return;
    }
    this.#context.countViewer(exchange, VIEWER_PATIENCE * this.#settings.segmentDuration * 1000);
    exchange.respondSpans(200, [SEGMENT_TYPE, ...cacheControl(this.#settings.cacheControl.segmentMaxAge)], segment.spans);
  }

  #findSegment(variantId: string, number: number): HlsSegment | undefined {
    const segments = this.#variants.get(variantId)?.segments;
    return segments?.[number - (segments[0]?.number ?? 0)];
  }
}

/** Name of the multivariant playlist without extension, or null when another kind of file is asked for. */
function multivariantName(exchange: DeliveryExchange): string | null {
  const { file } = exchange;
  if (!file.endsWith(PLAYLIST_EXTENSION) || file.endsWith(MEDIA_SUFFIX)) return null;
  if (file.startsWith(TS_PREFIX)) return file.slice(TS_PREFIX.length, -PLAYLIST_EXTENSION.length);
  return exchange.queryValue('format') === 'ts' ? file.slice(0, -PLAYLIST_EXTENSION.length) : null;
}

function cacheControl(maxAge: number): string[] {
  if (maxAge < 0) return [];
  return [`Cache-Control: ${maxAge === 0 ? 'no-cache, no-store' : `max-age=${maxAge}`}`];
}
