import { scaleTimeouts, type TimeoutScale } from '../util/timeout-scale.ts';
import type { HeadLimits } from '../wire/http/request-head.ts';

/** Limits for the time and bytes of a peer. All times are milliseconds. */
export interface HttpLimits extends HeadLimits {
  /** From the first byte of a request to the end of its header; then 408. Also the limit for a connection without any byte. */
  readonly headerTime: number;
  /** Time without a request and without any sent byte of an answer, regardless of other received bytes; then the connection is closed. */
  readonly idleTime: number;
  /** Time for a client to receive an answer; then the connection is closed. */
  readonly sendTime: number;
  /** Time for the client to close after our close; unread bytes are discarded meanwhile. */
  readonly lingerTime: number;
  /** Pipelined bytes after an unanswered request; at this limit reading stops. */
  readonly pipelinedBytes: number;
  /** Open connections per listener; more are refused by closing them. */
  readonly connections: number;
  /** Interval of the deadline checks. */
  readonly sweepInterval: number;
}

/** `limits` with all times scaled. */
export function scaledHttpLimits(limits: HttpLimits, timeoutScale: TimeoutScale): HttpLimits {
  const { headerTime, idleTime, sendTime, lingerTime, sweepInterval } = limits;
  return { ...limits, ...scaleTimeouts({ headerTime, idleTime, sendTime, lingerTime, sweepInterval }, timeoutScale) };
}

/** Default limits. */
export const DEFAULT_HTTP_LIMITS: HttpLimits = {
  requestLine: 8 * 1024,
  headerBytes: 32 * 1024,
  headerLines: 100,
  headerTime: 10_000,
  idleTime: 60_000,
  sendTime: 180_000,
  lingerTime: 2_000,
  pipelinedBytes: 64 * 1024,
  connections: 50_000,
  sweepInterval: 1_000,
};
