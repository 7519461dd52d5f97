/** Addresses of peers, as they are compared and written. */
import { isIPv4 } from 'node:net';
import { plainAddress } from '../../../util/client-address.ts';

export { addressOwner, plainAddress } from '../../../util/client-address.ts';

/** An address of the machine itself, by which nobody else reaches it. */
export function isLoopback(host: string): boolean {
  const plain = plainAddress(host);
  return plain === '::1' || (isIPv4(plain) && plain.startsWith('127.'));
}

/** `192.0.2.1:5000`, `[2001:db8::1]:5000`. */
export function placeOf(host: string, port: number): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}
