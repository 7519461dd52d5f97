/** Publishes to an RTMP server: FLV tags over an RTMP client connection. */
import { serializeAudioTagHeader } from '../../containers/flv/audio-tag.ts';
import { FlvSoundFormat, FlvVideoCodecId, fourCcOf } from '../../containers/flv/fourcc.ts';
import { serializeVideoTagHeader } from '../../containers/flv/video-tag.ts';
import { AudioCodec, VideoCodec } from '../../media/codec.ts';
import type { Packet } from '../../media/packet.ts';
import { toMilliseconds } from '../../media/timebase.ts';
import { EventFormat } from '../../media/timed-event.ts';
import { isMediaTrack, type MediaTrack, type Track } from '../../media/track.ts';
import { ProtocolError } from '../../util/protocol-error.ts';
import { TokenBucket } from '../../util/token-bucket.ts';
import type { AmfValue } from '../../wire/rtmp/amf.ts';
import { PublishClient, RtmpRefused } from '../../wire/rtmp/publish-client.ts';
import { parsePublishUrl } from '../../wire/rtmp/publish-url.ts';
import type { Destination, DestinationOptions } from './destination.ts';
import { PushFailure } from './push-failure.ts';
import { TcpLink } from './tcp-link.ts';
import { enhancedFourCc } from './track-selection.ts';

/** Messages that a receiver may begin and not finish, at once and a second. */
const MAX_DISCARDS_PER_SECOND = 16;

/** Times at the receiver begin at 0. Codecs beyond H.264 and AAC are sent as Enhanced RTMP. */
export class RtmpDestination implements Destination {
  sentBytes = 0;
  readonly dropped = 0;
  readonly #options: DestinationOptions;
  readonly #link: TcpLink;
  readonly #client: PublishClient;
  /** Decoder configurations as the receiver has them, by track. */
  readonly #sent = new Map<number, Track>();
  readonly #pieces: Uint8Array[] = [];
  readonly #deadline: NodeJS.Timeout;
  readonly #discards = new TokenBucket({ burst: MAX_DISCARDS_PER_SECOND, perSecond: MAX_DISCARDS_PER_SECOND });
  /** Media time of the first packet, ms: the receiver's 0. */
  #base: number | null = null;

  /** Begins to connect. Throws `PushFailure` for a URL without application or stream. */
  constructor(options: DestinationOptions) {
    const { request, timeouts } = options;
    const url = parsePublishUrl(request.url, request.streamKey);
    if (url === null) throw new PushFailure('unsuitable', 'the URL must be rtmp://<host>[:<port>]/<application>');
    if (url.stream === '') throw new PushFailure('unsuitable', 'the stream has no name at the receiver: streamKey is missing');
    this.#options = options;
    const fourCcs = this.#tracks.map(enhancedFourCc).filter((fourCc) => fourCc !== null);
    this.#client = new PublishClient({
      app: url.app,
      stream: url.stream,
      tcUrl: url.tcUrl,
      fourCcs,
      send: (bytes) => this.#link.write(bytes),
      onPublishing: () => this.#open(),
      onDiscard: () => this.#countDiscard(),
    });
    this.#link = new TcpLink({
      host: url.host,
      port: url.port,
      secure: url.secure,
      sendTimeout: timeouts.send,
      onConnect: () => this.#converse(() => this.#client.start()),
      onData: (data) => this.#converse(() => this.#client.receive(data)),
      onDrain: () => options.events.onWritable(),
      onFailed: (failure) => {
        clearTimeout(this.#deadline);
        options.events.onFailed(failure);
      },
    });
    this.#deadline = setTimeout(() => {
      this.#link.fail(new PushFailure('timeout', `the receiver took no stream within ${timeouts.connection} ms`));
    }, timeouts.connection);
  }

  write(packet: Packet): boolean {
    const { track } = packet;
    if (track.type === 'data') {
      this.#writeEvent(packet);
      return this.#link.writable;
    }
    if (!isMediaTrack(track)) return this.#link.writable;
    const time = toMilliseconds(packet.dts, track.timebase);
    this.#base ??= time;
    const timestamp = Math.round(time - this.#base);
    // Audio from before the first frame.
    if (timestamp < 0) return this.#link.writable;
    if (this.#sent.get(track.id) !== track) this.#configure(track, timestamp);
    this.#send(track.type, timestamp, [headerOf(packet, track, { timestamp, base: this.#base }), packet.data]);
    return this.#link.writable;
  }

  flush(): void {
    this.#link.flush();
  }

  close(): Promise<void> {
    clearTimeout(this.#deadline);
    this.#client.finish();
    return this.#link.close();
  }

  get #tracks(): readonly MediaTrack[] {
    return this.#options.tracks.filter((track) => isMediaTrack(track));
  }

  /** Runs a step of the protocol; all its output leaves in one write. */
  #converse(step: () => void): void {
    try {
      step();
      this.#link.flush();
    } catch (error) {
      // The peer's last messages before the failure may explain it.
      this.#link.flush();
      this.#link.fail(failureOf(error));
    }
  }

  #countDiscard(): void {
    if (this.#discards.take(this.#options.clock.monotonic())) return;
    throw new ProtocolError('RTMP_DISCARDED', `more than ${MAX_DISCARDS_PER_SECOND} messages a second were begun and not finished`);
  }

  #open(): void {
    const refused = this.#tracks.map(enhancedFourCc).filter((fourCc) => fourCc !== null && !this.#client.takes(fourCc));
    if (refused.length > 0) {
      const codecs = this.#tracks.filter((track) => refused.includes(enhancedFourCc(track))).map(({ codec }) => codec);
      const detail = `the receiver takes no ${codecs.join(', ')} (Enhanced RTMP ${refused.join(', ')}); every receiver takes H264 and AAC`;
      throw new PushFailure('unsuitable', detail);
    }
    clearTimeout(this.#deadline);
    this.#client.metadata(metadataOf(this.#tracks));
    for (const track of this.#tracks) this.#configure(track, 0);
    this.#options.events.onOpen();
  }

  /** Decoder configurations precede the packets that need them. */
  #configure(track: MediaTrack, timestamp: number): void {
    const before = this.#sent.get(track.id);
    this.#sent.set(track.id, track);
    if (track.config === null || !hasConfig(track)) return;
    if (before !== undefined && isMediaTrack(before) && sameBytes(before.config, track.config)) return;
    const header =
      track.type === 'video'
        ? serializeVideoTagHeader({ kind: 'config', codec: track.codec, keyframe: true, compositionTime: 0 })
        : serializeAudioTagHeader({ kind: 'config', codec: track.codec });
    this.#send(track.type, timestamp, [header, track.config]);
  }

  /** RTMP can carry only script data; none is sent before the media. */
  #writeEvent({ event, data, dts, track }: Packet): void {
    if (event?.format !== EventFormat.AMF || this.#base === null) return;
    const timestamp = Math.round(toMilliseconds(dts, track.timebase) - this.#base);
    if (timestamp >= 0) this.#client.data(timestamp, data);
  }

  #send(kind: 'audio' | 'video', timestamp: number, tag: readonly Uint8Array[]): void {
    const pieces = this.#pieces;
    pieces.length = 0;
    this.sentBytes += this.#client.media(kind, timestamp, tag, pieces);
    for (const piece of pieces) this.#link.write(piece);
  }
}

