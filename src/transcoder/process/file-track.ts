/** The common part of a media file's tracks, however they leave the process. */
import type { FileTrackMessage } from '../messages.ts';
import type { FilePacket } from './engine/demuxer.ts';

/** Containers without presentation times. If they reorder frames, only decoding shows when a frame is presented. */
export const WITHOUT_PRESENTATION_TIMES: readonly string[] = ['avi', 'h264', 'hevc'];

/** A packet on its way to the server. Times are ticks of its track, `seconds` its decoding time. */
export interface MadePacket {
  readonly trackId: number;
  readonly seconds: number;
  readonly pts: number;
  readonly dts: number;
  readonly duration: number;
  readonly keyframe: boolean;
  readonly data: Uint8Array;
}

/** Receives the packets of a track. */
export type MadePacketSink = (packet: MadePacket) => void;

/** One track of a file. Made, fed and closed by the reader of the file. */
export interface FileTrack {
  readonly message: FileTrackMessage;
  /** Takes the next packet of the stream, which stays the caller's. */
  push(packet: FilePacket): Promise<void>;
  /** The file has ended: sends the remaining packets. */
  finish(): Promise<void>;
  /** Packets from elsewhere in the file follow. */
  restart(): void;
  /** No operation may be running. Idempotent. */
  close(): void;
}
