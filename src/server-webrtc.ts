/** Wires WebRTC: media ports, the publisher, and signalling behind the delivery ports. */
import { availableParallelism } from 'node:os';
import type { ServerConfig } from './config/index.ts';
import { ForeignServer } from './egress/foreign-server.ts';
import { readCandidatePorts } from './publishers/webrtc/candidate-ports.ts';
import { PeerTransport } from './publishers/webrtc/peer-transport.ts';
import { SignallingServer } from './publishers/webrtc/signalling-server.ts';
import { WebrtcPublisher } from './publishers/webrtc/webrtc-publisher.ts';
import { systemClock } from './util/clock.ts';
import type { Logger } from './util/logger.ts';

/** Sender threads at most: more than cores bring nothing, and viewers of one stream are spread over all. */
const SENDERS_LIMIT = 8;
const DEFAULT_CANDIDATES = ['*:10000/udp'];

export interface WebrtcParts {
  readonly publisher: WebrtcPublisher;
  /** Unix socket that egress threads hand signalling to. */
  readonly signallingPath: string;
}

/** Null when `Bind/Publishers/WebRTC` is absent. Throws when a port cannot be opened; what runs is in `running`. */
export async function startWebrtc(
  config: ServerConfig,
  virtualHostFor: (host: string) => string | undefined,
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
    ports: readCandidatePorts(iceCandidates?.iceCandidate ?? DEFAULT_CANDIDATES, config.ip),
    tcp: true,
    threads: Math.min(SENDERS_LIMIT, availableParallelism()),
    clock: systemClock,
    logger,
  });
  running.push({ stop: () => transport.close() });
  const publisher = new WebrtcPublisher({ transport, clock: systemClock, logger });
  running.push({ stop: async () => publisher.stop() });
  const signalling = new SignallingServer({ publisher, virtualHostFor, logger });
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
