import type { SubtitleTrack } from '../media/track.ts';
import type { Clock } from '../util/clock.ts';
import type { Logger } from '../util/logger.ts';
import type { CloseReason, IngestRequest } from './ingest.ts';
import type { InheritedOutputs } from './inherited-outputs.ts';
import type { StreamNotices } from './notices/stream-notices.ts';
import type { QueueRegistry } from './queue-registry.ts';
import type { StandInControllerOptions } from './stand-in-controller.ts';
import type { Outputs } from './stream-outputs.ts';
import type { TrafficMeter } from './traffic-meter.ts';

/**
 * Options with which an application makes a stream, which is a `Stream`. `request` is the first source's; another source may follow.
 */
export interface InboundStreamOptions<Stream> {
  readonly id: number;
  readonly vhost: string;
  readonly app: string;
  readonly request: IngestRequest;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly queues: QueueRegistry;
  readonly meter: TrafficMeter;
  /** Ends the source after this long without audio and video, ms; 0 waits forever. */
  readonly silenceTimeoutMs: number;
  /** How long a linked stream outlives its source, ms; 0 ends it at once. */
  readonly keepMs: number;
  /** Settings and maker of the stand-in that plays on a linked stream while its source is away; absent: there is none. */
  readonly standIn?: Pick<StandInControllerOptions, 'settings' | 'open'> | undefined;
  /** Timestamps of the source are kept instead of starting at 0. */
  readonly keepSourceTime: boolean;
  /** Tracks for cues that do not come from the source, without ids; default: none. */
  readonly subtitles?: readonly SubtitleTrack[];
  /** The outputs of the stream, which take over `inherited` outbound streams (default: none); each stream makes and closes its own. */
  readonly createOutputs: (stream: Stream, inherited?: InheritedOutputs) => Outputs;
  /** Receives notices about the stream and its viewers. */
  readonly notices: StreamNotices;
  /** The stream has ended; the owner forgets it. */
  readonly onEnd: (stream: Stream, reason: CloseReason) => void;
}
