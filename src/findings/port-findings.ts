/** Conflicts between two elements that use the same port, found before the port fails to open. */
import { isIPv6 } from 'node:net';
import type { LoadedServer, Place, PortRanges, ServerConfig } from '../config/index.ts';
import { portsOf } from '../config/server-config.ts';
import { readCandidatePorts, withAnyPublicAddress } from '../services/webrtc/candidate-ports.ts';
import { readRelayAddresses } from '../services/webrtc/relay-addresses.ts';
import { isLoopback } from '../util/client-address.ts';
import { listenAddresses } from '../util/listen-addresses.ts';

/** Kinds of ports that use the certificates of virtual hosts. */
const HOST_TLS_KINDS: ReadonlySet<string> = new Set(['RTMP over TLS', 'OVT over TLS', 'HTTP over TLS']);

/** An address and port to listen on. */
export interface PortUse {
  readonly protocol: 'tcp' | 'udp';
  readonly host: string;
  readonly port: number;
  /** Services of one kind share ports. */
  readonly kind: string;
  readonly place: Place;
}

/** Errors: each names a port and both elements, and has the place of the later one. Throws where `optionFindings` reports an error. */
export function portFindings(loaded: LoadedServer): (Place & { readonly message: string })[] {
  const byPort = new Map<string, PortUse[]>();
  const found: (Place & { readonly message: string })[] = [];
  const told = new Set<string>();
  for (const use of portUses(loaded)) {
    const { protocol, port, kind, place } = use;
    const others = byPort.get(`${protocol} ${port}`) ?? [];
    byPort.set(`${protocol} ${port}`, [...others, use]);
    const other = others.find((one) => one.kind !== kind && overlaps(one.host, use.host));
    const key = `${protocol} ${port} ${place.path}`;
    if (other === undefined || told.has(key)) continue;
    told.add(key);
    const where = other.place.line === undefined ? '' : ` (line ${other.place.line})`;
    found.push({ ...place, message: `${protocol.toUpperCase()} port ${port} is already used by ${other.place.path}${where}` });
  }
  return found;
}

/** Warnings: ports of stream maps without a listener. */
export function unopenedPortFindings({ config, placeOf }: LoadedServer): (Place & { readonly message: string })[] {
  const { mpegts, srt } = config.bind.providers;
  const found: (Place & { readonly message: string })[] = [];
  const tell = (bind: { readonly port: PortRanges } | undefined, wanted: readonly number[], place: Place, element: string): void => {
    const open = new Set(bind === undefined ? [] : portsOf(bind.port));
    const closed = wanted.filter((port) => !open.has(port));
    if (closed.length === 0) return;
    const bound = bind === undefined ? 'is missing' : `opens ${listed([...open])} only`;
    found.push({ ...place, message: `nothing listens on port ${listed(closed)}: Server/Bind/${element} ${bound}` });
  };
  for (const { applications } of config.virtualHosts) {
    for (const { providers } of applications) {
      for (const entry of providers.mpegts?.streams ?? [])
        tell(mpegts, portsOf(entry.port), placeOf(entry, 'port'), 'Providers/MPEGTS/Port');
    }
  }
  for (const [bind, side] of [
    [srt, 'Providers'],
    [config.bind.publishers.srt, 'Publishers'],
  ] as const) {
    for (const entry of bind?.streamMap ?? []) tell(bind, [entry.port], placeOf(entry, 'port'), `${side}/SRT/Port`);
  }
  return found;
}

/** Warnings: TLS ports that stay closed because no virtual host has a certificate. Throws where `optionFindings` reports an error. */
export function closedTlsFindings(loaded: LoadedServer): (Place & { readonly message: string })[] {
  if (loaded.config.virtualHosts.some(({ host }) => host?.tls !== undefined)) return [];
  const byPort = new Map<number, Place>();
  for (const { port, kind, place } of portUses(loaded)) {
    if (HOST_TLS_KINDS.has(kind) && !byPort.has(port)) byPort.set(port, place);
  }
  return Array.from(byPort, ([port, place]) => ({
    ...place,
    message: `TLS port ${port} stays closed until a virtual host has a certificate (Host/TLS)`,
  }));
}

/** `TCP 1935, 3333; UDP 9999`. */
export function portList(places: readonly Pick<PortUse, 'protocol' | 'port'>[]): string {
  return (['tcp', 'udp'] as const)
    .flatMap((protocol) => {
      const numbers = [...new Set(places.flatMap((place) => (place.protocol === protocol ? [place.port] : [])))];
      return numbers.length === 0 ? [] : [`${protocol.toUpperCase()} ${listed(numbers)}`];
    })
    .join('; ');
}

