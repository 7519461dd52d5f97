import { scaleTimeouts, type TimeoutScale } from '../../util/timeout-scale.ts';

/** How much of a peer's time and bytes an HTTP server puts up with. All times are milliseconds. */
export interface HttpLimits {
  /** Bytes of `GET … HTTP/1.1` without the line end; more is 414. */
  readonly requestLine: number;
  /** Bytes of all header lines together; more is 431. */
  readonly headerBytes: number;
  /** Header lines; more is 431. */
  readonly headerLines: number;
  /** From the first byte of a request to the end of its header; then 408. So long may a connection be without its first byte, too. */
  readonly headerTime: number;
  /** Without a request, whatever else is sent, and without any byte of an answer; then the connection is closed. */
  readonly idleTime: number;
  /** For one answer to be taken by the client; then the connection is closed. */
  readonly sendTime: number;
  /** For the client to close after we said that we do; unread bytes are thrown away meanwhile. */
  readonly lingerTime: number;
  /** Pipelined bytes that wait behind an unanswered request before we stop reading. */
  readonly pipelinedBytes: number;
  /** Open connections per listener; more are refused by closing them. */
  readonly connections: number;
  /** How often the times above are looked at. */
  readonly sweepInterval: number;
}

/** `limits` with all times scaled. */
export function scaledHttpLimits(limits: HttpLimits, timeoutScale: TimeoutScale): HttpLimits {
  const { headerTime, idleTime, sendTime, lingerTime, sweepInterval } = limits;
  return { ...limits, ...scaleTimeouts({ headerTime, idleTime, sendTime, lingerTime, sweepInterval }, timeoutScale) };
}

/** Used unless told otherwise. */
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
