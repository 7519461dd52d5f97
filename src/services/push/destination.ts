/** One connection of a push task, for any protocol. */

import type { ApplicationAddress } from '../../core/stream-address.ts';
import type { Packet } from '../../media/packet.ts';
import type { Track } from '../../media/track.ts';
import type { Clock } from '../../util/clock.ts';
import type { Logger } from '../../util/logger.ts';
import type { PushFailure } from './push-failure.ts';
import type { PushRequest } from './push-request.ts';

/** How long to wait for a receiver, ms. */
export interface PushTimeouts {
  /** From the first packet on the wire until media is taken. */
  readonly connection: number;
  /** For a receiver that takes nothing though something waits. */
  readonly send: number;
}

/** Events of a connection; nothing comes after `onFailed` or `close`. */
export interface DestinationEvents {
  /** The receiver takes media from now on. Called once. */
  onOpen(): void;
  /** There is room again after `write` returned false. */
  onWritable(): void;
  /** The connection is gone. Called once, unless it was closed before. */
  onFailed(failure: PushFailure): void;
}

/** Made by `OpenDestination`, closed by its session. Packets before `onOpen`, and after a failure, are discarded. */
export interface Destination {
  /** Bytes given to the system for the receiver, handshakes left out. */
  readonly sentBytes: number;
  /** Drops below this interface because the receiver was too slow. */
  readonly dropped: number;
  /** Sends one packet of a selected track, after `onOpen`. False: wait for `onWritable` before the next one. */
  write(packet: Packet): boolean;
  /** Sends the packets that `write` gathered. */
  flush(): void;
  /** Takes leave of the receiver; resolves when the connection is gone, after a second at the latest, over SRT after two. Idempotent. */
  close(): Promise<void>;
}

/** Options of a connection; `events` are called until it has failed or was closed. */
export interface DestinationOptions {
  readonly request: PushRequest;
  readonly owner: ApplicationAddress;
  /** Names the task in every line. */
  readonly logger: Logger;
  /** The tracks chosen by `pushedTracks`. */
  readonly tracks: readonly Track[];
  readonly timeouts: PushTimeouts;
  readonly clock: Clock;
  readonly events: DestinationEvents;
}

/** Begins to connect; events come later. Throws `PushFailure` for a request that can never work. */
export type OpenDestination = (options: DestinationOptions) => Destination;
