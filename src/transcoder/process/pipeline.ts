/** The common part of a transcoder process's pipelines. */
import type { EncodeFaultFacts } from '../../core/transcoding.ts';
import type { BoundedQueue } from '../../util/bounded-queue.ts';
import type { Clock } from '../../util/clock.ts';
import type { EncodePart, HardwareChoice, NoticeMessage, SourceMessage, TrackMessage } from '../messages.ts';
import type { CodecCensus } from './codec-census.ts';
import type { FramePool } from './engine/frame-pool.ts';

/** Receives the output of a pipeline. */
export interface PipelineSink {
  onTrack(encodeId: number, track: TrackMessage): void;
  /** `data` belongs to the sink. Times are ticks of the encode's track. */
  onPacket(encodeId: number, packet: OutputPacket): void;
  onFailed(encodeId: number, reason: string, part: EncodePart, facts?: EncodeFaultFacts): void;
  /** A packet of the inbound track has left the queue in front of the decoder. */
  onTaken(sourceId: number): void;
  notice(level: NoticeMessage['level'], message: string): void;
  /** Resolves when the server has caught up; null if it has. */
  congestion(): Promise<void> | null;
}

/** An encoded packet in ticks of the encode's track. */
export interface OutputPacket {
  readonly pts: number;
  readonly dts: number;
  readonly duration: number;
  readonly keyframe: boolean;
  readonly data: Uint8Array;
}

/** A packet of an inbound track as it came over the wire. */
export interface InputPacket {
  readonly data: Uint8Array;
  readonly pts: number;
  readonly dts: number;
  readonly duration: number;
  readonly discontinuity: boolean;
}

/** Entries of the queue in front of a decoder, in order. */
export type PipelineInput = { readonly source: SourceMessage } | { readonly packet: InputPacket };

/** The tools of a process, for each of its pipelines. */
export interface PipelineTools {
  readonly clock: Clock;
  readonly pool: FramePool;
  readonly census: CodecCensus;
  readonly sink: PipelineSink;
  readonly hardware: HardwareChoice;
  readonly hardwareDecoding: HardwareChoice;
  /** Encoders and decoders that work on this machine, by the library's names. */
  readonly working: ReadonlySet<string>;
  readonly decoderThreads: number;
  readonly cpus: number;
}

/** One inbound track and all its encodes. */
export interface Pipeline {
  /** Takes a packet or a new source from the wire; false if the queue is full, which a server that keeps to the window never causes. */
  push(input: PipelineInput): boolean;
  /** At `pts`, 1/90000 s; 0: soon. */
  requestKeyframe(encodeId: number, pts: number): void;
  /** Queues for the statistics; their `urn` is the role. */
  readonly queues: readonly { readonly queue: BoundedQueue<unknown> }[];
  /** Ends the loops and frees everything; resolves when no operation is running. */
  close(): Promise<void>;
}
