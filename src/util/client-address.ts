/** IP addresses of clients, as they are compared, counted and written. */
import { isIPv6 } from 'node:net';
import { addressBytes } from './address-bytes.ts';

const MAPPED = '::ffff:';
/** One household or one server has a network of this size at least (RFC 6177). */
const NETWORK_BYTES = 8;

/** An IPv4 address that a dual-stack socket wrote as IPv6. */
export function plainAddress(host: string): string {
  return host.startsWith(MAPPED) && host.includes('.') ? host.slice(MAPPED.length) : host;
}

/** Whose address it is: an IPv4 address is somebody's, of IPv6 everybody has 2⁶⁴ at least. */
export function addressOwner(host: string): string {
  const plain = plainAddress(host);
  return isIPv6(plain) ? `${addressBytes(plain).subarray(0, NETWORK_BYTES).toString('hex')}/64` : plain;
}
