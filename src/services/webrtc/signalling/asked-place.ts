/** A signalling request as access control sees it. */
import type { IncomingMessage } from 'node:http';
import { type AccessClient, type Admitted, type Direction, type Gatekeeper, type Judgement, OPEN } from '../../../access/access-check.ts';
import { readNewUrl } from '../../../access/new-url.ts';
import type { RelayedPeer } from '../../../delivery/relayed-peer.ts';
import { completeUrl, splitTarget } from '../../../wire/http/request-target.ts';
import { type RequestPlace, requestPlaceOf, type StreamTarget } from './request-place.ts';

/** A place with the URL and the client that asked for it. They can hold secrets: not for logs. */
export interface AskedPlace extends RequestPlace {
  readonly url: string;
  readonly asker: AccessClient;
}

/** The place of an admitted client: `target`, unless a control server names another one, which may be at another server. */
export function targetOf(
  { newUrl }: Admitted,
  target: StreamTarget | null,
  virtualHostFor: (host: string) => string | undefined,
): StreamTarget | null {
  const url = newUrl === undefined ? null : readNewUrl(newUrl);
  if (url === null) return target;
  const { path, query, authority } = url;
  return requestPlaceOf(query === '' ? path : `${path}?${query}`, authority, virtualHostFor).target;
}

/** The place of `request`, which came by WebSocket (`ws`) or not (`http`). Throws HttpFault for an invalid target. */
export function askedPlace(place: RequestPlace, request: IncomingMessage, client: RelayedPeer, scheme: 'ws' | 'http'): AskedPlace {
  const { host = '', authorization, 'user-agent': userAgent } = request.headers;
  const { secure, port } = client.asked;
  const url = completeUrl(`${scheme}${secure ? 's' : ''}`, splitTarget(request.url ?? '/'), { host, port });
  return { ...place, url, asker: { ...client.end, realIp: client.realIp, userAgent, authorization } };
}

/** Access control's verdict on a request for a place; none for a request without one. */
export function admitAsked(access: Gatekeeper, direction: Direction, { target, url, asker }: AskedPlace): Judgement {
  if (target === null) return OPEN;
  const { vhost, app, stream } = target;
  return access.admit({ host: vhost, vhost, app, stream }, { direction, protocol: 'webrtc', url, client: asker });
}
