/** The parts of WebRTC put together: media ports, publisher and provider, and signalling behind the delivery ports. */
import { availableParallelism, tmpdir } from 'node:os';
import type { ServerConfig } from '../../config/index.ts';
import type { WebrtcProviderConfig } from '../../config/schema/providers.ts';
import { type Running, stopAll } from '../../core/running.ts';
import { MainThreadServer } from '../../delivery/pool/main-thread-server.ts';
import type { ServerLimits } from '../../delivery/server-limits.ts';
import { removeStaleFolders } from '../../delivery/stale-folders.ts';
import { AddressShares } from '../../util/address-shares.ts';
import { bracketed } from '../../util/client-address.ts';
import type { Clock } from '../../util/clock.ts';
import type { Logger } from '../../util/logger.ts';
import { messageOf } from '../../util/message-of.ts';
import type { MetricSource } from '../../util/metrics.ts';
import type { ServiceContext } from '../service.ts';
import { type PortGroup, PUBLIC_IP, readCandidatePorts, wildcardOf, withOutside } from './candidate-ports.ts';
import { PublishSide } from './ingest/publish-side.ts';
import { WebrtcProvider } from './ingest/webrtc-provider.ts';
import { PlaySide } from './play/play-side.ts';
import { WebrtcPublisher } from './play/webrtc-publisher.ts';
import { type RelayPlan, readRelayAddresses } from './relay-addresses.ts';
import type { IceServer, IceServersFor } from './signalling/ice-server.ts';
import { SignallingServer } from './signalling/signalling-server.ts';
import { AddressWatch } from './transport/address-watch.ts';
import { MAX_PEER_SESSIONS, PeerTransport } from './transport/peer-transport.ts';
import { publicAddress } from './transport/public-address.ts';
import type { PeerShares } from './transport/session-quota.ts';
import { RELAY_ACCOUNT, TurnRelay } from './transport/turn-relay.ts';
import { webrtcMetrics } from './webrtc-metrics.ts';

/** Maximum of sender threads, where there are more cores: the viewers of one stream are spread over all threads. */
const MAX_SENDERS = 8;
const DEFAULT_CANDIDATES = ['*:10000/udp'];

/** WebRTC as the rest of the server sees it. */
export interface WebrtcParts {
  /** Null when `Bind/Publishers/WebRTC` is absent. */
  readonly publisher: WebrtcPublisher | null;
  /** For `/metrics`. */
  readonly metrics: MetricSource;
  /** Unix socket on which delivery threads relay signalling. */
  readonly signallingPath: string;
  /** Stops the parts, the last started first. Idempotent. */
  stop(): Promise<void>;
}

/** The parts of the server that WebRTC uses. */
export type WebrtcContext = Pick<
  ServiceContext,
  'config' | 'clock' | 'orchestrator' | 'access' | 'finder' | 'limits' | 'logger' | 'timeoutScale'
>;

type WebrtcBind = NonNullable<ServerConfig['bind']['publishers']['webrtc']>;

/**
 * Null when neither `Bind/Publishers/WebRTC` nor `Bind/Providers/WebRTC` is there. Rejects when a port cannot be opened; nothing is open
 * then.
 */
