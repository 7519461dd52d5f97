/** A transport stream over UDP, to one receiver or a multicast group. There are no answers, so losses are unknown. */
import { createSocket, type Socket, type SocketOptions } from 'node:dgram';
import type { LinkEvents, PayloadLink } from './payload-link.ts';
import { PushFailure } from './push-failure.ts';
import { resolveHost } from './resolve-host.ts';

/** Datagrams that may leave at once: the usual socket buffer of a receiver holds some ninety. */
const BURST = 32;
const BURST_INTERVAL_MS = 1;
/** Limit of datagrams that wait for their burst before packets have to wait. */
const MAX_WAIT = 1024;
/** Time for the datagrams that still wait when the task ends. */
const LINGER_MS = 1000;
const SEND_BUFFER = 1024 * 1024;

/** Sends in bursts that small receive buffers can hold. `close` sends the rest, for a second at most; idempotent. */
export class UdpLink implements PayloadLink {
  readonly dropped = 0;
  readonly #port: number;
  readonly #events: LinkEvents;
  readonly #gone = Promise.withResolvers<void>();
  #address = '';
  #socket: Socket | null = null;
  #waiting: Uint8Array[] = [];
  #next = 0;
  #timer: NodeJS.Timeout | null = null;
  #state: 'open' | 'closing' | 'over' = 'open';

  constructor({ host, port }: { readonly host: string; readonly port: number }, events: LinkEvents) {
    this.#port = port;
    this.#events = events;
    void this.#open(host);
  }

  get writable(): boolean {
    return this.#waiting.length - this.#next < MAX_WAIT;
  }

  send(payload: Uint8Array): boolean {
    this.#waiting.push(payload);
    return true;
  }

  onEntryPoint(): void {
    // UDP payloads are never dropped here.
  }

  flush(): void {
    if (this.#timer === null) this.#burst();
  }

  fail(failure: PushFailure): void {
    if (this.#state !== 'open') return;
    this.#end();
    this.#events.onFailed(failure);
  }

  close(): Promise<void> {
    if (this.#state !== 'open') return this.#gone.promise;
    this.#state = 'closing';
    if (this.#next >= this.#waiting.length) this.#end();
    else {
      const cut = setTimeout(() => this.#end(), LINGER_MS);
      void this.#gone.promise.then(() => clearTimeout(cut));
      this.flush();
    }
    return this.#gone.promise;
  }

  async #open(host: string): Promise<void> {
    try {
      const { address, family } = await resolveHost(host);
      if (this.#state !== 'open') return;
      this.#address = address;
      // The address needs no resolver, which would put off every send to a later turn.
      const lookup: SocketOptions['lookup'] = (name, _options, done) => done(null, name, family);
      const socket = createSocket({ type: family === 6 ? 'udp6' : 'udp4', lookup, sendBufferSize: SEND_BUFFER });
      this.#socket = socket;
      socket.on('error', (error) => this.fail(new PushFailure('lost', `cannot send: ${error.message}`)));
      socket.bind(0, () => {
        if (this.#state === 'open') this.#events.onOpen();
      });
    } catch (error) {
      this.fail(error instanceof PushFailure ? error : new PushFailure('internal', 'internal error', { cause: error }));
    }
  }

  /** Sends a burst; the rest waits for the next one. */
  readonly #burst = (): void => {
    this.#timer = null;
    const socket = this.#socket;
    if (socket === null || this.#state === 'over') return;
    const wasFull = !this.writable;
    const end = Math.min(this.#waiting.length, this.#next + BURST);
    for (; this.#next < end; this.#next += 1) {
      const payload = this.#waiting[this.#next];
      if (payload !== undefined) socket.send(payload, this.#port, this.#address, this.#onSent);
    }
    if (this.#next < this.#waiting.length) {
      this.#timer = setTimeout(this.#burst, BURST_INTERVAL_MS);
    } else {
      this.#waiting = [];
      this.#next = 0;
      if (this.#state === 'closing') this.#end();
    }
    if (wasFull && this.writable && this.#state === 'open') this.#events.onWritable();
  };

  /** A short network outage only loses datagrams; an error that the network reports becomes the reason. */
  readonly #onSent = (error: Error | null): void => {
    if (error !== null) this.fail(new PushFailure('lost', `cannot send: ${error.message}`));
  };

  #end(): void {
    if (this.#state === 'over') return;
    this.#state = 'over';
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#waiting = [];
    this.#next = 0;
    if (this.#socket === null) this.#gone.resolve();
    else this.#socket.close(() => this.#gone.resolve());
  }
}
