/** IP addresses of clients, as they are compared, counted and written. */
import { isIP, isIPv4, isIPv6 } from 'node:net';
import { addressBytes } from './address-bytes.ts';

const MAPPED = '::ffff:';
/** A household or a server has a network of at least this size (RFC 6177). */
const NETWORK_BYTES = 8;

/** Turns an IPv4 address in the IPv6 form of a dual-stack socket into its plain form; returns any other address unchanged. */
export function plainAddress(host: string): string {
  if (!host.startsWith(MAPPED)) return host;
  const plain = host.slice(MAPPED.length);
  // More groups may follow the prefix: `::ffff:1:192.0.2.1` is not an IPv4 address.
  return isIPv4(plain) ? plain : host;
}

/** The owner of an address: the IPv4 address itself, or the /64 of an IPv6 address, because a host has at least that many. */
export function addressOwner(host: string): string {
  const plain = plainAddress(host);
  return plain.includes(':') && isIPv6(plain) ? `${addressBytes(plain).subarray(0, NETWORK_BYTES).toString('hex')}/64` : plain;
}

/** As `addressOwner`, for an address with or without a port as `hostPort` writes it. */
export function endOwner(end: string): string {
  return addressOwner(isIP(end) > 0 ? end : end.replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1'));
}

/** A loopback address, which only this machine can reach. */
export function isLoopback(host: string): boolean {
  const plain = plainAddress(host);
  return plain === '::1' || (isIPv4(plain) && plain.startsWith('127.'));
}

/** A host name or an address in the form before a port: IPv6 in brackets. */
export function bracketed(host: string): string {
  return host.includes(':') ? `[${host}]` : host;
}

/** An address with its port: `192.0.2.1:5000`, `[2001:db8::1]:5000`. */
export function hostPort(host: string, port: number): string {
  return `${bracketed(host)}:${port}`;
}
