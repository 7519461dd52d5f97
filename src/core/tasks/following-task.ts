/** A task that follows streams, and goes on after a restart. */

import type { ApplicationAddress } from '../stream-address.ts';
import type { TaskRequest } from './task-request.ts';

/** Sums over files or connections that are over: how many, bytes, and ms. */
export interface TaskTotals {
  readonly sequence: number;
  readonly bytes: number;
  readonly time: number;
  /** What is in the sums although something on disk still says that it has to be counted, by keys of the task's own. */
  readonly counted?: readonly string[];
}

/** Of a task that has done nothing yet. */
export const NO_TOTALS: TaskTotals = { sequence: 0, bytes: 0, time: 0 };

/** What makes a task, new or from the state folder. */
export interface TaskOrigin<Request extends TaskRequest> extends ApplicationAddress {
  /** Name of its document. */
  readonly key: string;
  readonly request: Request;
  /** ms since the epoch. */
  readonly createdAt: number;
  readonly totals?: TaskTotals;
}

/** What all kinds have, and the registry needs of them. */
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
  /** Resolves when what has ended of it is finished. */
  abstract settled(): Promise<void>;
}
