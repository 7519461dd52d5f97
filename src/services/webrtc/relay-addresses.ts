/** Reads `TcpRelay` elements: the addresses on which the relay listens, and those that it announces. */
import { isIP } from 'node:net';
import { hostPort } from '../../util/client-address.ts';
import { ALL_IPV4, ALL_IPV6, listenAddresses } from '../../util/listen-addresses.ts';
import { placesOf } from './candidate-ports.ts';

/** The result of all elements together. */
export interface RelayPlan {
  /** Addresses to listen on, without repetition. */
  readonly listen: readonly { readonly host: string; readonly port: number }[];
  /** `turn:<host>:<port>?transport=tcp`, as announced to peers. */
  readonly urls: readonly string[];
}

/**
 * `*:3478`, `192.0.2.1:3478`, `[2001:db8::1]:3478`, `relay.example.com:3478`. For a name, and for an address that is not this machine's own
 * (NAT), the port is opened on all addresses. With `bindTo` (`TcpRelayBind`, `<ip>:<port>`) the relay listens only there. Throws TypeError
 * with a sentence for anything else.
 */
export function readRelayAddresses(entries: readonly string[], bindAddresses: readonly string[], bindTo?: string): RelayPlan {
  const listen = new Map<string, { host: string; port: number }>();
  const urls = new Set<string>();
  const everywhere = listenAddresses(bindAddresses).includes(ALL_IPV6) ? [ALL_IPV4, ALL_IPV6] : [ALL_IPV4];
  const open = (host: string, port: number): void => void listen.set(`${host} ${port}`, { host, port });
  for (const entry of entries) {
    const { host, port } = readEntry(entry);
    const tell = (name: string): void => void urls.add(`turn:${hostPort(name, port)}?transport=tcp`);
    if (host !== '*' && isIP(host) === 0) {
      tell(host);
      if (bindTo === undefined) for (const all of everywhere) open(all, port);
      continue;
    }
    for (const place of placesOf(host, { bindAddresses, entry })) {
      for (const address of place.addresses) tell(address);
      if (bindTo === undefined) open(place.host, port);
    }
  }
  if (bindTo !== undefined && entries.length > 0) {
    const { host, port } = readEntry(bindTo);
    if (host !== '*' && isIP(host) === 0) throw new TypeError(`'${bindTo}': '${host}' is not an IP address`);
    for (const one of host === '*' ? everywhere : [host]) open(one, port);
  }
  return { listen: [...listen.values()], urls: [...urls] };
}

function readEntry(entry: string): { host: string; port: number } {
  const match = /^(?:(\*|\[[^\]]+\]|[^:[\]\s]+):)?(\d{1,5})(?:\/tcp)?$/i.exec(entry.trim());
  const port = Number(match?.[2]);
  if (match === null || port < 1 || port > 65_535) throw new TypeError(`'${entry}' is not <ip>:<port>`);
  return { host: (match[1] ?? '*').replace(/^\[(.*)\]$/, '$1'), port };
}