/** The ports to open in a firewall, in the format of `portList`. */
export function outsidePorts(loaded: LoadedServer): string {
  return portList([...portUses(loaded)].filter(({ host }) => !isLoopback(host)));
}

/** `4000, 4002-4004`. */
export function listed(ports: readonly number[]): string {
  const runs: { first: number; last: number }[] = [];
  for (const port of ports.toSorted((a, b) => a - b)) {
    const run = runs.at(-1);
    if (run?.last === port - 1) run.last = port;
    else runs.push({ first: port, last: port });
  }
  return runs.map(({ first, last }) => (first === last ? String(first) : `${first}-${last}`)).join(', ');
}

/** The wildcard address of a family overlaps every address of it. */
function overlaps(one: string, other: string): boolean {
  if (one === other) return true;
  if (isIPv6(one) !== isIPv6(other)) return false;
  return [one, other].some((host) => host === '0.0.0.0' || host === '::');
}

/** All ports that the server opens; some occur twice. Throws where `optionFindings` reports an error. */
export function* portUses({ config, placeOf }: LoadedServer): Generator<PortUse> {
  const { managers, providers, publishers } = config.bind;
  const hosts = listenAddresses(config.ip);
  function* uses(protocol: PortUse['protocol'], kind: string, ports: readonly number[], place: Place, at = hosts): Generator<PortUse> {
    for (const port of ports) for (const host of new Set(at)) yield { protocol, host, port, kind, place };
  }
  function* tcp(kind: string, owner: { readonly port?: number; readonly tlsPort?: number } | undefined, at = hosts): Generator<PortUse> {
    if (owner?.port !== undefined) yield* uses('tcp', kind, [owner.port], placeOf(owner, 'port'), at);
    if (owner?.tlsPort !== undefined) yield* uses('tcp', `${kind} over TLS`, [owner.tlsPort], placeOf(owner, 'tlsPort'), at);
  }
  function* ranges(protocol: PortUse['protocol'], kind: string, owner: { readonly port: PortRanges } | undefined): Generator<PortUse> {
    if (owner !== undefined) yield* uses(protocol, kind, portsOf(owner.port), placeOf(owner, 'port'));
  }

  const { api, metrics } = managers;
  yield* tcp('API', api, api === undefined || api.ip.length === 0 ? hosts : listenAddresses(api.ip));
  yield* tcp('metrics', metrics, metrics === undefined || metrics.ip.length === 0 ? hosts : listenAddresses(metrics.ip));
  yield* tcp('RTMP', providers.rtmp);
  yield* ranges('udp', 'SRT ingest', providers.srt);
  yield* ranges(providers.mpegts?.port.protocol === 'tcp' ? 'tcp' : 'udp', 'MPEG-TS', providers.mpegts);
  yield* tcp('OVT', publishers.ovt);
  yield* ranges('udp', 'SRT playback', publishers.srt);
  for (const listener of [
    publishers.llhls,
    publishers.hls,
    publishers.thumbnail,
    publishers.webrtc?.signalling,
    providers.webrtc?.signalling,
  ]) {
    yield* tcp('HTTP', listener);
  }
  for (const webrtc of [providers.webrtc, publishers.webrtc]) if (webrtc !== undefined) yield* peerUses(webrtc, config, placeOf);
}

/** Media ports are open over UDP and TCP. */
function* peerUses(
  webrtc: NonNullable<ServerConfig['bind']['publishers']['webrtc']>,
  { ip }: ServerConfig,
  placeOf: LoadedServer['placeOf'],
): Generator<PortUse> {
  const { iceCandidates, tcpRelayBind } = webrtc;
  const place = iceCandidates === undefined ? placeOf(webrtc) : placeOf(iceCandidates);
  const at = (element: string): Place => ({ ...place, path: `${place.path}/${element}` });
  for (const { host, port } of readCandidatePorts(withAnyPublicAddress(iceCandidates?.iceCandidate), ip)) {
    for (const protocol of ['udp', 'tcp'] as const) yield { protocol, host, port, kind: 'media of WebRTC', place: at('IceCandidate') };
  }
  for (const { host, port } of readRelayAddresses(withAnyPublicAddress(iceCandidates?.tcpRelay), ip, tcpRelayBind).listen) {
    yield { protocol: 'tcp', host, port, kind: 'relay of WebRTC', place: at('TcpRelay') };
  }
}
