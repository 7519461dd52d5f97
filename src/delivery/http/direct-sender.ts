/** Sends answers synchronously through the addon, if it is loaded: Node creates a request object for each write. */
import type { Socket } from 'node:net';
import { type Handle, loadAddon, type NativeAddon } from '../../native/addon.ts';

/** Bytes in a memory file: the kernel sends them without copying. */
export interface MemoryFile {
  readonly handle: Handle;
  readonly length: number;
}

/** Internals of a socket: Node.js has no documented access to the descriptor. */
interface Inside {
  readonly _handle?: { readonly fd?: unknown } | null;
}

/** Stateless: one instance serves all sockets of a thread and needs no closing. */
export class DirectSender {
  readonly #addon: NativeAddon;

  constructor(addon: NativeAddon) {
    this.#addon = addon;
  }

  /** Null without the addon. */
  static load(): DirectSender | null {
    const { addon } = loadAddon();
    return addon === null ? null : new DirectSender(addon);
  }

  /**
   * Sends `head` (Latin-1) and `chunks`; returns the number of sent bytes. The caller writes the rest to the socket, which reports errors.
   */
  send(socket: Socket, head: string, chunks: readonly Uint8Array[]): number {
    const descriptor = descriptorOf(socket);
    return descriptor < 0 ? 0 : this.#addon.tcpSend(descriptor, head, chunks);
  }

  /** As `send`, with a body in a memory file. */
  sendMemoryFile(socket: Socket, head: string, { handle, length }: MemoryFile): number {
    const descriptor = descriptorOf(socket);
    return descriptor < 0 ? 0 : this.#addon.tcpSendMemoryFile(descriptor, head, handle, length);
  }
}

/** The descriptor of a socket; below 0 if the socket still has queued bytes, or cannot be used directly. */
export function descriptorOf(socket: Socket): number {
  const descriptor = socket.writableLength > 0 || socket.destroyed ? null : (socket as unknown as Inside)._handle?.fd;
  return typeof descriptor === 'number' ? descriptor : -1;
}