/** Each time is rounded on its own, so that presentation times are as regular as the source's. */
function headerOf({ pts, keyframe }: Packet, track: MediaTrack, { timestamp, base }: { timestamp: number; base: number }): Buffer {
  if (track.type === 'audio') return serializeAudioTagHeader({ kind: 'frame', codec: track.codec });
  const compositionTime = Math.round(toMilliseconds(pts, track.timebase) - base) - timestamp;
  return serializeVideoTagHeader({ kind: 'frame', codec: track.codec, keyframe, compositionTime });
}

/** MP3 frames describe themselves, and so do VP8 ones. */
function hasConfig({ codec }: MediaTrack): boolean {
  return codec !== AudioCodec.MP3 && codec !== VideoCodec.VP8;
}

function metadataOf(tracks: readonly MediaTrack[]): Record<string, AmfValue> {
  const fields: Record<string, AmfValue> = { encoder: 'Millrace' };
  for (const track of tracks) {
    if (track.type === 'video') {
      const { width, height, framerateConf, bitrateConf } = track;
      fields['videocodecid'] = track.codec === VideoCodec.H264 ? FlvVideoCodecId.AVC : fourCcNumber(track);
      Object.assign(fields, { width, height, ...positive('framerate', framerateConf), ...positive('videodatarate', bitrateConf / 1000) });
    } else {
      const { sampleRate, channels, bitrateConf } = track;
      fields['audiocodecid'] = track.codec === AudioCodec.AAC ? FlvSoundFormat.AAC : fourCcNumber(track);
      Object.assign(fields, { audiosamplerate: sampleRate, audiochannels: channels, stereo: channels === 2 });
      Object.assign(fields, positive('audiodatarate', bitrateConf / 1000));
    }
  }
  return fields;
}

/** Enhanced RTMP writes a FourCC as the number its four bytes make. */
function fourCcNumber({ codec }: MediaTrack): number {
  return Buffer.from(fourCcOf(codec) ?? '\0\0\0\0', 'latin1').readUInt32BE(0);
}

/** Unknown figures are omitted. */
function positive(name: string, value: number): Record<string, number> {
  return value > 0 ? { [name]: value } : {};
}

function sameBytes(a: Uint8Array | null, b: Uint8Array): boolean {
  return a !== null && Buffer.compare(a, b) === 0;
}

function failureOf(error: unknown): PushFailure {
  if (error instanceof PushFailure) return error;
  if (error instanceof RtmpRefused) return new PushFailure('refused', `the receiver refused: ${error.message}`);
  if (error instanceof ProtocolError)
    return new PushFailure('protocol', `the receiver broke the protocol: ${error.code}: ${error.message}`);
  return new PushFailure('internal', 'internal error', { cause: error });
}
