/** Reads `IceCandidate` elements: the media ports and the announced addresses. */
import { isIP, isIPv6 } from 'node:net';
import { type NetworkInterfaceInfo, networkInterfaces } from 'node:os';
import { bracketed } from '../../util/client-address.ts';
import { ALL_IPV4, ALL_IPV6, listenAddresses } from '../../util/listen-addresses.ts';

/** A UDP port to open. */
export interface PortGroup {
  readonly host: string;
  readonly port: number;
  /** IP addresses announced to peers. */
  readonly addresses: readonly string[];
}

/** Placeholder in an entry for the address that a STUN server reports. */
export const PUBLIC_IP = '${PublicIP}';

const MAX_PORTS = 1000;

/**
 * `*:10000/udp`, `*:10000-10004/udp`, `192.0.2.1:10000/udp`, `[::]:10000/udp`. Throws TypeError with a sentence for anything else. An
 * address that does not belong to this machine (NAT) is announced to peers, and the port is opened on all addresses. `linkLocal`:
 * link-local IPv6 addresses are announced, too.
 */
export function readCandidatePorts(entries: readonly string[], bindAddresses: readonly string[], linkLocal = false): PortGroup[] {
  const groups = new Map<string, { host: string; port: number; addresses: Set<string> }>();
  for (const entry of entries) {
    const match = /^(?:(\*|\[[^\]]+\]|[^:[\]]+):)?(\d{1,5})(?:-(\d{1,5}))?(?:\/(\w+))?$/.exec(entry.trim());
    if (match === null) throw new TypeError(`'${entry}' is not <ip>:<ports>/udp`);
    const [, written = '*', first = '', last = first, protocol = 'udp'] = match;
    if (protocol.toLowerCase() !== 'udp') throw new TypeError(`'${entry}': media ports are UDP; TCP is offered on the same numbers`);
    const from = Number(first);
    const to = Number(last);
    if (from < 0 || to > 65_535 || to < from || to - from >= MAX_PORTS)
      throw new TypeError(`'${entry}': ${first}-${last} is no range of ports`);
    const address = written.replace(/^\[(.*)\]$/, '$1');
    for (const { host, addresses } of placesOf(address, { bindAddresses, entry, linkLocal })) {
      for (let port = from; port <= to; port += 1) {
        const key = `${host} ${port}`;
        const group = groups.get(key) ?? { host, port, addresses: new Set() };
        for (const one of addresses) group.addresses.add(one);
        groups.set(key, group);
      }
    }
  }
  return Array.from(groups.values(), ({ host, port, addresses }) => ({ host, port, addresses: [...addresses] }));
}

/** `entries` for a check before the public address is known: `*` replaces its placeholder. */
export function withAnyPublicAddress(entries: readonly string[] = []): string[] {
  return entries.map((entry) => entry.replace(PUBLIC_IP, '*'));
}

/** The wildcard address of the family of `host`; no other address of the family can be bound beside it. */
export function wildcardOf(host: string): string {
  return isIPv6(host) ? ALL_IPV6 : ALL_IPV4;
}

/** An entry for all addresses: `*:10000/udp`, `*:3478`, or ports alone. */
const STAR = /^\s*(?:\*:)?(?=\d+(?:-\d+)?(?:\/\w+)?\s*$)/;

/**
 * The meaning of `entry` once the public address `outside` is known: an entry for all addresses includes it, unless the server listens on
 * some addresses only.
 */
export function withOutside(entry: string, outside: string, bindAddresses: readonly string[]): string[] {
  const isEverywhere = bindAddresses.includes('*') || ownBindings(bindAddresses).length === 0;
  if (!isEverywhere || !STAR.test(entry)) return [entry];
  return [entry, entry.replace(STAR, `${bracketed(outside)}:`)];
}

/** The bound and the announced addresses of `address` (an IP address or `*`). Throws TypeError. */
export function placesOf(
  address: string,
  { bindAddresses, entry, linkLocal = false }: { bindAddresses: readonly string[]; entry: string; linkLocal?: boolean },
): { host: string; addresses: readonly string[] }[] {
  if (address === '*') {
    const places = [...placesOfFamily('IPv4', bindAddresses, linkLocal), ...placesOfFamily('IPv6', bindAddresses, linkLocal)];
    return places.length > 0 ? places : [{ host: ALL_IPV4, addresses: interfaceAddresses('IPv4') }];
  }
  if (address === ALL_IPV6) return [{ host: ALL_IPV6, addresses: interfaceAddresses('IPv6', linkLocal) }];
  if (isIP(address) === 0) throw new TypeError(`'${entry}': '${address}' is not an IP address`);
  const isOwn = allAddresses().some((own) => own.address === address);
  if (isOwn) return [{ host: address, addresses: [address] }];
  return [{ host: wildcardOf(address), addresses: [address] }];
}

/** The addresses of one family that `*` binds: the configured addresses, or all. */
function placesOfFamily(
  family: 'IPv4' | 'IPv6',
  bindAddresses: readonly string[],
  linkLocal: boolean,
): { host: string; addresses: readonly string[] }[] {
  const all = family === 'IPv6' ? ALL_IPV6 : ALL_IPV4;
  const own = ownBindings(bindAddresses).filter((bind) => wildcardOf(bind) === all);
  if (own.length > 0) return own.map((host) => ({ host, addresses: [host] }));
  return listenAddresses(bindAddresses).includes(all) ? [{ host: all, addresses: interfaceAddresses(family, linkLocal) }] : [];
}

/** The addresses to which the configuration limits the server; empty: all. */
function ownBindings(bindAddresses: readonly string[]): string[] {
  return listenAddresses(bindAddresses).filter((bind) => isIP(bind) !== 0 && bind !== wildcardOf(bind));
}

/** Addresses of this machine; loopback only when there is nothing else. */
function interfaceAddresses(family: 'IPv4' | 'IPv6', linkLocal = false): string[] {
  const own = allAddresses().filter((entry) => entry.family === family && (linkLocal || !entry.address.startsWith('fe80')));
  const outside = own.filter(({ internal }) => !internal);
  return (outside.length > 0 ? outside : own).map(({ address }) => address);
}

function allAddresses(): NetworkInterfaceInfo[] {
  return Object.values(networkInterfaces()).flatMap((list) => list ?? []);
}
