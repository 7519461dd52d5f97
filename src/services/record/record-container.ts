/** The container of a recording: packets in, bytes of a file out. */
import type { Packet } from '../../media/packet.ts';

/** Containers by the extension of the path. */
export type RecordContainerName = 'mp4' | 'ts';

/**
 * Media of a track held back before it is written, 90 kHz. With the media that waits in the publisher's socket, read ten times a second, a
 * `kill -9` costs half a second.
 */
export const MAX_HELD_BACK = 36_000;

/** One file. Bytes go to the `write` option; the first chunk of a call is reused afterwards, the others are payloads. */
export interface RecordContainer {
  /** Bytes of media it holds back. */
  readonly pending: number;
  /** Takes a packet of one of its tracks; its dts must not precede the start of the file. */
  push(packet: Packet): void;
  /** Writes held packets, so that all packets so far are in the file. */
  flush(): void;
}
