/** Separate hosts on this machine: network namespaces around a router that can drop the packets between any two. */
import { spawnSync } from 'node:child_process';

/** Addresses reserved for tests of networks (RFC 2544). */
const PREFIX = '198.18';
/** Limit of simultaneous networks on this machine. */
const NETWORKS = 250;
/** Addresses of a link: network, router, host, broadcast. */
const LINK = 4;

/** Runs a command to its end; throws with its output if it fails. */
function run(...words: readonly string[]): void {
  const [program = '', ...args] = words;
  const { status, stderr, error } = spawnSync(program, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${words.join(' ')}: ${error?.message ?? stderr.trim()}`);
}

/** Why such a network is impossible here; null if it is possible. */
export function whyNoNetwork(): string | null {
  const name = `millrace-probe-${process.pid}`;
  try {
    run('ip', 'netns', 'add', name);
    run('ip', '-n', name, 'link', 'add', 'probe', 'type', 'veth', 'peer', 'name', 'peer');
    run('ip', '-n', name, 'rule', 'add', 'from', `${PREFIX}.0.1`, 'to', `${PREFIX}.0.2`, 'blackhole');
    return null;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  } finally {
    spawnSync('ip', ['netns', 'del', name]);
  }
}

/** A network of hosts by name. This process is connected, too. The caller of `open` closes it. */
export class Network {
  readonly #hosts: readonly string[];
  readonly #number: number;
  readonly #id: string;

  private constructor(hosts: readonly string[], number: number) {
    this.#hosts = hosts;
    this.#number = number;
    this.#id = `millrace-${process.pid}-${number}`;
  }

  /** Throws if `whyNoNetwork` has a reason. */
  static open(hosts: readonly string[]): Network {
    const network = new Network(hosts, process.pid % NETWORKS);
    try {
      network.#make();
    } catch (error) {
      network.close();
      throw error;
    }
    return network;
  }

  /** The address of a host. */
  address(host: string): string {
    const at = this.#hosts.indexOf(host);
    if (at < 0) throw new Error(`there is no host ${host}`);
    return this.#address(at, 2);
  }

  /** Prefix of a command line that runs at a host. */
  at(host: string): readonly string[] {
    return ['ip', 'netns', 'exec', this.#space(host)];
  }

  /** Silently drops everything between two nodes from now on. */
  cut(one: string, other: string): void {
    this.#rules('add', one, other);
  }

  heal(one: string, other: string): void {
    this.#rules('del', one, other);
  }

  /** Idempotent. Programs that still run at a host lose their links. */
  close(): void {
    for (const host of [...this.#hosts, 'router']) spawnSync('ip', ['netns', 'del', this.#space(host)]);
    spawnSync('ip', ['link', 'del', this.#ownLink]);
  }

  get #ownLink(): string {
    return `mr${process.pid}`;
  }

  #make(): void {
    const router = this.#space('router');
    run('ip', 'netns', 'add', router);
    run('ip', 'netns', 'exec', router, 'sysctl', '-qw', 'net.ipv4.ip_forward=1');
    for (const [at, host] of this.#hosts.entries()) {
      const space = this.#space(host);
      run('ip', 'netns', 'add', space);
      run('ip', '-n', router, 'link', 'add', `to${at}`, 'type', 'veth', 'peer', 'name', 'uplink', 'netns', space);
      run('ip', '-n', router, 'address', 'add', `${this.#address(at, 1)}/30`, 'dev', `to${at}`);
      run('ip', '-n', router, 'link', 'set', `to${at}`, 'up');
      run('ip', '-n', space, 'address', 'add', `${this.#address(at, 2)}/30`, 'dev', 'uplink');
      for (const link of ['lo', 'uplink']) run('ip', '-n', space, 'link', 'set', 'dev', link, 'up');
      run('ip', '-n', space, 'route', 'add', 'default', 'via', this.#address(at, 1));
    }
    const own = this.#hosts.length;
    run('ip', '-n', router, 'link', 'add', 'tests', 'type', 'veth', 'peer', 'name', this.#ownLink, 'netns', `${process.pid}`);
    run('ip', '-n', router, 'address', 'add', `${this.#address(own, 1)}/30`, 'dev', 'tests');
    run('ip', '-n', router, 'link', 'set', 'tests', 'up');
    run('ip', 'address', 'add', `${this.#address(own, 2)}/30`, 'dev', this.#ownLink);
    run('ip', 'link', 'set', this.#ownLink, 'up');
    run('ip', 'route', 'add', `${PREFIX}.${this.#number}.0/24`, 'via', this.#address(own, 1));
  }

  #rules(change: 'add' | 'del', one: string, other: string): void {
    const router = this.#space('router');
    const [from, to] = [this.address(one), this.address(other)];
    for (const [source, target] of [[from, to] as const, [to, from] as const]) {
      run('ip', '-n', router, 'rule', change, 'from', source, 'to', target, 'blackhole');
    }
  }

  /** Address on the link of host `at`: 1 is the router, 2 the host. */
  #address(at: number, which: 1 | 2): string {
    return `${PREFIX}.${this.#number}.${at * LINK + which}`;
  }

  #space(host: string): string {
    return `${this.#id}-${host}`;
  }
}
