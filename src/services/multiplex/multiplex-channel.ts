import type { Application } from '../../core/application.ts';
import { type CloseReason, IngestRefused, type IngestStream, type SourcePacket, type SourceTrack } from '../../core/ingest.ts';
import { ProviderKind, SourceType } from '../../core/kinds.ts';
import type { OutboundStream } from '../../core/outbound-stream.ts';
import type { Playlist } from '../../core/playlist.ts';
import { SourceBreaks } from '../../core/source-breaks.ts';
import { addressOf, internalAppName, type StreamAddress, streamOfUrl } from '../../core/stream-address.ts';
import type { StreamLineage } from '../../core/stream-lineage.ts';
import type { StreamSideData } from '../../core/stream-side-data.ts';
import { Urgency } from '../../core/urgency.ts';
import { isMarker } from '../../media/timed-event.ts';
import type { Logger } from '../../util/logger.ts';
import { messageOf } from '../../util/message-of.ts';
import type { ChannelDefinition, ChannelPlaylist, ChannelSource } from './channel-definition.ts';
import { ChannelTime } from './channel-time.ts';
import { isWanted } from './mapped-track.ts';
import { inboundOf, SourceTap } from './source-tap.ts';

/** Just made; waits for a source; on the air with all of them; removed. The spelling is the API's. */
export type ChannelState = 'None' | 'Pulling' | 'Playing' | 'Stopped';

/** Numbers that the reference server tells behind `Failed to mirror stream`. */
const FAULT = { noStreamUrl: 400, noTrack: 404, loop: 508 } as const;

const ELSEWHERE = 'another node makes it';

/** The channel's definition, its application, and the means to find its sources. */
export interface MultiplexChannelOptions {
  readonly definition: ChannelDefinition;
  readonly application: Application;
  /** The output stream of an address; undefined when there is none, or it has no tracks yet. */
  readonly find: (address: StreamAddress) => OutboundStream | undefined;
  /** In words, why the sources of the channel can never all be there, because one of them needs the channel; null: they can. */
  readonly loop: () => string | null;
  /** The sources of all streams of the server, as they are now. */
  readonly lineage: StreamLineage;
  /** Another node makes the channel, or may do so. */
  readonly isOthers?: () => boolean;
  readonly logger: Logger;
}

/** A source of the channel with its present state. */
interface Place {
  readonly source: ChannelSource;
  tap: SourceTap | null;
  /** As told last: the channel keeps the tracks of a source that is away, so that it can go on with them. */
  tracks: readonly SourceTrack[];
}

/** The reason why a channel waits: for clients, and for the log. */
interface Fault {
  readonly message: string;
  readonly why: string;
}

/**
 * A stream made of tracks of other streams of this server. It begins when all its sources are present, and ends with the last one. While a
 * source is absent only its own tracks pause. The owner calls `look` regularly, and `close`.
 */
export class MultiplexChannel {
  readonly definition: ChannelDefinition;
  state: ChannelState = 'None';
  pullingMessage = '';
  readonly #application: Application;
  readonly #find: MultiplexChannelOptions['find'];
  readonly #loop: MultiplexChannelOptions['loop'];
  readonly #lineage: StreamLineage;
  readonly #isOthers: () => boolean;
  readonly #logger: Logger;
  readonly #places: readonly Place[];
  readonly #playlists: readonly Playlist[];
  /** Null until the first packet has come. */
  #ingest: IngestStream | null = null;
  #time = new ChannelTime();
  #ids = new Map<string, number>();
  #lastAt = new Map<number, number>();
  /** The source of the channel's events and subtitles; null without any source. */
  #speaker: Place | null = null;
  readonly #breaks = new SourceBreaks();
  /** Taps are being opened: tracks are announced together. */
  #opening = false;

  constructor({ definition, application, find, loop, lineage, isOthers = () => false, logger }: MultiplexChannelOptions) {
    this.#isOthers = isOthers;
    this.definition = definition;
    this.#application = application;
    this.#find = find;
    this.#loop = loop;
    this.#lineage = lineage;
    this.#logger = logger;
    this.#places = definition.sourceStreams.map((source) => ({ source, tap: null, tracks: [] }));
    this.#playlists = definition.playlists.map(playlistOf);
  }

