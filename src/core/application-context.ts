import type { Clock } from '../util/clock.ts';
import type { Logger } from '../util/logger.ts';
import type { Turns } from '../util/newcomer-turns.ts';
import type { Drain } from './drain.ts';
import type { PublisherKind } from './kinds.ts';
import type { Notices } from './notices/notice.ts';
import type { OverlayRule } from './overlay-files.ts';
import type { AdviserSource } from './profile-advice.ts';
import type { Publisher } from './publishing.ts';
import type { QueueRegistry } from './queue-registry.ts';
import type { StandIns } from './stand-in.ts';
import type { Transcoder } from './transcoding.ts';

/** Parts of the server that all its applications share. */
export interface ApplicationContext {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly queues: QueueRegistry;
  readonly publishers: ReadonlyMap<PublisherKind, Publisher>;
  /** Makes what output profiles want encoded; null when this server cannot encode. */
  readonly transcoder: Transcoder | null;
  /** Absent: every stream begins at once. */
  readonly turns?: Turns;
  /** While it is active, publishers are refused; absent: the server is never drained. */
  readonly drain?: Pick<Drain, 'active'>;
  /** Streams published to one application at once; 0 or absent: no limit. */
  readonly maxStreams?: number;
  /** A publisher was refused because the application is full. */
  readonly onFull?: (application: { readonly vhost: string; readonly name: string }) => void;
  /** Advises on the output profiles of applications that want it; absent: no advice. */
  readonly adviserOf?: AdviserSource;
  /** Reads an overlay map and its images, and never rejects; absent: there are none. */
  readonly readOverlays?: (path: string, logger: Logger) => Promise<readonly OverlayRule[]>;
  /** Plays the stand-ins of encoders; absent: there are none. */
  readonly standIns?: StandIns;
  /** Receives notices; absent: none are posted. */
  readonly notices?: Notices;
  /** Numbers for streams, unique while the server runs. */
  readonly nextStreamId: () => number;
}
