/** The addresses of the machine for its clients. */
import { isIPv6 } from 'node:net';
import { networkInterfaces } from 'node:os';
import type { ServerConfig } from '../../config/index.ts';
import { publicAddress } from '../../services/webrtc/transport/public-address.ts';
import { listenAddresses } from '../../util/listen-addresses.ts';
import { messageOf } from '../../util/message-of.ts';
import { type Diagnosis, diagnosesOf } from './diagnosis.ts';

/** An address of an interface. */
export interface OwnAddress {
  readonly address: string;
  readonly internal: boolean;
}

/** The addresses of this machine. */
function ownAddresses(): OwnAddress[] {
  return Object.values(networkInterfaces()).flatMap((list) => (list ?? []).map(({ address, internal }) => ({ address, internal })));
}

/** Whether the machine has IPv6, and whether the server listens on it. */
export function ipv6({ ip }: ServerConfig, own = ownAddresses()): Diagnosis {
  const { ok, warning, problem } = diagnosesOf('ipv6');
  const listens = listenAddresses(ip).some(isIPv6);
  const six = own.filter(({ address }) => isIPv6(address));
  const reachable = six
    .filter(({ address, internal }) => !internal && !address.toLowerCase().startsWith('fe80'))
    .map(({ address }) => address);
  if (six.length === 0) {
    return listens
      ? problem('the server is configured to listen on IPv6, which this machine does not have', 'remove :: from Server/IP')
      : ok('not available on this machine; the server listens on IPv4');
  }
  if (reachable.length === 0) {
    const text = 'this machine has only loopback and link-local IPv6 addresses';
    return listens ? warning(`${text}, and the server is configured to listen on IPv6`) : ok(text);
  }
  return ok(`${reachable.join(', ')}; the server listens on ${listens ? 'IPv6' : 'IPv4 only (Server/IP)'}`);
}

/**
 * The address of this machine in the view of a STUN server: that of `--stun`, else that of the configuration; without either it asks none.
 */
export async function publicAddressLook({ stunServer }: ServerConfig, asked: string | undefined, own = ownAddresses()): Promise<Diagnosis> {
  const { ok, warning, problem } = diagnosesOf('public-address');
  const server = asked ?? stunServer;
  if (server === undefined) return ok('not asked: neither StunServer nor --stun names a server');
  let address: string;
  try {
    address = await publicAddress(server);
  } catch (error) {
    return problem(messageOf(error), 'allow outgoing UDP and its answers in the firewall, or use another STUN server');
  }
  const text = `${address}, says ${server}`;
  if (own.some((one) => one.address === address)) return ok(`${text}: an address of this machine`);
  const forward = `${text}: behind a NAT, which must forward the ports`;
  return stunServer === undefined
    ? warning(
        `${forward}, and WebRTC does not announce this address to peers`,
        `set StunServer to ${server}, or name ${address} in IceCandidates`,
      )
    : ok(forward);
}
