/** Units of an elementary stream. */
import type { PesPacket } from './ts-demuxer.ts';

/** One access unit (video), frame (audio) or tag (ID3). Times are 90 kHz; audio may have fractions. */
export interface ElementaryUnit {
  readonly pts: number;
  readonly dts: number;
  /** A buffer of its own. */
  readonly data: Uint8Array;
}

/** Receives units in the order of the stream, and owns them. */
export type UnitSink = (unit: ElementaryUnit) => void;

/** Reads one elementary stream. */
export interface UnitReader {
  /**
   * The decoder configuration (avcC, hvcC, AudioSpecificConfig, OpusHead, MPEG audio header) of the last unit passed on, readable inside
   * the sink; null until known. The same object while unchanged.
   */
  readonly config: Uint8Array | null;
  /** Throws `ProtocolError` if the payload is broken; units before the fault have been passed on. */
  read(packet: PesPacket, sink: UnitSink): void;
  /** Passes on the last unit at the end of the stream. */
  end?(sink: UnitSink): void;
}
