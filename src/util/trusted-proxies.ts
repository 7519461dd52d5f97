/** Proxies that are believed when they say whom they speak for. */
import { isIP } from 'node:net';
import { AddressSet } from './address-set.ts';
import { plainAddress } from './client-address.ts';

/** Longest `X-Forwarded-For` that is read, characters, counted from its end: what clients wrote themselves stands before that. */
const MAX_HEADER = 1024;

/** Their addresses and networks. */
export class TrustedProxies extends AddressSet {
  /**
   * Who sent a request that came from `address`: what a trusted proxy says in `X-Forwarded-For`, the last of its entries that is
   * no trusted proxy itself. Entries before that one are whatever the client wrote. An entry that is no address ends the search.
   */
  clientOf(address: string, forwardedFor: string | undefined): string {
    if (this.isEmpty || forwardedFor === undefined || !this.has(address)) return address;
    let client = address;
    for (const entry of forwardedFor.slice(-MAX_HEADER).split(',').reverse()) {
      const hop = addressOf(entry.trim());
      if (hop === null) break;
      client = hop;
      if (!this.has(hop)) break;
    }
    return client;
  }

  /**
   * The same for what is decided by the client's address: where a trusted proxy wrote no `X-Forwarded-For`, its `X-Real-IP` counts. With
   * both, the first decides: a proxy that writes it may have passed on an `X-Real-IP` of the client's own.
   */
  realIpOf(address: string, { forwardedFor, realIp }: { forwardedFor: string | undefined; realIp: string | undefined }): string {
    if (forwardedFor !== undefined || realIp === undefined) return this.clientOf(address, forwardedFor);
    return (this.has(address) ? addressOf(realIp.trim()) : null) ?? address;
  }
}

/** The address of an entry, which may have a port: `192.0.2.1:5000`, `[2001:db8::1]:5000`. Null when it is none. */
function addressOf(entry: string): string | null {
  const address = /^\[([^\]]+)\](?::\d+)?$/.exec(entry)?.[1] ?? /^([\d.]+):\d+$/.exec(entry)?.[1] ?? entry;
  return isIP(address) === 0 || address.includes('%') ? null : plainAddress(address);
}
