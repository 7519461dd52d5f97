/** Players' half of the signalling: WHEP, and the reference server's WebSocket protocol. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { WebSocket } from 'ws';
import { type Gatekeeper, type Judgement, OPEN_GATE } from '../../../access/access-check.ts';
import type { RelayedPeer } from '../../../delivery/relayed-peer.ts';
import type { Logger } from '../../../util/logger.ts';
import type { Turns } from '../../../util/newcomer-turns.ts';
import { ProtocolError } from '../../../util/protocol-error.ts';
import type { TimeoutScale } from '../../../util/timeout-scale.ts';
import { type AskedPlace, admitAsked, targetOf } from '../signalling/asked-place.ts';
import { DescriptionExchange, EXCHANGE_METHODS, ExchangeRefused } from '../signalling/description-exchange.ts';
import type { IceServersFor } from '../signalling/ice-server.ts';
import type { SignallingSide } from '../signalling/signalling-server.ts';
import { servePlayer } from './play-signalling.ts';
import type { WebrtcPublisher } from './webrtc-publisher.ts';

/** Refusals that may pass soon: the answer is 503, not 404. */
const PASSING: ReadonlySet<string> = new Set(['WEBRTC_FULL', 'WEBRTC_MAP', 'WEBRTC_DRAINING']);

/** Options; the server stops the publisher. */
export interface PlaySideOptions {
  readonly publisher: WebrtcPublisher;
  /** Decides who may play; absent: every client. */
  readonly access?: Gatekeeper | undefined;
  /** The virtual host of a host name. */
  readonly virtualHostFor: (host: string) => string | undefined;
  readonly iceServersFor: IceServersFor;
  /** Sessions begin when it is their turn; absent: at once. */
  readonly turns?: Turns;
  readonly logger: Logger;
  readonly timeoutScale?: TimeoutScale | undefined;
}

/** Sessions end with their connection, their DELETE or their stream: there is nothing to close here. */
export class PlaySide implements SignallingSide {
  readonly #options: PlaySideOptions;
  readonly #whep: DescriptionExchange;

  constructor(options: PlaySideOptions) {
    const { publisher, access = OPEN_GATE, logger, iceServersFor, turns, timeoutScale } = options;
    this.#options = options;
    this.#whep = new DescriptionExchange({
      name: 'WHEP',
      peer: 'viewer',
      iceServersFor,
      turns,
      timeoutScale,
      crossOrigin: allowAll,
      logger,
      admit: (place) => admitAsked(access, 'outgoing', place),
      targetOf: (admitted, target) => targetOf(admitted, target, options.virtualHostFor),
      prepare: (target, client) => publisher.fetch(target, client),
      open: ({ target, client, onEnded }) => {
        try {
          return publisher.openSession(target, { client, onEnded });
        } catch (error) {
          if (!(error instanceof ProtocolError)) throw error;
          throw new ExchangeRefused(PASSING.has(error.code) ? 503 : 404, error.message);
        }
      },
    });
  }

  request(request: IncomingMessage, response: ServerResponse, place: AskedPlace, { address }: RelayedPeer): void {
    this.#whep.handle(request, response, place, address);
  }

  connected(socket: WebSocket, place: AskedPlace, { address }: RelayedPeer): void {
    const { publisher, access = OPEN_GATE, virtualHostFor, iceServersFor, turns, logger, timeoutScale } = this.#options;
    const { target } = place;
    // Players take an empty list for "relays only", and would never connect: without a list they use our TCP candidates.
    const servers = iceServersFor(place);
    const iceServers = servers?.length === 0 ? null : servers;
    const admit = (): Judgement => admitAsked(access, 'outgoing', place);
    servePlayer(publisher, {
      ...{ socket, target, client: address, admit, iceServers, turns, logger, timeoutScale },
      targetOf: (admitted) => targetOf(admitted, target, virtualHostFor),
    });
  }
}

function allowAll(request: IncomingMessage): (readonly [string, string])[] {
  const asked = request.headers['access-control-request-headers'];
  return [
    ['Access-Control-Allow-Origin', '*'],
    ['Access-Control-Allow-Methods', EXCHANGE_METHODS],
    ...(asked === undefined ? [] : [['Access-Control-Allow-Headers', asked] as const]),
  ];
}
