/** Socket activation: a listening port without a thread. Connections wait in the kernel; the first one is reported. */
import { type Handle, loadAddon, type NativeAddon } from '../../native/addon.ts';
import { type ListenAddress, MAX_BACKLOG, requireFreePort } from '../../transport/tcp/shared-port.ts';

/** Opens activation ports; needs the addon. */
export class ActivationPorts {
  readonly #addon: NativeAddon;

  constructor(addon: NativeAddon) {
    this.#addon = addon;
  }

  /** Null without the addon. */
  static load(): ActivationPorts | null {
    const { addon } = loadAddon();
    return addon === null ? null : new ActivationPorts(addon);
  }

  /** `knocked` is called once, with the first connection. Rejects if the port cannot be opened; the caller closes it. */
  async open(address: ListenAddress, knocked: () => void): Promise<ActivationPort> {
    await requireFreePort(address);
    const [handle, port, descriptor] = this.#addon.doorOpen(address.host, address.port, MAX_BACKLOG, knocked);
    return new ActivationPort(this.#addon, { handle, port, descriptor });
  }
}

/** One open port. `close` may be called twice. */
export class ActivationPort {
  readonly port: number;
  /** For `ListenAddress`, until it is closed. */
  readonly descriptor: number;
  readonly #addon: NativeAddon;
  readonly #handle: Handle;

  constructor(addon: NativeAddon, opened: { readonly handle: Handle; readonly port: number; readonly descriptor: number }) {
    this.#addon = addon;
    this.#handle = opened.handle;
    this.port = opened.port;
    this.descriptor = opened.descriptor;
  }

  /** A thread that has taken over the port keeps it, with all waiting connections. */
  close(): void {
    this.#addon.doorClose(this.#handle);
  }
}
