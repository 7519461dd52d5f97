/** The other end of a datagram. */
export interface PeerAddress {
  readonly address: string;
  readonly port: number;
}

/** `address:port`, IPv6 in brackets. */
export function formatPeer({ address, port }: PeerAddress): string {
  return `${address.includes(':') ? `[${address}]` : address}:${port}`;
}
