/** A task that follows streams, and continues after a restart. */

import type { ApplicationAddress } from '../stream-address.ts';
import type { TaskRequest } from './task-request.ts';

/** Sums over completed files or connections: their number, bytes, and milliseconds. */
export interface TaskTotals {
  readonly sequence: number;
  readonly bytes: number;
  readonly time: number;
  /** Keys of files that are already in the sums although a note on disk still says that they must be counted. */
  readonly counted?: readonly string[];
}

/** Sums of a new task. */
export const NO_TOTALS: TaskTotals = { sequence: 0, bytes: 0, time: 0 };

/** The origin of a task: new, or from the state folder. */
export interface TaskOrigin<Request extends TaskRequest> extends ApplicationAddress {
  /** Name of its document. */
  readonly key: string;
  readonly request: Request;
  /** ms since the epoch. */
  readonly createdAt: number;
  readonly totals?: TaskTotals;
}

/** The common part of all kinds of task, as the registry needs it. */
export abstract class FollowingTask<Request extends TaskRequest> implements ApplicationAddress {
  /** Name of its document. */
  readonly key: string;
  readonly vhost: string;
  readonly app: string;
  readonly request: Request;
  /** ms since the epoch. */
  readonly createdAt: number;

  constructor({ key, vhost, app, request, createdAt }: TaskOrigin<Request>) {
    this.key = key;
    this.vhost = vhost;
    this.app = app;
    this.request = request;
    this.createdAt = createdAt;
  }

  abstract get totals(): TaskTotals;
  /** Ends it for good; resolves when nothing of it is left. Idempotent; never rejects. */
  abstract stop(): Promise<void>;
  /** Resolves when its ended parts are finished. */
  abstract settled(): Promise<void>;
}
