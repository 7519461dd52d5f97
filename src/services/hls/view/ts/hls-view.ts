/** Answers requests for HLS over MPEG-TS in a delivery thread. */
import type { DeliveryExchange, OutletView, ViewContext } from '../../../../delivery/outlet/view.ts';
import { WaitingRoom } from '../../../../delivery/outlet/waiting-room.ts';
import { respondWords, Words } from '../../../../delivery/outlet/words.ts';
import { multivariantText } from '../../wire/ts/multivariant-text.ts';
import type { HlsMultivariant, HlsSegment, HlsUpdate } from '../../wire/ts/update.ts';
import { type HlsViewSettings, REWIND_KEY } from '../../wire/view-settings.ts';
import { cacheControl, PLAYLIST_TYPE } from '../header-lines.ts';
import { mediaText } from './media-text.ts';

interface ViewedVariant {
  /** In order of their numbers, without gaps. */
  segments: HlsSegment[];
  /** Media playlists already written, by whether they are rewindable. */
  readonly texts: Map<boolean, Uint8Array>;
}

const SEGMENT_TYPE = 'Content-Type: video/mp2t';
const TS_PREFIX = 'ts:';
const PLAYLIST_EXTENSION = '.m3u8';
const MEDIA_SUFFIX = '_hls.m3u8';
const SEGMENT_SUFFIX = '_hls.ts';
const MEDIA_NAME = /^medialist_(\d+)_hls\.m3u8$/;
const SEGMENT_NAME = /^seg_(\d+)_(\d{1,15})_hls\.ts$/;
/** A player that has not asked for anything for so many segment durations is gone. */
const VIEWER_PATIENCE = 2.5;
/** How long the first segment of a stream is waited for, ms: many players give a stream up whose playlist is empty. */
const START_WAIT = 10_000;
/** Held requests; the thread holds fewer of all streams together (`DeliveryLimits.waiting`). */
const MAX_WAITERS = 100_000;

const encoder = new TextEncoder();

/** Holds requests for a media playlist until it has a segment; nothing else waits. `close` answers them and forgets what there was. */
export class HlsView implements OutletView {
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
    this.#lobby = new WaitingRoom(context, MAX_WAITERS);
  }

  update(payload: unknown): void {
    // Both ends are ours: payloads of this outlet are made by HlsStream only.
    const update = payload as HlsUpdate;
    if (update.type === 'playlists') this.#setPlaylists(update.playlists, update.variants);
    else if (update.type === 'conclude') this.#conclude();
    else this.#change(update);
    if (this.#lobby.size > 0) this.#lobby.retry();
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
      respondWords(exchange, 404, Words.NO_PLAYLIST);
      return;
    }
    const rewind = this.#rewind(exchange);
    const query = rewind === this.#settings.defaultRewind ? '' : `${REWIND_KEY}=${rewind ? 'YES' : 'NO'}`;
    const headers = [PLAYLIST_TYPE, ...cacheControl(this.#settings.cacheControl.masterPlaylistMaxAge)];
    exchange.respond(200, headers, [encoder.encode(multivariantText(playlist, query))]);
  }

  #answerMedia(exchange: DeliveryExchange, name: RegExpExecArray | null): void {
    const variantId = name?.[1];
    if (variantId === undefined) {
      respondWords(exchange, 400, Words.NO_NAME);
      return;
    }
    if (this.#variants.has(variantId) && !this.#admit(exchange)) return;
    const answer = (): void => this.#respondMedia(exchange, variantId);
    const attempt = (): boolean => {
      if (!this.#concluded && this.#variants.get(variantId)?.segments.length === 0) return false;
      answer();
      return true;
    };
    if (!attempt() && !this.#lobby.add({ exchange, attempt, giveUp: answer }, START_WAIT)) answer();
  }

  /** With what there is. */
  #respondMedia(exchange: DeliveryExchange, variantId: string): void {
    const variant = this.#variants.get(variantId);
    if (variant === undefined) {
      respondWords(exchange, 404, Words.NO_TRACK);
      return;
    }
    const text = this.#mediaText(variantId, variant, this.#rewind(exchange));
    exchange.respond(200, [PLAYLIST_TYPE, ...cacheControl(this.#settings.cacheControl.chunklistMaxAge)], [text]);
  }

  #mediaText(variantId: string, variant: ViewedVariant, rewind: boolean): Uint8Array {
    const known = variant.texts.get(rewind);
    if (known !== undefined) return known;
    const { dvr, eventPlaylistType, segmentCount, segmentDuration } = this.#settings;
    const text = mediaText({
      variant: variantId,
      segments: rewind && dvr ? variant.segments : variant.segments.slice(-segmentCount),
      segmentDuration,
      event: rewind && eventPlaylistType,
      concluded: this.#concluded,
    });
    const bytes = encoder.encode(text);
    variant.texts.set(rewind, bytes);
    return bytes;
  }

  /** Only upper case counts, as in the reference server. */
  #rewind(exchange: DeliveryExchange): boolean {
    const value = exchange.queryValue(REWIND_KEY);
    return value === 'YES' || (value !== 'NO' && this.#settings.defaultRewind);
  }

  #answerSegment(exchange: DeliveryExchange, name: RegExpExecArray | null): void {
    if (name === null) {
      respondWords(exchange, 400, Words.NO_NAME);
      return;
    }
    const segment = this.#findSegment(name[1] ?? '', Number(name[2]));
    if (segment === undefined) {
      respondWords(exchange, 404, Words.NO_MEDIA);
      return;
    }
    if (!this.#admit(exchange)) return;
    const headers = [SEGMENT_TYPE, ...cacheControl(this.#settings.cacheControl.segmentMaxAge)];
    if (segment.path === null) exchange.respondSpans(200, headers, segment.spans);
    else exchange.respondFile(200, headers, segment.path);
  }

  /** False for a viewer that was sent away; it has its answer then. */
  #admit(exchange: DeliveryExchange): boolean {
    if (this.#context.countViewer(exchange, VIEWER_PATIENCE * this.#settings.segmentDuration * 1000)) return true;
    respondWords(exchange, 401, Words.SENT_AWAY);
    return false;
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
