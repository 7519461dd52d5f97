/** The addresses by which other machines may reach this one. */
import { isIPv6 } from 'node:net';
import { networkInterfaces } from 'node:os';
import { ALL_IPV4, ALL_IPV6, listenAddresses } from './listen-addresses.ts';

/** Bridges to containers and virtual machines lead to nobody else. */
const BRIDGE = /^(?:docker|br-|veth|virbr|cni|flannel|cali|lxc|lxd)/;
/** Addresses for one link only. */
const LINK_LOCAL = /^(?:fe80|169\.254\.)/i;

/**
 * Addresses of this machine, in the order of the system, of the families in which a server with these `IP` elements listens on all
 * addresses. Addresses of loopback, a single link or bridges are left out.
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
