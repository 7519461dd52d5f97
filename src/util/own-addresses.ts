/** The addresses by which other machines may reach this one. */
import { isIPv6 } from 'node:net';
import { networkInterfaces } from 'node:os';
import { ALL_IPV4, ALL_IPV6, listenAddresses } from './listen-addresses.ts';

/** Bridges to containers and virtual machines lead to nobody else. */
const BRIDGE = /^(?:docker|br-|veth|virbr|cni|flannel|cali|lxc|lxd)/;
/** They work within one link, and only with a zone. */
const LINK_LOCAL = /^(?:fe80|169\.254\.)/i;

/**
 * Own addresses, in the order of the system, of those families on all addresses of which a server with these `IP` elements listens; none
 * of loopback, of a single link or of bridges.
 */
export function outsideAddresses(ips: readonly string[], interfaces: ReturnType<typeof networkInterfaces> = networkInterfaces()): string[] {
  const listening = listenAddresses(ips);
  return Object.entries(interfaces).flatMap(([name, list]) =>
    (BRIDGE.test(name) ? [] : (list ?? []))
      .filter(({ address, internal }) => !internal && !LINK_LOCAL.test(address))
      .map(({ address }) => address)
      .filter((address) => listening.includes(isIPv6(address) ? ALL_IPV6 : ALL_IPV4)),
  );
}
