/** A set of IP addresses and networks. */
import { BlockList, isIP } from 'node:net';
import { plainAddress } from './client-address.ts';

/** Maximum of remembered verdicts, all forgotten together. Most clients ask more than once. */
const MAX_MEMORY = 1024;

export class AddressSet {
  /** The set is empty. */
  readonly isEmpty: boolean;
  readonly #list = new BlockList();
  readonly #verdicts = new Map<string, boolean>();

  /** `entries`: addresses and networks (CIDR). Throws TypeError for anything else. */
  constructor(entries: readonly string[]) {
    this.isEmpty = entries.length === 0;
    for (const entry of entries) {
      if (!AddressSet.isAddress(entry)) throw new TypeError(`'${entry}' is no IP address and no network`);
      const [address = '', bits] = entry.split('/');
      const family = isIP(address) === 6 ? 'ipv6' : 'ipv4';
      if (bits === undefined) this.#list.addAddress(address, family);
      else this.#list.addSubnet(address, Number(bits), family);
    }
  }

  /** Whether `entry` is valid in a set. */
  static isAddress(entry: string): boolean {
    const match = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(entry);
    const family = isIP(match?.[1] ?? '');
    return family !== 0 && Number(match?.[2] ?? 0) <= (family === 6 ? 128 : 32);
  }

  /** Whether `address`, without port, is in the set; a zone (`%eth0`) is ignored. */
  has(address: string): boolean {
    if (this.isEmpty) return false;
    let verdict = this.#verdicts.get(address);
    if (verdict !== undefined) return verdict;
    const plain = plainAddress(address.split('%', 1)[0] ?? '');
    const family = isIP(plain);
    verdict = family !== 0 && this.#list.check(plain, family === 6 ? 'ipv6' : 'ipv4');
    if (this.#verdicts.size >= MAX_MEMORY) this.#verdicts.clear();
    this.#verdicts.set(address, verdict);
    return verdict;
  }
}
