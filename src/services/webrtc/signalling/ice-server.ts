/** The STUN and TURN servers announced to peers. */
import type { RequestPlace } from './request-place.ts';

/** As `RTCIceServer` of browsers; credentials only for TURN. */
export interface IceServer {
  readonly urls: readonly string[];
  readonly username?: string | undefined;
  readonly credential?: string | undefined;
}

/** ICE servers for a request; null if it does not ask for any, empty if there are none. */
export type IceServersFor = (place: RequestPlace) => readonly IceServer[] | null;

/** Members of an offer message: the same list in two spellings, for old and new peers. An empty list has one spelling only. */
export function relayMembers(servers: readonly IceServer[] | null): object {
  if (servers === null) return {};
  if (servers.length === 0) return { iceServers: [] };
  return {
    ice_servers: servers.map(({ urls, username, credential }) => ({ credential, urls, user_name: username })),
    iceServers: servers.map(({ urls, username, credential }) => ({ credential, urls, username })),
  };
}

/** Values of `Link` headers (draft-ietf-wish-whip section 4.6), one for each address. */
export function relayLinks(servers: readonly IceServer[]): string[] {
  return servers.flatMap(({ urls, username, credential }) => {
    const secret =
      username === undefined
        ? ''
        : `; username="${quotable(username)}"; credential="${quotable(credential ?? '')}"; credential-type="password"`;
    return urls.map((url) => `<${url}>; rel="ice-server"${secret}`);
  });
}

function quotable(text: string): string {
  return text.replaceAll(/["\\]/g, '\\$&');
}
