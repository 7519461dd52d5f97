/** Tells refused encoders the reason in the answer to `connect`, the earliest point that the protocol allows. */
import type { Socket } from 'node:net';
import type { Clock } from '../../util/clock.ts';
import { TokenBucket } from '../../util/token-bucket.ts';
import { ChunkReader } from '../../wire/rtmp/chunk-reader.ts';
import { ChunkWriter } from '../../wire/rtmp/chunk-writer.ts';
import { parseCommand } from '../../wire/rtmp/command.ts';
import { ConnectionControl } from '../../wire/rtmp/connection-control.ts';
import { ServerHandshake } from '../../wire/rtmp/handshake.ts';
import { MessageType, type RtmpMessage } from '../../wire/rtmp/message.ts';
import { connectRefused } from './replies.ts';
import { unpublishedLimits } from './rtmp-connection.ts';
import type { RtmpLimits, RtmpTimeouts } from './rtmp-options.ts';

/**
 * Limit of answered encoders per second, because each answer costs a handshake. In a flood, further encoders are disconnected without an
 * answer.
 */
const MAX_TOLD_PER_SECOND = 8;
const DESCRIPTION = 'Too many connections, of your address or of all: try again later.';

/** The refused encoders of one listener. Closes each connection after the timeout `refusal` at the latest. */
export class RefusedPublishers {
  readonly #clock: Clock;
  readonly #limits: RtmpLimits;
  readonly #timeoutMs: number;
  readonly #budget = new TokenBucket({ burst: MAX_TOLD_PER_SECOND, perSecond: MAX_TOLD_PER_SECOND });

  constructor({ limits, timeouts, clock }: { readonly limits: RtmpLimits; readonly timeouts: RtmpTimeouts; readonly clock: Clock }) {
    this.#limits = limits;
    this.#timeoutMs = timeouts.refusal;
    this.#clock = clock;
  }

  /** Answers the encoder's coming request, and closes. `socket` is paused. */
  answer(socket: Socket): void {
    if (socket.destroyed || !this.#budget.take(this.#clock.monotonic())) {
      socket.destroy();
      return;
    }
    const deadline = setTimeout(() => socket.destroy(), this.#timeoutMs);
    socket.once('close', () => clearTimeout(deadline));
    socket.on('error', () => socket.destroy());
    socket.on('end', () => socket.destroy());
    socket.on('data', this.#conversation(socket));
    socket.resume();
  }

  #conversation(socket: Socket): (data: Buffer) => void {
    const handshake = new ServerHandshake();
    const writer = new ChunkWriter();
    const send = (message: RtmpMessage): void => void socket.write(writer.write(message));
    const onMessage = (message: RtmpMessage): void => {
      if (socket.writableEnded || control.receive(message) || message.typeId !== MessageType.COMMAND_AMF0) return;
      const { name, transactionId } = parseCommand(message, this.#limits.amf);
      if (name !== 'connect') return;
      socket.end(writer.write(connectRefused(transactionId, DESCRIPTION, 'NetConnection.Connect.Rejected')));
    };
    const onDiscard = (): void => void socket.destroy();
    const reader = new ChunkReader({ onMessage, onDiscard, limits: unpublishedLimits(this.#limits) });
    const control = new ConnectionControl({ reader, send });
    return (data) => {
      // With unread bytes the system would reset the connection, and the answer would be lost.
      if (socket.writableEnded) return;
      try {
        const { consumed, reply } = handshake.done ? { consumed: 0, reply: null } : handshake.push(data);
        if (reply !== null) socket.write(reply);
        reader.push(data, consumed, data.length);
      } catch {
        // The connection is closed whatever the encoder sends.
        socket.destroy();
      }
    };
  }
}
