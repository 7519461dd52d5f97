/** A transport stream over SRT, as the caller. */
import { setTimeout as delay } from 'node:timers/promises';
import type { LinkLabels, LinkReporter, WatchedLink } from '../../transport/srt/link-reporter.ts';
import { readPassphrase, SocketOptionError } from '../../transport/srt/socket-options.ts';
import { SrtUdpPort } from '../../transport/srt/udp-port.ts';
import type { Clock } from '../../util/clock.ts';
import type { Logger } from '../../util/logger.ts';
import { SrtCallFailed } from '../../wire/srt/caller.ts';
import type { SrtConnection } from '../../wire/srt/connection.ts';
import type { KeyLength } from '../../wire/srt/key-material.ts';
import { isKeyLength } from '../../wire/srt/key-material.ts';
import type { SrtStatistics } from '../../wire/srt/statistics.ts';
import { DEFAULT_LATENCY, type LatencyWish } from '../../wire/srt/terms.ts';
import type { HostUrl } from './host-url.ts';
import type { LinkEvents, PayloadLink } from './payload-link.ts';
import { PushFailure } from './push-failure.ts';
import { resolveHost } from './resolve-host.ts';

/** Time for data that the receiver has not acknowledged or still delays when the task ends. */
const LINGER_MS = 2000;
const LINGER_STEP_MS = 10;
const MAX_LATENCY_MS = 65_535;

/** Options of the URL. */
interface CallWish {
  readonly streamId: string;
  readonly passphrase: string | null;
  readonly keyLength: KeyLength | null;
  readonly latency: LatencyWish;
}

/** Address and options; `connectionTimeout` in ms. Query values of the URL set latency and encryption. */
export interface SrtLinkOptions {
  readonly url: HostUrl;
  readonly streamKey: string;
  readonly connectionTimeout: number;
  readonly clock: Clock;
  readonly labels: LinkLabels;
  readonly logger: Logger;
  /** Has the connection while it is there. */
  readonly reporter: LinkReporter;
}

/** With a full send buffer everything up to the next entry point is dropped, because half a frame is useless. */
export class SrtLink implements PayloadLink, WatchedLink {
  readonly labels: LinkLabels;
  readonly logger: Logger;
  readonly writable = true;
  dropped = 0;
  readonly #options: SrtLinkOptions;
  readonly #events: LinkEvents;
  #port: SrtUdpPort | null = null;
  #connection: SrtConnection | null = null;
  #skipping = false;
  #over = false;
  #gone: Promise<void> | null = null;

  /** Throws `PushFailure` for options of the URL that cannot be used. */
  constructor(options: SrtLinkOptions, events: LinkEvents) {
    this.labels = options.labels;
    this.logger = options.logger;
    this.#options = options;
    this.#events = events;
    void this.#call(callWish(options));
  }

  /** Present figures of the connection; null while there is none. */
  get statistics(): SrtStatistics | null {
    return this.#connection?.statistics ?? null;
  }

  send(payload: Uint8Array): boolean {
    const now = this.#port?.now() ?? 0;
    if (!this.#skipping && this.#connection?.send(payload, now) === true) return true;
    this.#skipping = true;
    this.dropped += 1;
    return false;
  }

  onEntryPoint(): void {
    this.#skipping = false;
  }

  flush(): void {
    this.#port?.flush();
  }

  fail(failure: PushFailure): void {
    if (this.#over) return;
    this.#over = true;
    this.#gone = this.#release();
    this.#events.onFailed(failure);
  }

  close(): Promise<void> {
    this.#over = true;
    this.#gone ??= this.#takeLeave();
    return this.#gone;
  }

  async #call(wish: CallWish): Promise<void> {
    const { url, connectionTimeout, clock } = this.#options;
    try {
      const { address, family } = await resolveHost(url.host);
      if (this.#over) return;
      const host = family === 6 ? '::' : '0.0.0.0';
      const onError = (error: Error): void => this.#lost(error.message);
      const onFault = (error: unknown): void => this.fail(failureOf(error));
      const port = await SrtUdpPort.open({ clock, host, port: 0, policy: null, onError, onFault });
      this.#port = port;
      if (this.#over) {
        await port.close('the task was stopped');
        return;
      }
      const call = { ...wish, timeout: connectionTimeout * 1000 };
      const session = { onData: () => undefined, onClosed: ({ detail }: { readonly detail: string }) => this.#lost(detail) };
      this.#connection = await port.connect({ address, port: url.port }, call, session);
      if (this.#over) return;
      this.#options.reporter.add(this);
      this.#events.onOpen();
    } catch (error) {
      this.fail(failureOf(error));
    }
  }

  #lost(detail: string): void {
    this.fail(new PushFailure('lost', `connection lost: ${detail}`));
  }

  /** Waits until the receiver has everything and has had time to pass it on. */
  async #takeLeave(): Promise<void> {
    const { clock } = this.#options;
    const connection = this.#connection;
    if (connection !== null) {
      const end = clock.monotonic() + LINGER_MS;
      while (!connection.closed && connection.sendBacklog > 0 && clock.monotonic() < end) await delay(LINGER_STEP_MS);
      const held = connection.terms.peerLatency / 1000 + LINGER_STEP_MS;
      if (!connection.closed) await delay(Math.min(held, Math.max(0, end - clock.monotonic())));
    }
    await this.#release();
  }

  async #release(): Promise<void> {
    this.#options.reporter.delete(this);
    await this.#port?.close('the push is over');
  }
}

/** Options by the names and units that URLs of FFmpeg and libsrt have: latencies in µs. */
function callWish({ url: { query }, streamKey }: SrtLinkOptions): CallWish {
  const own = query.get('streamid') ?? '';
  const common = microseconds(query, 'latency', DEFAULT_LATENCY.receive);
  const keyLength = Number(query.get('pbkeylen') ?? 0);
  if (keyLength !== 0 && !isKeyLength(keyLength)) throw new PushFailure('unsuitable', 'pbkeylen of the URL must be 0, 16, 24 or 32');
  return {
    streamId: own !== '' && streamKey !== '' ? `${own}/${streamKey}` : own + streamKey,
    passphrase: passphraseIn(query),
    keyLength: keyLength === 0 ? null : keyLength,
    latency: { receive: microseconds(query, 'rcvlatency', common), peer: microseconds(query, 'peerlatency', common) },
  };
}

/** A duration of the URL as ms. */
function microseconds(query: URLSearchParams, name: string, standard: number): number {
  const text = query.get(name);
  if (text === null || text === '') return standard;
  const value = /^\d{1,12}$/.test(text) ? Math.round(Number(text) / 1000) : Number.NaN;
  if (value >= 0 && value <= MAX_LATENCY_MS) return value;
  throw new PushFailure('unsuitable', `${name} of the URL must be microseconds from 0 to ${MAX_LATENCY_MS}000`);
}

function passphraseIn(query: URLSearchParams): string | null {
  try {
    return readPassphrase(query.get('passphrase') ?? undefined);
  } catch (error) {
    if (error instanceof SocketOptionError) throw new PushFailure('unsuitable', error.message);
    throw error;
  }
}

function failureOf(error: unknown): PushFailure {
  if (error instanceof PushFailure) return error;
  if (error instanceof SrtCallFailed) return new PushFailure('unreachable', `cannot connect: ${error.message}`);
  return new PushFailure('internal', 'internal error', { cause: error });
}