export async function startPeers(context: WebrtcContext): Promise<WebrtcParts | null> {
  const { webrtc: egress } = context.config.bind.publishers;
  const { webrtc: ingest } = context.config.bind.providers;
  if (egress === undefined && ingest === undefined) return null;
  const running: Running[] = [];
  const stop = (): Promise<void> => stopAll(running, context.logger);
  try {
    return { ...(await openPeers(context, running, { egress, ingest })), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** `running` gets the parts as they start. */
async function openPeers(
  context: WebrtcContext,
  running: Running[],
  { egress, ingest }: { readonly egress: WebrtcBind | undefined; readonly ingest: WebrtcBind | undefined },
): Promise<Omit<WebrtcParts, 'stop'>> {
  const { config, clock, orchestrator, access, finder, limits, timeoutScale } = context;
  const logger = context.logger.child({ publisher: 'webrtc' });
  const outside = await outsideAddress(config.stunServer, logger);
  const sources: AddressSources = { config, outside, clock, logger };
  const portsOf = (side: string, bind: WebrtcBind | undefined): (() => PortGroup[]) =>
    bind === undefined ? () => [] : candidatePorts(`Bind/${side}/WebRTC/IceCandidates/IceCandidate`, bind, sources);
  const [ports, publishPorts] = [portsOf('Publishers', egress), portsOf('Providers', ingest)];
  const current = new AddressWatch(() => ({ ports: ports(), publishPorts: publishPorts() }), clock);
  const transport = await PeerTransport.open({
    ...current.value,
    current,
    tcp: true,
    shares: peerShares(config, limits),
    ...(limits.descriptors !== null && { descriptors: limits.descriptors }),
    threads: Math.min(MAX_SENDERS, availableParallelism()),
    clock,
    logger,
    timeoutScale,
  });
  running.push({ stop: () => transport.close() });
  const relayPlans = { play: relayPlan('Publishers', egress, sources), publish: relayPlan('Providers', ingest, sources) };
  const relay = await TurnRelay.open({
    listen: placesToListen(Object.values(relayPlans).map(({ value }) => value)),
    transport,
    clock,
    logger,
    timeoutScale,
  });
  running.push({ stop: async () => relay.close() });
  const virtualHostFor = (host: string): string | undefined => orchestrator.nameForHost(host);
  const publisher = egress === undefined ? null : new WebrtcPublisher({ transport, clock, logger, finder });
  if (publisher !== null) running.push({ stop: async () => publisher.stop() });
  const play =
    publisher === null || egress === undefined
      ? null
      : new PlaySide({
          ...{ publisher, access, virtualHostFor, turns: limits.newcomers },
          ...{ iceServersFor: iceServersOf(egress, relayPlans.play), logger: logger.limited, timeoutScale },
        });
  const provider = ingest === undefined ? null : webrtcProvider(transport, context);
  if (provider !== null) running.push({ stop: async () => provider.stop() });
  const publish =
    ingest === undefined || provider === null
      ? null
      : publishSide(provider, context, { iceServersFor: iceServersOf(ingest, relayPlans.publish), virtualHostFor });
  const signalling = new SignallingServer({
    play: play === null ? null : { side: play, ports: signallingPorts(egress) },
    publish: publish === null ? null : { side: publish, ports: signallingPorts(ingest) },
    virtualHostFor,
    silent: new AddressShares({ perAddress: config.limits.perAddress.signalling }),
    turns: limits.newcomers,
    refusals: limits.refusals,
  });
  const foreign = new MainThreadServer(signalling, logger, timeoutScale);
  running.push({
    stop: async () => {
      signalling.close();
      await foreign.close();
    },
  });
  await foreign.listen();
  // The start does not wait for this.
  void removeStaleFolders(tmpdir());
  const metrics = webrtcMetrics({
    transport: () => ({ ...transport.counters(), sessions: transport.sessions }),
    viewers: publisher,
    publishers: provider,
  });
  return { publisher, metrics, signallingPath: foreign.path };
}

/** Limits of one address at the media ports. */
function peerShares({ limits: { perAddress } }: ServerConfig, limits: ServerLimits): PeerShares {
  return {
    waiting: perAddress.signalling,
    play: limits.shares('viewers', MAX_PEER_SESSIONS).share,
    publish: limits.shares('publishers', MAX_PEER_SESSIONS).share,
  };
}

function signallingPorts(bind: WebrtcBind | undefined): ReadonlySet<number> {
  const { port, tlsPort } = bind?.signalling ?? {};
  return new Set([port, tlsPort].filter((number) => number !== undefined));
}

/** `Providers/WebRTC` of an application; null when it is absent. */
function providerSettings({ orchestrator }: WebrtcContext, vhost: string, app: string): WebrtcProviderConfig | null {
  return orchestrator.application(vhost, app)?.definition.config.providers?.webrtc ?? null;
}

function webrtcProvider(transport: PeerTransport, context: WebrtcContext): WebrtcProvider {
  const { orchestrator: gate, clock } = context;
  return new WebrtcProvider({
    gate,
    transport,
    settingsOf: (vhost, app) => {
      const settings = providerSettings(context, vhost, app);
      return settings === null ? null : { timeout: settings.timeout, keyframeInterval: settings.fIRInterval };
    },
    clock,
    logger: context.logger.child({ provider: 'webrtc' }),
  });
}

function publishSide(
  provider: WebrtcProvider,
  context: WebrtcContext,
  options: { readonly iceServersFor: IceServersFor; readonly virtualHostFor: (host: string) => string | undefined },
): PublishSide {
  const { access, limits, timeoutScale } = context;
  const logger = context.logger.child({ provider: 'webrtc' });
  const crossDomainsOf = (vhost: string, app: string) => providerSettings(context, vhost, app)?.crossDomains ?? null;
  return new PublishSide({ ...options, provider, access, crossDomainsOf, logger: logger.limited, timeoutScale, turns: limits.newcomers });
}

/** Servers announced to peers that ask for `transport=tcp`, or to all peers with `TcpForce`: the configured servers, then our relay. */
function iceServersOf({ iceServers, iceCandidates }: WebrtcBind, plan: AddressWatch<RelayPlan>): IceServersFor {
  const configured: IceServer[] = (iceServers?.iceServer ?? []).map(({ urls: { url }, userName, credential }) => ({
    urls: url,
    username: userName,
    credential,
  }));
  const { username, password: credential } = RELAY_ACCOUNT;
  const isForced = iceCandidates?.tcpForce ?? false;
  return ({ transport }) => {
    if (!isForced && transport !== 'tcp') return null;
    const { urls } = plan.value;
    return urls.length > 0 ? [...configured, { urls, username, credential }] : configured;
  };
}

interface AddressSources {
  readonly config: ServerConfig;
  /** The address that the STUN server reports; null if it is not known. */
  readonly outside: string | null;
  readonly clock: Clock;
  readonly logger: Logger;
}

function relayPlan(side: string, bind: WebrtcBind | undefined, sources: AddressSources): AddressWatch<RelayPlan> {
  const element = `Bind/${side}/WebRTC/IceCandidates/TcpRelay`;
  const entries = withPublicAddress(element, bind?.iceCandidates?.tcpRelay ?? [], sources);
  return new AddressWatch(() => named(element, () => readRelayAddresses(entries, sources.config.ip, bind?.tcpRelayBind)), sources.clock);
}

/** Players and publishers usually share the relay's port. */
function placesToListen(plans: readonly RelayPlan[]): RelayPlan['listen'] {
  const places = plans.flatMap(({ listen }) => listen);
  const find = (host: string, port: number): number => places.findIndex((other) => other.host === host && other.port === port);
  // A port that is open on all addresses cannot be opened on one of them as well, and needs no opening there.
  return places.filter(({ host, port }, n) => find(host, port) === n && (host === wildcardOf(host) || find(wildcardOf(host), port) < 0));
}

/** Reads media ports with the currently announced addresses, including the public address if a STUN server reports it. */
function candidatePorts(element: string, bind: WebrtcBind, sources: AddressSources): () => PortGroup[] {
  const entries = withPublicAddress(element, bind.iceCandidates?.iceCandidate ?? DEFAULT_CANDIDATES, sources);
  return () => named(element, () => readCandidatePorts(entries, sources.config.ip, bind.iceCandidates?.enableLinkLocalAddress));
}

/** Entries with the public address in place of its placeholder; `*` includes it, too. */
function withPublicAddress(element: string, entries: readonly string[], { config, outside, logger }: AddressSources): string[] {
  const written = outside === null ? null : bracketed(outside);
  return entries.flatMap((entry) => {
    if (entry.includes(PUBLIC_IP)) {
      if (written !== null) return [entry.replace(PUBLIC_IP, written)];
      logger.warn(
        { entry },
        `${element} '${entry}' is left out: the public address is not known${config.stunServer === undefined ? ' (StunServer)' : ''}`,
      );
      return [];
    }
    return outside === null ? [entry] : withOutside(entry, outside, config.ip);
  });
}

/** Names the element in errors of `read`. */
function named<T>(element: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw new Error(`${element}: ${messageOf(error)}`, { cause: error });
  }
}

/** Null without a STUN server, or if it does not answer: addresses of the interfaces still work locally. */
async function outsideAddress(server: string | undefined, logger: Logger): Promise<string | null> {
  if (server === undefined) return null;
  try {
    const address = await publicAddress(server);
    logger.info({ address }, `the public address is ${address}, according to ${server}`);
    return address;
  } catch (error) {
    logger.warn({ err: error }, 'the public address is not known: players outside may not reach the media ports');
    return null;
  }
}
