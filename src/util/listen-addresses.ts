/** The addresses on which the server listens. Every listener has one socket for each, so that no peer has an IPv4 address in IPv6 form. */
import { isIPv6 } from 'node:net';

/** All of IPv4. */
export const ALL_IPV4 = '0.0.0.0';
/** All of IPv6, without IPv4: listeners bind it with `ipv6Only`. */
export const ALL_IPV6 = '::';

/**
 * The addresses to bind for `IP` elements: `*` is all of IPv4, `::` all of IPv6. `::` with IPv6 addresses alone means both, as for a
 * dual-stack socket. Each address once, in the order of the configuration.
 */
export function listenAddresses(ips: readonly string[]): string[] {
  const hosts = new Set(ips.map((ip) => (ip === '*' ? ALL_IPV4 : ip)));
  const isAll = hosts.has(ALL_IPV6) && [...hosts].every(isIPv6);
  return isAll ? [ALL_IPV4, ...hosts] : [...hosts];
}

/** Options of `listen` and `bind` in Node.js that restrict a socket to the family of its address. */
export function ownFamily(host: string): { readonly host: string; readonly ipv6Only: boolean } {
  return { host, ipv6Only: isIPv6(host) };
}
