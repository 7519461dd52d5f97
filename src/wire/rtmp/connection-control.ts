/** Handling of protocol control messages, pings and acknowledgements at both ends (RTMP 1.0 §5.4, §7.1.7). */
import type { ChunkReader } from './chunk-reader.ts';
import { controlMessage, parseControlValue, parseUserControl, userControlMessage } from './control.ts';
import { MessageType, type RtmpMessage, UserControlEvent } from './message.ts';

/** Window both sides start with, bytes. */
export const ACKNOWLEDGEMENT_WINDOW = 2_500_000;

/** One for each connection, beside its chunk reader; sends within the call and keeps no time. */
export class ConnectionControl {
  readonly #reader: ChunkReader;
  readonly #send: (message: RtmpMessage) => void;
  #bytesIn = 0;
  #acknowledged = 0;
  #window = ACKNOWLEDGEMENT_WINDOW;
  #windowTold = false;

  /** `reader`: reads the peer's messages. `send` takes the responses. */
  constructor(options: { readonly reader: ChunkReader; readonly send: (message: RtmpMessage) => void }) {
    this.#reader = options.reader;
    this.#send = options.send;
  }

  /** Bytes received, handshake included. */
  get bytesIn(): number {
    return this.#bytesIn;
  }

  /** Maximum of bytes that the peer sends without an acknowledgement. */
  get window(): number {
    return this.#window;
  }

  /** The peer has announced its window: it expects acknowledgements. */
  get windowTold(): boolean {
    return this.#windowTold;
  }

  countBytes(bytes: number): void {
    this.#bytesIn += bytes;
  }

  /** Takes a message about the connection itself; false for other messages. Throws `ProtocolError`. */
  receive(message: RtmpMessage): boolean {
    switch (message.typeId) {
      case MessageType.SET_CHUNK_SIZE:
        this.#reader.setChunkSize(parseControlValue(message));
        return true;
      case MessageType.ABORT:
        this.#reader.abort(parseControlValue(message));
        return true;
      case MessageType.WINDOW_ACK_SIZE:
        this.#window = parseControlValue(message);
        this.#windowTold = true;
        return true;
      case MessageType.USER_CONTROL: {
        const { event, value } = parseUserControl(message);
        if (event === UserControlEvent.PING_REQUEST) this.#send(userControlMessage(UserControlEvent.PING_RESPONSE, value));
        return true;
      }
      case MessageType.ACKNOWLEDGEMENT:
      case MessageType.SET_PEER_BANDWIDTH:
        return true;
      default:
        return false;
    }
  }

  /** More than half a window has arrived since the last acknowledgement. */
  get due(): boolean {
    return this.#bytesIn - this.#acknowledged > this.#window / 2;
  }

  /**
   * Acknowledges the received bytes if that is `due`. Call it at most once for each read, so that a small window cannot cause more
   * acknowledgements.
   */
  acknowledge(): void {
    if (!this.due) return;
    this.#acknowledged = this.#bytesIn;
    this.#send(controlMessage(MessageType.ACKNOWLEDGEMENT, this.#bytesIn % 2 ** 32));
  }
}
