/**
 * Follows `GET /v1/events` and `GET /v2/logs`: reads server-sent events, and reconnects with the last identifier when the connection
 * breaks.
 */

import { MillraceError, reasonOf, UnreachableError } from './error.ts';
import type { components } from './openapi-types.ts';

/** An event of the server; `hello`, `gap` and `end` are about the connection. */
export type LiveEvent = components['schemas']['LiveEvent'];

/** A line of the log; `hello`, `gap` and `end` are about the connection. */
export type LogEvent = components['schemas']['LogEvent'];

/** Options for following. */
export interface FollowOptions {
  /** Ends the iteration, which rejects with the reason of the signal. */
  readonly signal?: AbortSignal;
  /** Called with the cause when the connection broke, before the reconnection. */
  readonly onLost?: (error: Error) => void;
}

/** Selects the lines of the log. */
export interface LogOptions extends FollowOptions {
  /** The minimum level: `debug`, `info`, `warn` or `error`; default `info`. */
  readonly level?: string;
  /** Number of earlier lines that come first; default 100. */
  readonly lines?: number;
}

/** Selects the events. */
export interface EventOptions extends FollowOptions {
  /** Types or groups, such as `streams,session.ended`; default: all. */
  readonly types?: string;
  /** Only events about this virtual host. */
  readonly vhost?: string;
  readonly app?: string;
  readonly stream?: string;
  /** Number of earlier events that come first; default 0. */
  readonly back?: number;
}

/** Opens the connection: resolves with a successful answer. */
export type OpenEvents = (headers: Readonly<Record<string, string>>, signal: AbortSignal) => Promise<Response>;

/** The server sends something every 15 s. */
const SILENCE_MS = 45_000;
const DEFAULT_RETRY_MS = 2000;
const MAX_RETRY_MS = 60_000;
/** Characters of one event; limits the memory against a faulty server. */
const MAX_EVENT = 1_048_576;
/** The server has reached its limit of clients, or it is stopping or starting. */
const UNAVAILABLE = 503;

/** The position in the stream; shared by all connections of an iteration. */
interface Place {
  last: string | null;
  retry: number;
}

/**
 * New events, until the caller leaves the loop or aborts. Rejects when the first connection fails, and when the server refuses a later one;
 * reconnects after a break. `url` is for messages; `timeout`: for an answer to start, ms.
 */
export async function* followEvents<E extends LiveEvent | LogEvent>(
  open: OpenEvents,
  { signal, onLost }: FollowOptions,
  url: string,
  timeout: number,
): AsyncGenerator<E, never> {
  const place: Place = { last: null, retry: DEFAULT_RETRY_MS };
  for (let connected = false; ; ) {
    try {
      for await (const event of oneConnection<E>((headers, either) => answerOf(open, headers, either, url), place, signal, timeout)) {
        connected = true;
        yield event;
      }
      throw new UnreachableError('the server ended the connection');
    } catch (error) {
      if (signal?.aborted === true) throw signal.reason;
      const passes = error instanceof UnreachableError || (error instanceof MillraceError && error.status === UNAVAILABLE);
      if (!connected || !passes) throw error;
      onLost?.(error);
    }
    await pause(place.retry, signal);
  }
}

/** Failures to connect become `UnreachableError`, which is temporary; refusals are passed on. */
async function answerOf(open: OpenEvents, headers: Readonly<Record<string, string>>, signal: AbortSignal, url: string): Promise<Response> {
  try {
    return await open(headers, signal);
  } catch (error) {
    if (error instanceof MillraceError) throw error;
    throw new UnreachableError(`no answer from ${url} (${reasonOf(error)})`, { cause: error });
  }
}

async function* oneConnection<E>(open: OpenEvents, place: Place, signal: AbortSignal | undefined, timeout: number): AsyncGenerator<E> {
  const own = new AbortController();
  let timer = setTimeout(() => own.abort(new Error(`not within ${timeout} ms`)), timeout);
  try {
    const headers = { accept: 'text/event-stream', ...(place.last !== null && { 'last-event-id': place.last }) };
    const { body } = await open(headers, signal === undefined ? own.signal : AbortSignal.any([signal, own.signal]));
    if (body === null) return;
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    let text = '';
    for (;;) {
      clearTimeout(timer);
      timer = setTimeout(() => own.abort(), SILENCE_MS);
      const { done, value } = await reader.read().catch((error: unknown) => {
        throw new UnreachableError(own.signal.aborted ? `the server was silent for ${SILENCE_MS / 1000} s` : 'the connection broke', {
          cause: error,
        });
      });
      if (done) return;
      text += value.replaceAll('\r', '');
      const blocks = text.split('\n\n');
      text = blocks.pop() ?? '';
      if (text.length > MAX_EVENT) throw new UnreachableError(`the server sent an event of more than ${MAX_EVENT} characters`);
      for (const block of blocks) {
        const event = eventIn<E>(block, place);
        if (event !== null) yield event;
      }
    }
  } finally {
    clearTimeout(timer);
    own.abort();
  }
}

/** The event of a block, if it is one; the connection's fields of the block go to `place`. */
function eventIn<E>(block: string, place: Place): E | null {
  const data: string[] = [];
  for (const line of block.split('\n')) {
    const [, field, value = ''] = /^([a-z]+)(?:: ?(.*))?$/.exec(line) ?? [];
    if (field === 'id') place.last = value;
    else if (field === 'retry' && /^\d+$/.test(value)) place.retry = Math.min(Number(value), MAX_RETRY_MS);
    else if (field === 'data') data.push(value);
  }
  if (data.length === 0) return null;
  try {
    return JSON.parse(data.join('\n')) as E;
  } catch (error) {
    throw new UnreachableError('the server sent an event that is not JSON', { cause: error });
  }
}

function pause(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop);
      resolve();
    }, milliseconds);
    if (signal?.aborted === true) stop();
    else signal?.addEventListener('abort', stop, { once: true });
  });
}
