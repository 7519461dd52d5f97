/** Options of a delivery pool. */
import type { AccessRequest, Denied, Passed } from '../../access/access-check.ts';
import type { AdmissionRecord } from '../../access/admission-webhooks.ts';
import type { RefusalCount } from '../../access/refusal-counts.ts';
import type { WantedStream } from '../../core/origins.ts';
import type { QueueRegistry } from '../../core/queue-registry.ts';
import type { StreamPresence } from '../../core/unknown-stream.ts';
import type { PageSettings } from '../../pages/player-page.ts';
import type { Clock } from '../../util/clock.ts';
import type { Logger } from '../../util/logger.ts';
import type { AdmissionPlan } from '../admission.ts';
import type { ViewFactories } from '../feed/view.ts';
import type { DeliveryLimits } from '../thread-protocol.ts';

/** Absent limits default to those of `delivery-limits.ts`. */
export interface DeliveryPoolOptions {
  /** Worker threads; 0 serves from the main thread, with `views`. */
  readonly threads: number;
  /** Workers start with the first connection, if the addon can report it; until then only ports are open. */
  readonly sleeps?: boolean;
  /** Views of a thread in the main thread; workers have their own. */
  readonly views: ViewFactories;
  /** File that workers start with; by default `delivery-worker.ts`, with the views of `delivery-views.ts`. */
  readonly workerEntry?: URL;
  readonly limits?: DeliveryLimits;
  /** Limits of clients; absent: none. */
  readonly admission?: AdmissionPlan;
  /** HTTP/2 on TLS ports (`Modules/HTTP2`). */
  readonly http2?: boolean;
  /** Finds missing streams; resolves with whether they exist now. Never rejects. Absent: no search. */
  readonly find?: (wanted: WantedStream) => Promise<StreamPresence>;
  /** Asks the control server of `vhost` about a returning viewer. Never rejects. Absent: the viewer is refused. */
  readonly judge?: (vhost: string, request: AccessRequest) => Promise<Passed | Denied>;
  /**
   * Takes over an admission of a thread that died; the returned function reports the end to the control server. Absent: it is not reported.
   */
  readonly adopt?: (record: AdmissionRecord) => () => void;
  /** A thread has its first viewer after none. */
  readonly onWatched?: () => void;
  /** Play tokens that admitted viewers, by their grants. */
  readonly onKeyUses?: (grants: readonly string[]) => void;
  /** Access control has refused clients over HTTP. */
  readonly onRefusals?: (counts: readonly RefusalCount[]) => void;
  /** Debug lines for each HTTP connection that opens and ends. */
  readonly logConnections?: boolean;
  /** Pages for users who open a port in a browser; absent: none. */
  readonly pages?: PageSettings;
  /** Lists the message queues of the threads. Absent: they are not listed. */
  readonly queues?: QueueRegistry;
  readonly clock: Clock;
  readonly logger: Logger;
}