  get name(): string {
    return this.definition.outputStream.name;
  }

  /** Its stream is there. */
  get onAir(): boolean {
    return this.#ingest !== null;
  }

  /** Looks for sources that are not there; to be called about twice a second. */
  look(): void {
    if (this.state === 'Stopped') return;
    const missing = this.#places.filter(({ tap }) => tap === null);
    const found = missing.map((place) => {
      const stream = this.#streamOf(place);
      return { place, stream, obstacle: this.#obstacle(place, stream) };
    });
    const fault = missing.length > 0 ? this.#fault() : null;
    const obstacle = fault ?? found.find((one) => one.obstacle !== null)?.obstacle ?? null;
    const hasBegun = missing.length < this.#places.length;
    // Asking would claim the channel for this node, although another one may have its sources.
    if ((hasBegun || obstacle === null) && this.#isOthers()) {
      this.#end({ code: 'deleted', detail: ELSEWHERE });
      this.#wait(`Multiplex Channel : ${this.#address}: ${ELSEWHERE}`);
      return;
    }
    // A channel on the air takes every source that comes; a channel that has not begun waits for all of them.
    const usable = fault === null ? found.filter((one) => one.obstacle === null) : [];
    if (usable.length > 0 && (obstacle === null || this.onAir)) this.#open(usable);
    if (obstacle !== null) this.#wait(obstacle.message, obstacle.why);
  }

  /** Ends it for good. Idempotent. */
  close(reason: CloseReason): void {
    if (this.state === 'Stopped') return;
    this.state = 'Stopped';
    this.#end(reason);
  }

  #streamOf({ source }: Place): OutboundStream | undefined {
    const address = streamOfUrl(source.url);
    return address === null ? undefined : this.#find(address);
  }

  /** Why a source cannot be taken now: it is absent, is made of this channel, or has none of the wanted tracks. */
  #obstacle(place: Place, stream: OutboundStream | undefined): Fault | null {
    const { source } = place;
    if (stream === undefined) return { message: this.#waitingFor(place), why: '' };
    const loop = this.#lineage.loopOf(this.#inbound, inboundOf(stream));
    if (loop !== null) return { ...this.#mirrorFault(source, FAULT.loop), why: loop };
    if (stream.tracks.some((track) => isWanted(track, source))) return null;
    return { ...this.#mirrorFault(source, FAULT.noTrack), why: 'the map of the source names none of its tracks' };
  }

  #open(found: readonly { readonly place: Place; readonly stream: OutboundStream | undefined }[]): void {
    this.#opening = true;
    for (const { place, stream } of found) {
      if (stream === undefined) continue;
      const tap = this.#tapOf(place, stream);
      place.tap = tap;
      tap.open(`multiplex channel '${this.#address}'`);
    }
    this.#opening = false;
    this.#chooseSpeaker();
    if (this.#places.every(({ tap }) => tap !== null)) this.#play();
    if (this.#ingest !== null) this.#tellTracks(this.#ingest);
  }

  #tapOf(place: Place, stream: OutboundStream): SourceTap {
    const index = this.#places.indexOf(place);
    const channel = this;
    const tap = new SourceTap({
      ...{ channel: this.#inbound, lineage: this.#lineage, stream, source: place.source, time: this.#time, last: this.#lastAt },
      numbers: { of: (key) => this.#idOf(`${index} ${key}`) },
      listener: {
        get urgency() {
          return channel.#urgency;
        },
        onTracks: (tracks) => this.#onTracks(place, tracks),
        onPacket: (packet) => this.#onPacket(packet),
        onSideData: (data) => this.#onSideData(place, data),
        onEnd: (reason) => this.#onEnd(place, reason),
      },
    });
    return tap;
  }

  /** Before the channel begins, it waits for the source's first packets. */
  get #urgency(): Urgency {
    return this.#ingest?.urgency ?? Urgency.REAL_TIME;
  }

  #idOf(key: string): number {
    const known = this.#ids.get(key);
    if (known !== undefined) return known;
    const id = this.#ids.size;
    this.#ids.set(key, id);
    return id;
  }

  #play(): void {
    this.state = 'Playing';
    this.pullingMessage = '';
    const names = this.#places.flatMap(({ tap }) => tap?.missing ?? []);
    if (names.length > 0) this.#logger.warn({ tracks: names }, `its sources have no track named ${names.join(', ')}`);
    this.#logger.info({ sources: this.#places.map(({ source }) => source.url) }, 'all sources of the multiplex channel are there');
  }

  #wait(message: string, why = ''): void {
    this.state = 'Pulling';
    if (this.pullingMessage === message) return;
    this.pullingMessage = message;
    this.#logger.info({}, why === '' ? message : `${message}: ${why}`);
  }

