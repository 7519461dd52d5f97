/** A transport stream over TCP. */

import type { LinkEvents, PayloadLink } from './payload-link.ts';
import type { PushFailure } from './push-failure.ts';
import { TcpLink } from './tcp-link.ts';

export class TcpPayloadLink implements PayloadLink {
  readonly dropped = 0;
  readonly #link: TcpLink;

  constructor(target: { readonly host: string; readonly port: number; readonly sendTimeout: number }, events: LinkEvents) {
    this.#link = new TcpLink({
      ...target,
      secure: false,
      onConnect: events.onOpen,
      // Receivers have nothing to say.
      onData: () => undefined,
      onDrain: events.onWritable,
      onFailed: events.onFailed,
    });
  }

  get writable(): boolean {
    return this.#link.writable;
  }

  send(payload: Uint8Array): boolean {
    this.#link.write(payload);
    return true;
  }

  onEntryPoint(): void {
    // A TCP connection drops nothing, so recovery is not needed.
  }

  flush(): void {
    this.#link.flush();
  }

  fail(failure: PushFailure): void {
    this.#link.fail(failure);
  }

  close(): Promise<void> {
    return this.#link.close();
  }
}
