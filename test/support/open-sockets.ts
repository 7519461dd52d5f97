/** The sockets of this process according to the Linux kernel, which misses none. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

const LISTENING = '0A';

export interface OpenSocket {
  readonly protocol: 'tcp' | 'udp';
  readonly localPort: number;
  /** 0 for listening sockets. */
  readonly remotePort: number;
  readonly listening: boolean;
}

/** All IP sockets of this process, from all threads. */
export function openSockets(): OpenSocket[] {
  const own = ownInodes();
  const sockets: OpenSocket[] = [];
  for (const [table, protocol] of [
    ['tcp', 'tcp'],
    ['tcp6', 'tcp'],
    ['udp', 'udp'],
    ['udp6', 'udp'],
  ] as const) {
    const [, ...lines] = readFileSync(`/proc/self/net/${table}`, 'utf8').trimEnd().split('\n');
    for (const line of lines) {
      const [, local = '', remote = '', state = '', , , , , , inode = ''] = line.trim().split(/\s+/);
      if (!own.has(inode)) continue;
      const remotePort = portOf(remote);
      sockets.push({
        protocol,
        localPort: portOf(local),
        remotePort,
        listening: protocol === 'tcp' ? state === LISTENING : remotePort === 0,
      });
    }
  }
  return sockets;
}

function portOf(address: string): number {
  return Number.parseInt(address.split(':')[1] ?? '0', 16);
}

function ownInodes(): Set<string> {
  const inodes = new Set<string>();
  for (const name of readdirSync('/proc/self/fd')) {
    try {
      const inode = /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/self/fd/${name}`))?.[1];
      if (inode !== undefined) inodes.add(inode);
    } catch {
      // The socket was closed meanwhile.
    }
  }
  return inodes;
}