  #onTracks(place: Place, tracks: readonly SourceTrack[]): void {
    place.tracks = tracks;
    if (this.#ingest !== null && !this.#opening) this.#tellTracks(this.#ingest);
  }

  #onPacket(packet: SourcePacket): void {
    // While taps are opened, or after the stream was refused.
    if (this.state === 'Stopped') return;
    const ingest = this.#ingest ?? this.#begin();
    if (ingest === null) return;
    ingest.countBytes(packet.data.length);
    ingest.push(packet);
  }

  /** The first of the sources that are there: they are often renditions of one programme, and each would say the same. */
  #chooseSpeaker(): void {
    const speaker = this.#places.find(({ tap }) => tap !== null) ?? null;
    if (speaker === this.#speaker) return;
    this.#speaker = speaker;
    for (const end of this.#breaks.end(null)) this.#ingest?.pushEvent(end);
  }

  #onSideData(place: Place, data: StreamSideData): void {
    const ingest = this.#ingest;
    if (ingest === null || place !== this.#speaker) return;
    const at = data.at / 1000;
    if (data.type === 'cue') {
      const { language, duration, settings, text } = data;
      ingest.pushCue(language, { at, duration, settings, text });
      return;
    }
    const event = { ...data.event, data: data.data, at };
    if (!isMarker(event)) ingest.pushEvent(event);
    // Its stream ends the breaks that it begins.
    else if (this.#breaks.admits(event)) ingest.pushEvent({ ...event, settled: true });
  }

  #begin(): IngestStream | null {
    const { outputStream } = this.definition;
    try {
      const ingest = this.#application.openIngest({
        streamName: outputStream.name,
        provider: ProviderKind.MULTIPLEX,
        sourceType: SourceType.MULTIPLEX,
        sourceUrl: '',
        passthrough: outputStream.bypassTranscoder,
        steadyTime: true,
        onClose: (reason) => this.#onStreamEnd(reason),
        onWatched: () => this.#wake(),
        onKeyframeWanted: (id) => this.#requestKeyframe(id),
      });
      this.#ingest = ingest;
      this.#tellTracks(ingest);
      return this.#ingest;
    } catch (error) {
      if (!(error instanceof IngestRefused)) throw error;
      this.#end({ code: 'peer-error', detail: error.message });
      this.#wait(`Multiplex Channel : ${this.#address}: ${error.message}`);
      return null;
    }
  }

  #tellTracks(ingest: IngestStream): void {
    const tracks = this.#places.flatMap((place) => place.tracks).sort((a, b) => a.id - b.id);
    try {
      ingest.setTracks(
        tracks,
        this.#playlists.flatMap((playlist) => withTracks(playlist, tracks) ?? []),
      );
    } catch (error) {
      this.#logger.warn({ err: error }, `the tracks of its sources cannot be read: ${messageOf(error)}`);
    }
  }

  #wake(): void {
    for (const { tap } of this.#places) tap?.stream.wake();
  }

  #requestKeyframe(id: number): void {
    for (const { tap } of this.#places) tap?.requestKeyframe(id);
  }

  #onEnd(place: Place, reason: CloseReason): void {
    place.tap = null;
    if (this.state === 'Stopped') return;
    const others = this.#places.filter(({ tap }) => tap !== null).length;
    this.#chooseSpeaker();
    this.#wait(this.#waitingFor(place), reason.detail);
    if (others > 0 && this.onAir) return;
    this.#end({ code: 'peer-left', detail: `the last source of the multiplex channel has ended: ${reason.detail}` });
  }

  /** The core has ended the stream: silence, the API, another publisher of its name. The next check begins it anew. */
  #onStreamEnd(reason: CloseReason): void {
    this.#ingest = null;
    this.#end(reason);
    if (this.state === 'Stopped') return;
    this.#wait(`Multiplex Channel : ${this.#address}: the stream was closed: ${reason.detail}`);
  }

  /** Leaves all sources; the next run has new tracks and times. */
  #end(reason: CloseReason): void {
    for (const place of this.#places) {
      place.tap?.close();
      place.tap = null;
      place.tracks = [];
    }
    const ingest = this.#ingest;
    this.#ingest = null;
    this.#time = new ChannelTime();
    this.#ids = new Map();
    this.#lastAt = new Map();
    this.#speaker = null;
    this.#breaks.end(null);
    ingest?.close(reason);
  }

  /** The reason why the channel cannot begin, whatever sources come. */
  #fault(): Fault | null {
    const unsupported = this.definition.sourceStreams.find(({ url }) => streamOfUrl(url) === null);
    if (unsupported !== undefined)
      return { ...this.#mirrorFault(unsupported, FAULT.noStreamUrl), why: 'sources are stream://<vhost>/<app>/<stream>' };
    if (this.onAir) return null;
    const loop = this.#loop();
    const [first] = this.definition.sourceStreams;
    if (loop !== null && first !== undefined) return { ...this.#mirrorFault(first, FAULT.loop), why: loop };
    try {
      const { name: streamName, bypassTranscoder: passthrough } = this.definition.outputStream;
      this.#application.checkIngest({ streamName, provider: ProviderKind.MULTIPLEX, passthrough });
      return null;
    } catch (error) {
      if (!(error instanceof IngestRefused)) throw error;
      return { message: `Multiplex Channel : ${this.#address}: ${error.message}`, why: '' };
    }
  }

  get #inbound(): StreamAddress {
    const { vhost, name: app } = this.#application;
    return addressOf({ vhost, app, name: this.name });
  }

  get #address(): string {
    return `${internalAppName(this.#application.vhost, this.#application.name)}/${this.name}`;
  }

  #waitingFor({ source }: Place): string {
    return `Multiplex Channel : ${this.#address}: Wait for stream ${streamOfUrl(source.url)?.stream ?? source.url}`;
  }

  #mirrorFault({ url }: ChannelSource, fault: number): { readonly message: string } {
    return { message: `Multiplex Channel : ${this.#address}: Failed to mirror stream ${url} (err : ${fault})` };
  }
}

/** Without the renditions whose tracks are not there; null when none is left. */
function withTracks(playlist: Playlist, tracks: readonly SourceTrack[]): Playlist | null {
  const has = (type: SourceTrack['type'], name: string): boolean =>
    name === '' || tracks.some((track) => track.type === type && track.variantName === name);
  const renditions = playlist.renditions.filter(
    ({ videoVariantName, audioVariantName }) => has('video', videoVariantName) && has('audio', audioVariantName),
  );
  return renditions.length === 0 ? null : { ...playlist, renditions };
}

function playlistOf({ name, fileName, options, renditions }: ChannelPlaylist): Playlist {
  return {
    name,
    fileName,
    options: { ...options, enableSubtitles: true },
    renditions: renditions.map((rendition) => ({
      name: rendition.name,
      videoVariantName: rendition.video ?? '',
      audioVariantName: rendition.audio ?? '',
      videoIndexHint: rendition.videoIndexHint ?? -1,
      audioIndexHint: rendition.audioIndexHint ?? -1,
    })),
  };
}
