import * as C from 'node-av/constants';
import { Codec, type CodecParameters, FormatContext, Option, Packet } from 'node-av/lib';
import { endOfMedia } from '../../../media/media-end.ts';
import { type Timebase, toSeconds } from '../../../media/timebase.ts';
import { AGAIN, EngineError, NO_TIMESTAMP, throwIfFailed } from './library.ts';

/** A packet of a file as the library has it. */
export type FilePacket = Packet;

/**
 * Containers that hold audio and video in one file. Left out: playlists and descriptions, which name other files (HLS, DASH, concat, SDP,
 * IMF …), single images and their sequences, subtitles, devices, text and raw samples, which any file could pass for.
 */
const CONTAINERS = [
  ...[
    'aac',
    'ac3',
    'aiff',
    'amr',
    'ape',
    'apng',
    'asf',
    'au',
    'avi',
    'av1',
    'caf',
    'dsf',
    'dts',
    'dtshd',
    'dv',
    'ea',
    'eac3',
    'flac',
    'flv',
  ],
  ...['gif', 'gxf', 'h264', 'hevc', 'ivf', 'iff', 'live_flv', 'lxf', 'm4v', 'matroska', 'mjpeg', 'mlp', 'mmf', 'mov', 'mp3', 'mpc', 'mpc8'],
  ...['mpeg', 'mpegts', 'mpegvideo', 'mtv', 'mv', 'mxf', 'nsv', 'nut', 'nuv', 'obu', 'ogg', 'oma', 'paf', 'pva', 'r3d', 'rl2', 'rm', 'roq'],
  ...['rpl', 'rso', 'smk', 'sox', 'swf', 'tak', 'thp', 'truehd', 'tta', 'ty', 'vc1', 'vc1test', 'viv', 'vivo', 'voc', 'vqf', 'w64', 'wav'],
  ...['webm', 'wsvqa', 'wtv', 'wv', 'xa', 'xmv', 'xwma', 'yuv4mpegpipe'],
].join(',');
/** Standard input of the process. Nothing else is opened, whatever the file contains. */
const INPUT = 'fd:';
const PROTOCOLS = 'fd';
const MAX_STREAMS = '64';
/** Consecutive failed reads after which the rest of the file counts as damaged. */
const MAX_FAULTS = 64;
/** Packets that are read to see how codecs describe themselves. */
const MAX_HELD = 128;
const MAX_HELD_BYTES = 16 * 1024 * 1024;
/** Limit of a time in a file: a century. */
const MAX_SECONDS = 3_155_760_000;
const MICROSECONDS_PER_MS = 1000;
const EARLIEST = -(2n ** 62n);

/** A stream of a file that can be played. */
export interface FileStream {
  readonly index: number;
  readonly type: 'video' | 'audio';
  readonly codecId: number;
  /** By the library's name of the decoder; null when it has none. */
  readonly codecName: string | null;
  readonly parameters: CodecParameters;
  readonly extradata: Uint8Array | null;
  /** Its first packet, where it came soon and codecs describe themselves there: they have no `extradata`, or none to rely on (VP9). */
  readonly first: Uint8Array | null;
  readonly timebase: Timebase;
  /** As the file announces it, seconds; null where it does not. */
  readonly start: number | null;
  readonly duration: number | null;
  readonly width: number;
  readonly height: number;
  readonly sarNum: number;
  readonly sarDen: number;
  /** Frames per second; 0 when unknown. */
  readonly framerate: number;
  /** Frames that a decoder holds back to bring them into the order of showing. */
  readonly delay: number;
  readonly sampleRate: number;
  readonly channels: number;
  /** Bits per second; 0 when unknown. */
  readonly bitrate: number;
  /** As the file writes it; empty when it does not. */
  readonly language: string;
}

/**
 * Reads the file that the process was given as its standard input. One operation at a time, and `close` after the last one. The streams
 * live as long as the demuxer.
 */
