import { loadAddon } from '../addon.ts';
import { NativeUdpSocket } from './native-udp-socket.ts';
import { NodeUdpSocket } from './node-udp-socket.ts';
import type { UdpSocket, UdpSocketOptions } from './udp-socket.ts';

/** Opens a socket of the addon, or of Node where there is none. Rejects when the port cannot be bound. */
export async function openUdpSocket(options: UdpSocketOptions): Promise<UdpSocket> {
  const { addon } = loadAddon();
  return addon === null ? await NodeUdpSocket.open(options) : new NativeUdpSocket(addon, options);
}
