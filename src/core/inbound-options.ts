import type { SubtitleTrack } from '../media/track.ts';
import type { Clock } from '../util/clock.ts';
import type { Logger } from '../util/logger.ts';
import type { InboundStream } from './inbound-stream.ts';
import type { CloseReason, IngestRequest } from './ingest.ts';
import type { StreamNotices } from './notices/stream-notices.ts';
import type { QueueRegistry } from './queue-registry.ts';
import type { StandInDutyOptions } from './stand-in-duty.ts';
import type { Outputs } from './stream-outputs.ts';
import type { TrafficMeter } from './traffic-meter.ts';

/** What an application makes a stream with. `request` is that of the first source; another may follow it. */
export interface InboundStreamOptions {
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
  /** What plays on a linked stream while its source is away; absent: nothing. */
  readonly standIn?: Pick<StandInDutyOptions, 'settings' | 'open'> | undefined;
  /** Timestamps stay those of the source instead of starting at 0. */
  readonly keepSourceTime: boolean;
  /** Tracks for cues that come from elsewhere than the source, without ids; default: none. */
  readonly subtitles?: readonly SubtitleTrack[];
  /** What becomes of the stream; made anew for each stream and closed by it. */
  readonly createOutputs: (stream: InboundStream) => Outputs;
  /** Is told what becomes of the stream and its viewers. */
  readonly notices: StreamNotices;
  /** The stream has ended; the owner forgets it. */
  readonly onEnd: (stream: InboundStream, reason: CloseReason) => void;
}
