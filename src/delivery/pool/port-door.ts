/** A port that is open while no thread serves it: whoever connects waits in the kernel, and the first is told. */
import { type Handle, loadAddon, type NativeAddon } from '../../native/addon.ts';
import { BACKLOG, type ListenAddress, requireFreePort } from '../http/shared-port.ts';

/** Opens doors; where the addon is. */
export class PortDoors {
  readonly #addon: NativeAddon;

  constructor(addon: NativeAddon) {
    this.#addon = addon;
  }

  /** Null without the addon. */
  static load(): PortDoors | null {
    const { addon } = loadAddon();
    return addon === null ? null : new PortDoors(addon);
  }

  /** `knocked` is called once, with the first connection. Rejects when the port cannot be opened; who opens it closes it. */
  async open(address: ListenAddress, knocked: () => void): Promise<PortDoor> {
    await requireFreePort(address);
    const [handle, port, descriptor] = this.#addon.doorOpen(address.host, address.port, BACKLOG, knocked);
    return new PortDoor(this.#addon, { handle, port, descriptor });
  }
}

/** One open port. `close` may be called twice. */
export class PortDoor {
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

  /** A thread that has taken the port over keeps it, with everybody who waits there. */
  close(): void {
    this.#addon.doorClose(this.#handle);
  }
}
