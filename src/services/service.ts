/** A service as the server sees it: its dependencies, and its results. */
import type { Gatekeeper } from '../access/access-check.ts';
import type { OriginMaps } from '../cluster/origin-maps.ts';
import type { ServerConfig } from '../config/index.ts';
import type { Application } from '../core/application.ts';
import type { Notices } from '../core/notices/notice.ts';
import type { Orchestrator } from '../core/orchestrator.ts';
import type { PortOpenings } from '../core/port-openings.ts';
import type { Publisher } from '../core/publishing.ts';
import type { PullSource } from '../core/pull.ts';
import type { PullRegistry } from '../core/pull-registry.ts';
import type { QueueRegistry } from '../core/queue-registry.ts';
import type { RestingSources } from '../core/resting-sources.ts';
import type { StreamFinder } from '../core/stream-demand.ts';
import type { StreamLineage } from '../core/stream-lineage.ts';
import type { Transcoder } from '../core/transcoding.ts';
import type { DeliveryPool } from '../delivery/pool/delivery-pool.ts';
import type { ServerLimits } from '../delivery/server-limits.ts';
import type { CertificateStore } from '../delivery/tls/certificate-store.ts';
import type { LiveStreams } from '../playout/live-source.ts';
import type { FfmpegFiles } from '../playout/media-file.ts';
import type { FileMarks } from '../state/file-marks.ts';
import type { AllowedFolders } from '../util/allowed-folders.ts';
import type { Clock } from '../util/clock.ts';
import type { Conditions } from '../util/conditions.ts';
import type { KnownSecrets } from '../util/known-secrets.ts';
import type { Logger } from '../util/logger.ts';
import type { MetricSource } from '../util/metrics.ts';
import type { TimeoutScale } from '../util/timeout-scale.ts';

/** Dependencies of every service. All of it is the server's: a service closes none of it. */
export interface ServiceContext {
  readonly config: ServerConfig;
  readonly stateFolder: string;
  /** Folders in which files may be written. */
  readonly writing: AllowedFolders;
  /** Folders from which files may be played. */
  readonly reading: AllowedFolders;
  /** Opens media files that are neither MP4 nor MPEG-TS. */
  readonly ffmpegFiles: FfmpegFiles;
  /** Streams of this server as items. */
  readonly liveStreams: LiveStreams;
  /** The sources of streams that are made of others. */
  readonly lineage: StreamLineage;
  /** Folders of files that define channels. */
  readonly definitions: AllowedFolders;
  /** Which of these files the API wrote. */
  readonly fileMarks: FileMarks;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly timeoutScale: TimeoutScale;
  /** The conditions of `/health`. */
  readonly conditions: Conditions;
  /** Is notified of events. */
  readonly notices: Notices;
  /** Learns secrets that followers of the server must not see. */
  readonly secrets: KnownSecrets;
  readonly openings: PortOpenings;
  readonly limits: ServerLimits;
  readonly certificates: CertificateStore;
  /** Has no application before all services are started. */
  readonly orchestrator: Orchestrator;
  /** Decides who may publish and play, by the present virtual hosts. */
  readonly access: Gatekeeper;
  readonly pulls: PullRegistry;
  /** Finds streams that viewers ask for and that are not there. */
  readonly finder: StreamFinder;
  readonly originMaps: OriginMaps;
  readonly queues: QueueRegistry;
  readonly transcoder: Transcoder;
  readonly delivery: DeliveryPool;
  readonly restingSources: RestingSources;
}

/** One protocol in both directions, or one kind of output, from its start on. The server calls each method once, in this order. */
export interface Service {
  /** Publishers of streams. */
  readonly publishers?: readonly Publisher[];
  /** Sources for pulled streams. */
  readonly pullSources?: readonly PullSource[];
  /** Its figures, for `/metrics`. */
  readonly metrics?: readonly MetricSource[];
  /** An application runs, for the first time or with new settings. Called for each. */
  applicationStarted?(application: Application): void;
  /** Opens the configured ports; the applications of the last run exist by now. */
  listen?(): Promise<void>;
  /** The server has started: what needs the last run's files may begin. */
  started?(): void;
  /** Closes the ports, and ends their incoming connections. Streams end after it. Also called if `listen` failed or was never called. */
  close?(): Promise<void>;
  /** Ends the rest after the streams: files are finished, peers notified. */
  finish?(): Promise<void>;
}
