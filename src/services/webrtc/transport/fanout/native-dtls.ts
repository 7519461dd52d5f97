/** One DTLS session in the addon: handshake and end. The keys that it agrees on go to the fanout. */
import type { DtlsOutcome, Handle, NativeAddon } from '../../../../native/addon.ts';
import type { SrtpProfile } from '../../../../wire/srtp/profile.ts';
import type { DtlsEndpoint, DtlsListener } from './fanout.ts';

const DtlsState = { CONNECTED: 1, CLOSED: 2 } as const;
const NOTHING = new Uint8Array(0);

/** A client sends its first flight at once. `close` tells the peer, and may be called twice. */
export class NativeDtls implements DtlsEndpoint {
  readonly #addon: NativeAddon;
  readonly #handle: Handle;
  readonly #listener: DtlsListener;
  #connected = false;
  #closed = false;

  constructor(addon: NativeAddon, handle: Handle, role: 'client' | 'server', listener: DtlsListener) {
    this.#addon = addon;
    this.#handle = handle;
    this.#listener = listener;
    if (role === 'client') this.#step(addon.dtlsReceive(handle, NOTHING));
  }

  receive(datagram: Uint8Array): void {
    if (!this.#closed && datagram.length > 0) this.#step(this.#addon.dtlsReceive(this.#handle, datagram));
  }

  tick(): void {
    if (!this.#closed && !this.#connected) this.#step(this.#addon.dtlsTick(this.#handle));
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    for (const datagram of this.#addon.dtlsClose(this.#handle).datagrams) this.#listener.send(datagram);
  }

  #step({ state, error, datagrams }: DtlsOutcome): void {
    // Keys are set before the last flight leaves, because the peer's media may follow it at once.
    const isUseless = state === DtlsState.CONNECTED && !this.#connected && !this.#secured();
    for (const datagram of datagrams) this.#listener.send(datagram);
    if (isUseless) this.#end('the peer agreed to no SRTP profile');
    else if (state === DtlsState.CLOSED) this.#end(error === '' ? 'the peer closed' : error);
  }

  /** False when there are no keys. */
  #secured(): boolean {
    this.#connected = true;
    const keys = this.#addon.dtlsKeys(this.#handle);
    if (keys === null) return false;
    this.#listener.connected({ ...keys, profile: keys.profile as SrtpProfile }, keys.fingerprint);
    return true;
  }

  #end(reason: string): void {
    // The handle may live for long, and must hold no handshake until then.
    this.close();
    this.#listener.closed(reason);
  }
}
