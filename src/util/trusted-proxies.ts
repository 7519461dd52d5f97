/** Proxies that are believed when they say whom they speak for. */
import { BlockList, isIP } from 'node:net';
import { plainAddress } from './client-address.ts';

/** Verdicts remembered, forgotten together: a proxy brings many connections. */
const MEMORY_LIMIT = 1024;
/** Longest `X-Forwarded-For` that is read, characters, counted from its end: what clients wrote themselves stands before that. */
const HEADER_LIMIT = 1024;

/** A set of addresses and networks. */
export class TrustedProxies {
  /** Nobody is trusted. */
  readonly isEmpty: boolean;
  readonly #list = new BlockList();
  readonly #verdicts = new Map<string, boolean>();

  /** `entries`: addresses and networks (CIDR). Throws TypeError for anything else. */
  constructor(entries: readonly string[]) {
    this.isEmpty = entries.length === 0;
    for (const entry of entries) {
      if (!TrustedProxies.isAddress(entry)) throw new TypeError(`'${entry}' is no IP address and no network`);
      const [address = '', bits] = entry.split('/');
      const family = isIP(address) === 6 ? 'ipv6' : 'ipv4';
      if (bits === undefined) this.#list.addAddress(address, family);
      else this.#list.addSubnet(address, Number(bits), family);
    }
  }

  /** Whether `entry` can be one of the set. */
  static isAddress(entry: string): boolean {
    const match = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(entry);
    const family = isIP(match?.[1] ?? '');
    return family !== 0 && Number(match?.[2] ?? 0) <= (family === 6 ? 128 : 32);
  }

  has(address: string): boolean {
    if (this.isEmpty) return false;
    let verdict = this.#verdicts.get(address);
    if (verdict !== undefined) return verdict;
    const plain = plainAddress(address);
    const family = isIP(plain);
    verdict = family !== 0 && this.#list.check(plain, family === 6 ? 'ipv6' : 'ipv4');
    if (this.#verdicts.size >= MEMORY_LIMIT) this.#verdicts.clear();
    this.#verdicts.set(address, verdict);
    return verdict;
  }

  /**
   * Who sent a request that came from `address`: what a trusted proxy says in `X-Forwarded-For`, the last of its entries that is
   * no trusted proxy itself. Entries before that one are whatever the client wrote. An entry that is no address ends the search.
   */
  clientOf(address: string, forwardedFor: string | undefined): string {
    if (this.isEmpty || forwardedFor === undefined || !this.has(address)) return address;
    let client = address;
    for (const entry of forwardedFor.slice(-HEADER_LIMIT).split(',').reverse()) {
      const hop = addressOf(entry.trim());
      if (hop === null) break;
      client = hop;
      if (!this.has(hop)) break;
    }
    return client;
  }
}

/** The address of an entry, which may have a port: `192.0.2.1:5000`, `[2001:db8::1]:5000`. Null when it is none. */
function addressOf(entry: string): string | null {
  const address = /^\[([^\]]+)\](?::\d+)?$/.exec(entry)?.[1] ?? /^([\d.]+):\d+$/.exec(entry)?.[1] ?? entry;
  return isIP(address) === 0 || address.includes('%') ? null : plainAddress(address);
}
