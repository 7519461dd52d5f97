/** Finds the process that has a socket, in Linux' `/proc`, as far as this user may see. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { isIPv6 } from 'node:net';

/** State of a TCP socket that listens. */
const LISTEN = '0A';
const PORT_AND_STATE = /^\s*\d+: [0-9A-F]+:([0-9A-F]{4}) \S+ ([0-9A-F]{2}) \S+ \S+ \S+ +\d+ +\d+ +(\d+)/gm;

/** Reads the processes once, at the first question: one instance for each round of checks. */
export class SocketOwners {
  #processes: Map<string, number> | null = null;

  /** The process with the port; null if it is invisible. */
  of({ protocol, host, port }: { readonly protocol: 'tcp' | 'udp'; readonly host: string; readonly port: number }): number | null {
    this.#processes ??= socketsOfProcesses();
    const files = isIPv6(host) ? [`${protocol}6`] : [protocol, `${protocol}6`];
    for (const file of files) {
      for (const [, hex = '', state, inode = ''] of textOf(`/proc/net/${file}`).matchAll(PORT_AND_STATE)) {
        if (Number.parseInt(hex, 16) !== port || (protocol === 'tcp' && state !== LISTEN)) continue;
        const owner = this.#processes.get(inode);
        if (owner !== undefined) return owner;
      }
    }
    return null;
  }

  /** `nginx (process 4711)`. */
  name(process: number): string {
    const name = textOf(`/proc/${process}/comm`).trim();
    return name === '' ? `process ${process}` : `${name} (process ${process})`;
  }
}

/** Processes by the inodes of their sockets. */
function socketsOfProcesses(): Map<string, number> {
  const found = new Map<string, number>();
  for (const process of namesIn('/proc').filter((name) => /^\d+$/.test(name))) {
    for (const descriptor of namesIn(`/proc/${process}/fd`)) {
      const inode = /^socket:\[(\d+)\]$/.exec(linkOf(`/proc/${process}/fd/${descriptor}`))?.[1];
      if (inode !== undefined) found.set(inode, Number(process));
    }
  }
  return found;
}

// Processes may end meanwhile, and those of other users are unreadable.
function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return '';
  }
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
