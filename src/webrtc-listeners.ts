/** Wires WebRTC: media ports, the publisher, and signalling behind the delivery ports. */
import { availableParallelism } from 'node:os';
import type { ServerConfig } from './config/index.ts';
import type { StreamFinder } from './core/stream-demand.ts';
import { ForeignServer } from './egress/foreign-server.ts';
import { type PortGroup, readCandidatePorts } from './publishers/webrtc/candidate-ports.ts';
import { PeerTransport } from './publishers/webrtc/peer-transport.ts';
import { publicAddress } from './publishers/webrtc/public-address.ts';
import { SignallingServer } from './publishers/webrtc/signalling-server.ts';
import { WebrtcPublisher } from './publishers/webrtc/webrtc-publisher.ts';
import { systemClock } from './util/clock.ts';
import type { Logger } from './util/logger.ts';

/** Sender threads at most: more than cores bring nothing, and viewers of one stream are spread over all. */
const SENDERS_LIMIT = 8;
const DEFAULT_CANDIDATES = ['*:10000/udp'];
/** Stands for the address that the STUN server tells. */
const PUBLIC_IP = '${PublicIP}';

export interface WebrtcParts {
  readonly publisher: WebrtcPublisher;
  /** Unix socket that egress threads hand signalling to. */
  readonly signallingPath: string;
}

/** Null when `Bind/Publishers/WebRTC` is absent. Throws when a port cannot be opened; what runs is in `running`. */
export async function startWebrtc(
  config: ServerConfig,
  virtualHostFor: (host: string) => string | undefined,
  finder: StreamFinder,
  rootLogger: Logger,
  running: { stop(): Promise<void> }[],
): Promise<WebrtcParts | null> {
  const { webrtc } = config.bind.publishers;
  if (webrtc === undefined) return null;
  const logger = rootLogger.child({ publisher: 'webrtc' });
  const { iceCandidates } = webrtc;
  if ((iceCandidates?.tcpRelay.length ?? 0) > 0) {
    logger.warn({}, 'the TCP relay (TcpRelay, TcpForce) is not supported yet: players connect by UDP, or by TCP to the same ports');
  }
  const transport = await PeerTransport.open({
    ports: await portsOf(config, logger),
    tcp: true,
    threads: Math.min(SENDERS_LIMIT, availableParallelism()),
    clock: systemClock,
    logger,
  });
  running.push({ stop: () => transport.close() });
  const publisher = new WebrtcPublisher({ transport, clock: systemClock, logger, finder });
  running.push({ stop: async () => publisher.stop() });
  const signalling = new SignallingServer({
    publisher,
    virtualHostFor,
    iceServers: (webrtc.iceServers?.iceServer ?? []).map(({ urls, userName, credential }) => ({
      urls: urls.url,
      username: userName,
      credential,
    })),
    forceRelay: iceCandidates?.tcpForce ?? false,
    logger,
  });
  const foreign = new ForeignServer(signalling);
  running.push({
    stop: async () => {
      signalling.close();
      await foreign.close();
    },
  });
  await foreign.listen();
  return { publisher, signallingPath: foreign.path };
}

/** Media ports with the addresses that peers are told, the public one included when a STUN server knows it. */
async function portsOf(config: ServerConfig, logger: Logger): Promise<PortGroup[]> {
  const element = 'Bind/Publishers/WebRTC/IceCandidates/IceCandidate';
  const entries = config.bind.publishers.webrtc?.iceCandidates?.iceCandidate ?? DEFAULT_CANDIDATES;
  const outside = await outsideAddress(config.stunServer, logger);
  const known = entries.flatMap((entry) => {
    if (entry.includes(PUBLIC_IP)) {
      if (outside !== null) return [entry.replace(PUBLIC_IP, outside)];
      logger.warn(
        { entry },
        `${element} '${entry}' is left out: the public address is not known${config.stunServer === undefined ? ' (StunServer)' : ''}`,
      );
      return [];
    }
    const everywhere = entry.startsWith('*:') && config.ip.includes('*');
    return everywhere && outside !== null ? [entry, entry.replace('*', outside)] : [entry];
  });
  try {
    return readCandidatePorts(known, config.ip);
  } catch (error) {
    throw new Error(`${element}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
  }
}

/** Null without STUN server, or when it does not answer: what is known of the interfaces still works inside. */
async function outsideAddress(server: string | undefined, logger: Logger): Promise<string | null> {
  if (server === undefined) return null;
  try {
    const address = await publicAddress(server);
    logger.info({ address }, `the public address is ${address}, says ${server}`);
    return address;
  } catch (error) {
    logger.warn({ err: error }, 'the public address is not known: players outside may not reach the media ports');
    return null;
  }
}