export class Demuxer {
  /** By the library's name. */
  readonly container: string;
  readonly streams: readonly FileStream[];
  /** Streams that are neither video nor audio, or have no decoder. */
  readonly omitted: readonly string[];
  /** The first frame of video, or of audio where there is none, seconds in the time of the packets, which begins at `startSeconds`. */
  readonly firstFrame: number;
  /** From there to the end, seconds; null when the file does not tell. */
  readonly length: number | null;
  readonly #context: FormatContext;
  #packet = new Packet();
  /** Packets read before the first `read`. */
  readonly #held: FilePacket[] = [];
  /** Where the file begins, µs. */
  readonly #start: bigint;
  #faults = 0;

  private constructor(context: FormatContext, held: readonly FilePacket[]) {
    this.#context = context;
    this.#packet.alloc();
    this.#held.push(...held);
    this.container = context.iformat?.name ?? '';
    const { startTime, duration } = context;
    this.#start = startTime === NO_TIMESTAMP ? 0n : startTime;
    const streams: FileStream[] = [];
    const omitted: string[] = [];
    for (const stream of context.streams) {
      const found = playable(stream, held.find(({ streamIndex }) => streamIndex === stream.index)?.data ?? null);
      if (typeof found !== 'string') streams.push(found);
      else {
        omitted.push(found);
        stream.discard = C.AVDISCARD_ALL;
      }
    }
    this.streams = streams;
    this.omitted = omitted;
    const first = streams.find(({ type }) => type === 'video') ?? streams[0];
    this.firstFrame = first?.start == null ? 0 : first.start - this.startSeconds;
    const total = duration > 0n ? Number(duration) / 1_000_000 : Number.NEGATIVE_INFINITY;
    const end = first?.start == null || first.duration === null ? Number.NEGATIVE_INFINITY : this.firstFrame + first.duration;
    const last = endOfMedia(end, total);
    this.length = last === Number.NEGATIVE_INFINITY ? null : Math.max(0, last - this.firstFrame);
  }

  /** Rejects with EngineError when the file is of no container above, or cannot be understood. */
  static async open(): Promise<Demuxer> {
    const context = new FormatContext();
    context.allocContext();
    const native = context.getNative() as unknown as Parameters<typeof Option.set>[0];
    for (const [name, value] of Object.entries({
      protocol_whitelist: PROTOCOLS,
      format_whitelist: CONTAINERS,
      max_streams: MAX_STREAMS,
    })) {
      throwIfFailed(Option.set(native, name, value), `demuxer: option ${name}`);
    }
    throwIfFailed(await context.openInput(INPUT, null, null), 'no container of video or audio that can be read');
    const code = await context.findStreamInfo(null);
    if (code < 0) await context.closeInput();
    throwIfFailed(code, 'the streams of the file cannot be understood');
    return new Demuxer(context, await firstPackets(context));
  }

