/** Sends answers from within the turn they are made in, where the addon is there: Node's way makes a request object for each. */
import type { Socket } from 'node:net';
import { type Handle, loadAddon, type NativeAddon } from '../../native/addon.ts';

/** Bytes in a memory file: the system sends them without copying. */
export interface Image {
  readonly handle: Handle;
  readonly length: number;
}

/** The inside of a socket: Node.js has no documented way to its descriptor. */
interface Inside {
  readonly _handle?: { readonly fd?: unknown } | null;
}

/** Holds nothing of its own: one serves all sockets of a thread and needs no closing. */
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

  /** Sends `head` (Latin-1) and `chunks`; tells how many bytes of both went at once. The rest, and all errors, are for the socket. */
  send(socket: Socket, head: string, chunks: readonly Uint8Array[]): number {
    const descriptor = descriptorOf(socket);
    return descriptor < 0 ? 0 : this.#addon.tcpSend(descriptor, head, chunks);
  }

  /** The same with a body that lies in an image. */
  sendImage(socket: Socket, head: string, { handle, length }: Image): number {
    const descriptor = descriptorOf(socket);
    return descriptor < 0 ? 0 : this.#addon.tcpSendImage(descriptor, head, handle, length);
  }
}

/** The descriptor of a socket; below 0 when bytes that the socket still has must go first, or it cannot be sent on. */
export function descriptorOf(socket: Socket): number {
  const descriptor = socket.writableLength > 0 || socket.destroyed ? null : (socket as unknown as Inside)._handle?.fd;
  return typeof descriptor === 'number' ? descriptor : -1;
}
