/**
 * An encoder that knows which of its frames the server has received, because the server acknowledges every read of its socket. Or an
 * encoder that only knows its sent frames, as real encoders do, and whose socket may rest.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { controlMessage, parseControlValue } from '../../src/wire/rtmp/control.ts';
import { MessageType } from '../../src/wire/rtmp/message.ts';
import { RtmpPublisher } from '../fakes/rtmp-publisher.ts';
import { type FlvTag, isAudioFrame, isVideoFrame } from '../support/flv.ts';

/** Acknowledgement window, bytes; the server acknowledges after half of it, which is less than any frame. */
const WINDOW = 2;
/** Chunk size larger than any frame. */
const CHUNK_SIZE = 60_000;
const VIDEO_CHUNK_STREAM = 6;
const AUDIO_CHUNK_STREAM = 5;
/** A frame that leaves this much after its time, ms, is late. */
const LATE_MS = 10;
/** Limit of frames in transit. */
const ON_THE_WAY = 2;

/** Number of frames of each kind. */
export interface FrameCounts {
  readonly video: number;
  /** Audio frames, from the first that is heard with or after the first video frame. */
  readonly audio: number;
}

interface SentFrame {
  readonly kind: 'video' | 'audio';
  /** Bytes of the connection up to the end of the frame. */
  readonly end: number;
}

export class AcknowledgedPublisher {
  readonly #publisher: RtmpPublisher;
  readonly #frames: SentFrame[] = [];
  readonly #sending: Promise<void>;
  #stopped = false;

  readonly #isAcknowledged: boolean;
  #isLate = false;

  private constructor(publisher: RtmpPublisher, tags: readonly FlvTag[], isAcknowledged: boolean) {
    this.#publisher = publisher;
    this.#isAcknowledged = isAcknowledged;
    this.#sending = this.#send(tags);
  }

  /** Connects, and begins to send `tags` in real time. The caller calls `stop`. */
  static async start(port: number, stream: string, tags: readonly FlvTag[], isAcknowledged = true): Promise<AcknowledgedPublisher> {
    const publisher = await RtmpPublisher.publish(port, { tcUrl: `rtmp://127.0.0.1:${port}/app`, key: stream });
    publisher.setChunkSize(CHUNK_SIZE);
    if (isAcknowledged) publisher.send(controlMessage(MessageType.WINDOW_ACK_SIZE, WINDOW));
    return new AcknowledgedPublisher(publisher, tags, isAcknowledged);
  }

  /**
   * Frames that the server has acknowledged completely; without acknowledgements all sent frames. Acknowledgements sent before its death
   * count, too, once `gone`.
   */
  get received(): FrameCounts {
    const last = this.#publisher.messages.findLast(({ typeId }) => typeId === MessageType.ACKNOWLEDGEMENT);
    const bytes = last === undefined ? 0 : parseControlValue(last);
    const arrived = this.#frames.filter(({ end }) => !this.#isAcknowledged || end <= bytes);
    const of = (wanted: SentFrame['kind']): number => arrived.filter(({ kind }) => kind === wanted).length;
    return { video: of('video'), audio: of('audio') };
  }

  /** The last frame was sent in time, and the server has received everything sent: neither side is late. */
  get keepsPace(): boolean {
    const { video, audio } = this.received;
    return !this.#isLate && this.#frames.length - video - audio <= ON_THE_WAY;
  }

  /** The connection has ended, and everything that the server sent has been read. */
  get gone(): Promise<void> {
    return this.#publisher.closed;
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#publisher.close();
    await this.#sending;
  }

  async #send(tags: readonly FlvTag[]): Promise<void> {
    const begin = performance.now();
    const first = tags.find(isVideoFrame);
    // In FLV the composition time follows the frame type and packet type.
    const shownAt = first === undefined ? 0 : first.timestamp + first.data.readIntBE(2, 3);
    for (const tag of tags) {
      const wait = begin + tag.timestamp - performance.now();
      if (wait > 0) await delay(wait);
      if (this.#stopped) return;
      this.#isLate = performance.now() - begin - tag.timestamp > LATE_MS;
      const isVideo = tag.type === MessageType.VIDEO;
      this.#publisher.send({
        ...{ chunkStreamId: isVideo ? VIDEO_CHUNK_STREAM : AUDIO_CHUNK_STREAM, typeId: tag.type, streamId: 1 },
        ...{ timestamp: tag.timestamp, payload: tag.data },
      });
      const end = this.#publisher.socket.bytesWritten;
      if (isVideoFrame(tag)) this.#frames.push({ kind: 'video', end });
      else if (isAudioFrame(tag) && tag.timestamp >= shownAt) this.#frames.push({ kind: 'audio', end });
    }
  }
}