  /** Second 0 of the file in the times of its packets, seconds. */
  get startSeconds(): number {
    return Number(this.#start) / 1_000_000;
  }

  /** The next packet, valid until the next call; null at the end. Rejects with EngineError if the rest cannot be read. */
  async read(): Promise<FilePacket | null> {
    this.#packet.unref();
    const held = this.#held.shift();
    if (held !== undefined) {
      this.#packet.free();
      this.#packet = held;
      return held;
    }
    for (;;) {
      const code = await this.#context.readFrame(this.#packet);
      if (code >= 0) {
        this.#faults = 0;
        return this.#packet;
      }
      if (code === C.AVERROR_EOF) return null;
      this.#faults += 1;
      if (code !== AGAIN && this.#faults > MAX_FAULTS) throwIfFailed(code, 'the file cannot be read on');
    }
  }

  /** False for a packet with absurd times. */
  isPlausible({ streamIndex, pts, dts }: FilePacket): boolean {
    const timebase = this.streams.find(({ index }) => index === streamIndex)?.timebase;
    if (timebase === undefined) return false;
    return [pts, dts].every((time) => time === NO_TIMESTAMP || Math.abs(toSeconds(Number(time), timebase)) < MAX_SECONDS);
  }

  /**
   * Goes to the last place at or before `ms` from the beginning of the file at which decoding can begin. Rejects with EngineError when the
   * file has none.
   */
  async seek(ms: number): Promise<void> {
    this.#faults = 0;
    for (const packet of this.#held.splice(0)) packet.free();
    const target = this.#start + BigInt(Math.round(ms * MICROSECONDS_PER_MS));
    let code = await this.#context.seekFile(-1, EARLIEST, target, target);
    // Some containers know no times, but all have a beginning.
    if (code < 0 && ms <= 0) code = await this.#context.seekFrame(-1, 0n, C.AVSEEK_FLAG_BYTE);
    else if (code < 0) code = await this.#context.seekFrame(-1, target, C.AVSEEK_FLAG_BACKWARD);
    throwIfFailed(code, `no way to ${Math.round(ms)} ms`);
  }

  /** No operation may be running. */
  async close(): Promise<void> {
    for (const packet of this.#held.splice(0)) packet.free();
    this.#packet.free();
    await this.#context.closeInput();
  }
}

type NativeStream = FormatContext['streams'][number];

/** The packets up to the first one of each stream without codec data elsewhere. */
async function firstPackets(context: FormatContext): Promise<FilePacket[]> {
  const wanted = new Set<number>();
  for (const { index, codecpar } of context.streams) {
    const isMedia = codecpar.codecType === C.AVMEDIA_TYPE_VIDEO || codecpar.codecType === C.AVMEDIA_TYPE_AUDIO;
    if (isMedia && (codecpar.extradataSize === 0 || codecpar.codecId === C.AV_CODEC_ID_VP9)) wanted.add(index);
  }
  const packets: FilePacket[] = [];
  let bytes = 0;
  while (wanted.size > 0 && packets.length < MAX_HELD && bytes < MAX_HELD_BYTES) {
    const packet = new Packet();
    packet.alloc();
    // The error would occur again.
    if ((await context.readFrame(packet)) < 0) {
      packet.free();
      break;
    }
    packets.push(packet);
    bytes += packet.size;
    wanted.delete(packet.streamIndex);
  }
  return packets;
}

/** The playable form of a stream, or its description if it is not playable. */
function playable(stream: NativeStream, first: Uint8Array | null): FileStream | string {
  const { codecpar: parameters, index } = stream;
  const type = parameters.codecType === C.AVMEDIA_TYPE_VIDEO ? 'video' : parameters.codecType === C.AVMEDIA_TYPE_AUDIO ? 'audio' : null;
  if (type === null) return `stream ${index} is neither video nor audio`;
  if ((stream.disposition & C.AV_DISPOSITION_ATTACHED_PIC) !== 0) return `stream ${index} is a cover picture`;
  const { num, den } = stream.timeBase;
  if (num <= 0 || den <= 0) return `stream ${index} has no timebase`;
  const { codecId, extradata } = parameters;
  const rate = stream.avgFrameRate.num > 0 ? stream.avgFrameRate : stream.rFrameRate;
  const aspect = stream.sampleAspectRatio.num > 0 ? stream.sampleAspectRatio : parameters.sampleAspectRatio;
  return {
    index,
    type,
    codecId,
    codecName: Codec.findDecoder(codecId)?.name ?? null,
    parameters,
    extradata: extradata === null || extradata.length === 0 ? null : new Uint8Array(extradata),
    first: first === null ? null : new Uint8Array(first),
    timebase: { num, den },
    start: stream.startTime === NO_TIMESTAMP ? null : toSeconds(Number(stream.startTime), { num, den }),
    duration: stream.duration > 0n ? toSeconds(Number(stream.duration), { num, den }) : null,
    width: parameters.width,
    height: parameters.height,
    sarNum: aspect.num > 0 && aspect.den > 0 ? aspect.num : 1,
    sarDen: aspect.num > 0 && aspect.den > 0 ? aspect.den : 1,
    framerate: rate.num > 0 && rate.den > 0 ? rate.num / rate.den : 0,
    delay: parameters.videoDelay,
    sampleRate: parameters.sampleRate,
    channels: parameters.channels,
    bitrate: Math.max(0, Number(parameters.bitRate)),
    language: stream.metadata?.get('language') ?? '',
  };
}

/** Throws EngineError when nothing of the file can be played. */
export function refuseEmpty(tracks: number, omitted: readonly string[]): void {
  if (tracks > 0) return;
  const why = omitted.length === 0 ? '' : ` (${omitted.join('; ')})`;
  throw new EngineError(`the file has no video or audio that can be played${why}`);
}
