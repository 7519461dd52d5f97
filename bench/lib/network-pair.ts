/** Two network namespaces joined by a pair of virtual Ethernet devices, for a server and viewers on separate networks. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const exec = promisify(execFile);

const PREFIX = 'millrace-bench';
const SIDES = ['server', 'viewers'] as const;
/** TEST-NET-1 (RFC 5737), which is never assigned. */
const HOSTS = { server: '192.0.2.1', viewers: '192.0.2.2' } as const;
const DEVICE = 'wire';
/** An unused hardware address. */
const NOBODY = ['lladdr', '02:00:00:00:00:99', 'nud', 'permanent'];

export type NetworkSide = (typeof SIDES)[number];

/**
 * Where a message of many packets (`UDP_SEGMENT`) is split. `receiver`: only at the other end, as with a device that splits in hardware
 * without cost; `sender`: in the kernel before the device, as with a device that cannot.
 */
export type Segmentation = 'receiver' | 'sender';

/** The caller of `open` closes it. */
export class NetworkPair {
  readonly #names: Record<NetworkSide, string>;
  #closed = false;

  private constructor(names: Record<NetworkSide, string>) {
    this.#names = names;
  }

  /** Makes a pair, and deletes pairs left by benches that crashed. Returns the reason as text if that is impossible here. */
  static async open(): Promise<NetworkPair | string> {
    const pair = new NetworkPair({ server: `${PREFIX}-${process.pid}-server`, viewers: `${PREFIX}-${process.pid}-viewers` });
    try {
      await deleteLeftovers();
      await pair.#make();
      return pair;
    } catch (error) {
      await pair.close();
      const [reason = ''] = (error instanceof Error ? error.message : String(error)).trim().split('\n').slice(-1);
      return `network namespaces cannot be made here (it takes root and iproute2): ${reason}`;
    }
  }

  async #make(): Promise<void> {
    const { server, viewers } = this.#names;
    for (const side of SIDES) await ip('netns', 'add', this.#names[side]);
    await ip('link', 'add', DEVICE, 'mtu', '1500', 'netns', server, 'type', 'veth', 'peer', 'name', DEVICE, 'netns', viewers);
    for (const side of SIDES) {
      const inside = ['-n', this.#names[side]];
      await ip(...inside, 'address', 'add', `${HOSTS[side]}/30`, 'dev', DEVICE);
      await ip(...inside, 'link', 'set', 'lo', 'up');
      await ip(...inside, 'link', 'set', DEVICE, 'up');
    }
  }

  /** Address of a side. */
  host(side: NetworkSide): string {
    return HOSTS[side];
  }

  /** Prefix of a command line that runs at a side. */
  inside(side: NetworkSide): readonly string[] {
    return ['nsenter', `--net=/run/netns/${this.#names[side]}`];
  }

  /** Sets where the server's messages are split. */
  async setSegmentation(segmentation: Segmentation): Promise<void> {
    const most = segmentation === 'receiver' ? '65535' : '1';
    await ip('-n', this.#names.server, 'link', 'set', DEVICE, 'gso_max_segs', most);
  }

  /**
   * Commands at the server's side. Between them the other side drops its packets, because of their unused hardware address: the cost of
   * sending remains, that of receiving nearly vanishes.
   */
  get deafness(): { readonly begin: readonly string[]; readonly end: readonly string[] } {
    const place = [HOSTS.viewers, 'dev', DEVICE];
    return { begin: ['ip', 'neighbour', 'replace', ...place, ...NOBODY], end: ['ip', 'neighbour', 'delete', ...place] };
  }

  /** Deletes both namespaces, and the devices with them. Idempotent. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    for (const side of SIDES) await ip('netns', 'delete', this.#names[side]).catch(() => undefined);
  }
}

async function ip(...args: readonly string[]): Promise<string> {
  return (await exec('ip', [...args])).stdout;
}

/** Names contain the id of the process that made them. */
async function deleteLeftovers(): Promise<void> {
  for (const line of (await ip('netns', 'list')).split('\n')) {
    const [name = ''] = line.split(' ');
    const owner = new RegExp(`^${PREFIX}-(\\d+)-`).exec(name)?.[1];
    if (owner !== undefined && !isAlive(Number(owner))) await ip('netns', 'delete', name);
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
