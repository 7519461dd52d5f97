/** Checks whether the ports of the configuration can be opened, or are open in our own server. */
import { createSocket } from 'node:dgram';
import { isIPv6 } from 'node:net';
import type { LoadedServer } from '../../config/index.ts';
import { optionFindings } from '../../findings/option-findings.ts';
import { type PortUse, portList, portUses } from '../../findings/port-findings.ts';
import { requireFreePort } from '../../transport/tcp/shared-port.ts';
import { hostPort } from '../../util/client-address.ts';
import { messageOf } from '../../util/message-of.ts';
import { type Diagnosis, diagnosesOf, type ReadSystem } from './diagnosis.ts';
import { reach } from './reach.ts';
import { SocketOwners } from './socket-owners.ts';

type Place = Pick<PortUse, 'protocol' | 'host' | 'port' | 'kind' | 'place'>;

const NAMES = { tcp: 'TCP', udp: 'UDP' } as const;

/** The kernel's default: lower ports are for privileged users. */
const UNPRIVILEGED = 1024;

/** `server`: the process that holds the state folder, if any. Opens each port for a moment. */
export async function portsLook(loaded: LoadedServer, server: number | null, read: ReadSystem): Promise<readonly Diagnosis[]> {
  const { ok, problem } = diagnosesOf('ports');
  if (optionFindings(loaded).length > 0) return [problem('unknown: the configuration has errors, see above')];
  const places = [...new Map([...portUses(loaded)].map((use) => [`${use.protocol} ${hostPort(use.host, use.port)}`, use])).values()];
  const owners = new SocketOwners();
  const [free, own]: [Place[], Place[]] = [[], []];
  const found: Diagnosis[] = [];
  for (const place of places) {
    const fault = await faultOf(place);
    if (fault === null) free.push(place);
    else if (fault.code === 'EADDRINUSE' && server !== null && owners.of(place) === server) own.push(place);
    else found.push(problem(...explained(place, fault, owners)));
  }
  const first = Number(read('/proc/sys/net/ipv4/ip_unprivileged_port_start') ?? UNPRIVILEGED);
  const privileged = free.filter(({ port }) => port < first);
  const told = [
    ...(own.length > 0 ? [`open in the server of this state folder (process ${server}): ${portList(own)}`] : []),
    ...(free.length > 0 ? [`free: ${portList(free)}`] : []),
    ...(privileged.length > 0 ? [`privileged, open to this user: ${portList(privileged)}`] : []),
  ];
  if (told.length > 0) found.push(ok(told.join('; ')));
  return [...(found.length > 0 ? found : [ok('none is configured')]), ...(await reach(own, places))];
}

async function faultOf({ protocol, host, port }: Place): Promise<NodeJS.ErrnoException | null> {
  try {
    await (protocol === 'tcp' ? requireFreePort({ host, port }) : requireFreeUdpPort(host, port));
    return null;
  } catch (error) {
    return error as NodeJS.ErrnoException;
  }
}

async function requireFreeUdpPort(host: string, port: number): Promise<void> {
  const ipv6 = isIPv6(host);
  const socket = createSocket({ type: ipv6 ? 'udp6' : 'udp4', ipv6Only: ipv6 });
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  socket.once('error', reject);
  socket.bind({ address: host, port, exclusive: true }, resolve);
  try {
    await promise;
  } finally {
    socket.close();
  }
}

/** The meaning of an error, and its remedy. */
function explained(
  { protocol, host, port, place }: Place,
  fault: NodeJS.ErrnoException,
  owners: SocketOwners,
): [text: string, remedy: string] {
  const what = `${NAMES[protocol]} port ${port} of ${host} (${place.path})`;
  switch (fault.code) {
    case 'EADDRINUSE': {
      const owner = owners.of({ protocol, host, port });
      return [
        `${what} is in use by ${owner === null ? 'a process that this user cannot see' : owners.name(owner)}`,
        `stop it, or change ${place.path}`,
      ];
    }
    case 'EACCES':
    case 'EPERM':
      return [
        `${what} is privileged, and this user cannot open it`,
        'choose a higher port, AmbientCapabilities=CAP_NET_BIND_SERVICE, or sysctl net.ipv4.ip_unprivileged_port_start',
      ];
    case 'EADDRNOTAVAIL':
      return [`${what}: this machine does not have the address`, 'correct Server/IP'];
    case 'EAFNOSUPPORT':
      return [`${what}: this machine has no IPv6`, 'remove :: from Server/IP, or enable IPv6'];
    default:
      return [`${what} cannot be opened: ${messageOf(fault)}`, `change ${place.path}`];
  }
}
