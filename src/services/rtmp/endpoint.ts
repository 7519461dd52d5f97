/** Socket addresses as people and URLs write them. */

const IPV4_IN_IPV6 = '::ffff:';

/** The address without the IPv6 wrapping of an IPv4 one; empty when the socket has none any more. */
export function plainAddress(address: string | undefined): string {
  if (address === undefined) return '';
  return address.startsWith(IPV4_IN_IPV6) && address.includes('.') ? address.slice(IPV4_IN_IPV6.length) : address;
}

/** `address:port`, IPv6 in brackets. */
export function formatEndpoint(address: string | undefined, port: number | undefined): string {
  const plain = plainAddress(address);
  return `${plain.includes(':') ? `[${plain}]` : plain}:${port ?? 0}`;
}
