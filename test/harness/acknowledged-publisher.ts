/**
 * An encoder that knows which of its frames the server has received: the server acknowledges every read of its socket. Or an encoder that
 * knows only its sent frames, as encoders do, and whose socket the server may let rest.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { controlMessage, parseControlValue } from '../../src/wire/rtmp/control.ts';
import { MessageType } from '../../src/wire/rtmp/message.ts';
import { RtmpPublisher } from '../fakes/rtmp-publisher.ts';
import { type FlvTag, isAudioFrame, isVideoFrame } from '../support/flv.ts';

/** The server acknowledges at half of it, bytes: less than any frame. */
const WINDOW = 2;
/** A frame is one chunk. */
const CHUNK_SIZE = 60_000;
const VIDEO_CHUNK_STREAM = 6;
const AUDIO_CHUNK_STREAM = 5;
/** A frame that leaves this much after its time, ms, is late. */
const LATE_MS = 10;
/** Frames that may be on their way. */
const ON_THE_WAY = 2;

/** How many frames of each kind. */
export interface FrameCounts {
  readonly video: number;
  /** The audio that becomes audible with the first frame or later. */
  readonly audio: number;
}

interface SentFrame {
  readonly kind: 'video' | 'audio';
  /** Bytes of the connection up to its end. */
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

  /** Connects, and begins to send `tags` in their own time. The caller calls `stop`. */
  static async start(port: number, stream: string, tags: readonly FlvTag[], isAcknowledged = true): Promise<AcknowledgedPublisher> {
    const publisher = await RtmpPublisher.publish(port, { tcUrl: `rtmp://127.0.0.1:${port}/app`, key: stream });
    publisher.setChunkSize(CHUNK_SIZE);
    if (isAcknowledged) publisher.send(controlMessage(MessageType.WINDOW_ACK_SIZE, WINDOW));
    return new AcknowledgedPublisher(publisher, tags, isAcknowledged);
  }

  /**
   * Frames that the server has acknowledged to their last byte; without acknowledgements all sent frames. Acknowledgements from before its
   * death count too, once `gone`.
   */
  get received(): FrameCounts {
    const last = this.#publisher.messages.findLast(({ typeId }) => typeId === MessageType.ACKNOWLEDGEMENT);
    const bytes = last === undefined ? 0 : parseControlValue(last);
    const arrived = this.#frames.filter(({ end }) => !this.#isAcknowledged || end <= bytes);
    const of = (wanted: SentFrame['kind']): number => arrived.filter(({ kind }) => kind === wanted).length;
    return { video: of('video'), audio: of('audio') };
  }

  /** The last frame left in its time, and the server has received everything sent: neither side lags. */
  get keepsPace(): boolean {
    const { video, audio } = this.received;
    return !this.#isLate && this.#frames.length - video - audio <= ON_THE_WAY;
  }

  /** The connection is over, and everything the server said has been read. */
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
    // FLV has the composition time behind the kinds of frame and packet.
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
