/** Publishers' half of the signalling: WHIP, and the reference server's WebSocket protocol with `direction=send`. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { WebSocket } from 'ws';
import { type Gatekeeper, OPEN_GATE } from '../../../access/access-check.ts';
import { type CrossDomainHeaders, CrossDomainPolicy, type CrossDomainRules } from '../../../access/cross-domains.ts';
import { IngestRefused } from '../../../core/ingest.ts';
import type { RelayedPeer } from '../../../delivery/relayed-peer.ts';
import type { Logger } from '../../../util/logger.ts';
import type { Turns } from '../../../util/newcomer-turns.ts';
import { ProtocolError } from '../../../util/protocol-error.ts';
import type { TimeoutScale } from '../../../util/timeout-scale.ts';
import { type AskedPlace, admitAsked, targetOf } from '../signalling/asked-place.ts';
import { DescriptionExchange, EXCHANGE_METHODS, ExchangeRefused } from '../signalling/description-exchange.ts';
import type { IceServersFor } from '../signalling/ice-server.ts';
import { OfferDialogue, type OfferRefusal } from '../signalling/offer-dialogue.ts';
import type { RequestPlace } from '../signalling/request-place.ts';
import type { SignallingSide } from '../signalling/signalling-server.ts';
import type { WebrtcProvider } from './webrtc-provider.ts';

/** Maximum of remembered policies, one for each application's rules; beyond it all are dropped. */
const MAX_POLICIES = 256;
const ALL_ORIGINS: CrossDomainRules = { urls: ['*'], headers: [] };

/** Answers to refusals, with the texts of the reference server where it has any. */
export const WHIP_REFUSALS: Readonly<Record<IngestRefused['code'], { readonly status: number; readonly text: string | null }>> = {
  'no-virtual-host': { status: 404, text: 'Could not find application' },
  'no-application': { status: 404, text: 'Could not find application' },
  'provider-disabled': { status: 404, text: 'Could not find application' },
  'duplicate-name': { status: 409, text: 'Stream is already exist' },
  'invalid-name': { status: 400, text: null },
  full: { status: 503, text: null },
  'shutting-down': { status: 503, text: null },
};

/** Options; the server stops the provider. */
export interface PublishSideOptions {
  readonly provider: WebrtcProvider;
  /** Decides who may publish; absent: every client. */
  readonly access?: Gatekeeper | undefined;
  /** The virtual host of a host name. */
  readonly virtualHostFor: (host: string) => string | undefined;
  /** `Providers/WebRTC/CrossDomains` of an application; null: pages of all origins may publish. */
  readonly crossDomainsOf: (vhost: string, app: string) => CrossDomainRules | null;
  readonly iceServersFor: IceServersFor;
  /** Publications begin when it is their turn; absent: at once. */
  readonly turns?: Turns;
  readonly logger: Logger;
  readonly timeoutScale?: TimeoutScale | undefined;
}

/** Sessions end with their connection, their DELETE or the provider: there is nothing to close here. */
export class PublishSide implements SignallingSide {
  readonly #options: PublishSideOptions;
  readonly #whip: DescriptionExchange;
  #policies = new Map<CrossDomainRules, CrossDomainPolicy>();

  constructor(options: PublishSideOptions) {
    const { provider, access = OPEN_GATE, logger, iceServersFor, turns, timeoutScale } = options;
    this.#options = options;
    this.#whip = new DescriptionExchange({
      name: 'WHIP',
      peer: 'publisher',
      iceServersFor,
      turns,
      timeoutScale,
      crossOrigin: (request, place) => this.#crossOrigin(request, place),
      logger,
      admit: (place) => admitAsked(access, 'incoming', place),
      targetOf: (admitted, target) => targetOf(admitted, target, options.virtualHostFor),
      open: (request) => provider.openSession(request.target, request),
      refusal: refusalOf,
    });
  }

  request(request: IncomingMessage, response: ServerResponse, place: AskedPlace, { address }: RelayedPeer): void {
    this.#whip.handle(request, response, place, address);
  }

  connected(socket: WebSocket, place: AskedPlace, { address }: RelayedPeer): void {
    const { provider, access = OPEN_GATE, virtualHostFor, iceServersFor, turns, logger, timeoutScale } = this.#options;
    const { target } = place;
    new OfferDialogue({
      ...{ socket, target, client: address, iceServers: iceServersFor(place), logger, timeoutScale, turns },
      peer: 'publisher',
      admit: () => admitAsked(access, 'incoming', place),
      targetOf: (admitted) => targetOf(admitted, target, virtualHostFor),
      open: (request) => provider.openSession(request.target, request),
      isRefusal,
    });
  }

  #crossOrigin(request: IncomingMessage, { target }: RequestPlace): CrossDomainHeaders['pairs'] {
    const rules = (target === null ? null : this.#options.crossDomainsOf(target.vhost, target.app)) ?? ALL_ORIGINS;
    let policy = this.#policies.get(rules);
    if (policy === undefined) {
      if (this.#policies.size >= MAX_POLICIES) this.#policies = new Map();
      policy = new CrossDomainPolicy({ defaults: { urls: [], headers: [] }, own: rules, methods: EXCHANGE_METHODS });
      this.#policies.set(rules, policy);
    }
    return policy.headers(request.headers.origin, request.headers['access-control-request-headers']).pairs;
  }
}

/** The name may also have been taken since the request. */
function isRefusal(error: unknown): error is OfferRefusal {
  return error instanceof ProtocolError || error instanceof IngestRefused;
}

function refusalOf(error: unknown): ExchangeRefused | null {
  if (!(error instanceof IngestRefused)) return null;
  const { status, text } = WHIP_REFUSALS[error.code];
  return new ExchangeRefused(status, text ?? error.message);
}
