/** Units of an elementary stream. */
import type { PesPacket } from './ts-demuxer.ts';

/** One access unit (video), frame (audio) or tag (ID3). Times are 90 kHz; audio may have fractions. */
export interface ElementaryUnit {
  readonly pts: number;
  readonly dts: number;
  /** A buffer of its own. */
  readonly data: Uint8Array;
}

/** Takes units in the order of the stream; they are the taker's own. */
export type UnitSink = (unit: ElementaryUnit) => void;

/** Reads one elementary stream. */
export interface UnitReader {
  /**
   * The decoder configuration (avcC, hvcC, AudioSpecificConfig, OpusHead, MPEG audio header) as of the unit handed on
   * last, so that it may be looked at inside the sink; null before the stream has told it. The same object while it
   * stays the same.
   */
  readonly config: Uint8Array | null;
  /** Throws `ProtocolError` when the payload is broken; units before the fault have been handed on. */
  read(packet: PesPacket, sink: UnitSink): void;
  /** Hands on what waits for what follows: nothing follows. */
  end?(sink: UnitSink): void;
}
