/** A push task as the API shows it. */
import { formatTimestamp } from '../../util/timestamp.ts';
import type { PushProtocol } from './push-request.ts';
import { PushState, type PushTask } from './push-task.ts';

/** Members by the names of the API. Times are text, the epoch when they have not come; durations are ms. */
export interface PushInformation {
  readonly app: string;
  readonly createdTime: string;
  readonly finishTime: string;
  readonly id: string;
  readonly isConfig: boolean;
  readonly protocol: PushProtocol;
  /** The error; only in the state `error`. */
  readonly reason?: string;
  readonly sentBytes: number;
  readonly sentTime: number;
  readonly sequence: number;
  readonly startTime: string;
  readonly state: PushState;
  readonly stream: { readonly name: string; readonly trackIds: readonly number[]; readonly variantNames: readonly string[] };
  readonly streamKey?: string;
  readonly totalsentBytes: number;
  readonly totalsentTime: number;
  readonly url: string;
  readonly vhost: string;
}

/** The task as it is now. */
export function pushInformation(task: PushTask): PushInformation {
  const { request, state, reason, totals } = task;
  return {
    app: task.app,
    createdTime: formatTimestamp(task.createdAt),
    finishTime: formatTimestamp(task.finishTime ?? 0),
    id: request.id,
    isConfig: request.isConfig,
    protocol: request.protocol,
    ...(state === PushState.ERROR && reason !== null && { reason }),
    sentBytes: task.sentBytes,
    sentTime: task.sentTime,
    sequence: totals.sequence,
    startTime: formatTimestamp(task.startTime ?? 0),
    state,
    stream: { name: request.streamName, trackIds: request.trackIds, variantNames: request.variantNames },
    ...(request.streamKey !== '' && { streamKey: request.streamKey }),
    totalsentBytes: totals.bytes,
    totalsentTime: totals.time,
    url: request.url,
    vhost: task.vhost,
  };
}
