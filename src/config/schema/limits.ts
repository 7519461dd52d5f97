/** Limits of one client and one application, and the trusted proxies. */
import { AddressSet } from '../../util/address-set.ts';
import { boolean, finishing, integer, list, object, text } from './field.ts';

const share = (description: string, byDefault: number) => integer(`${description}; 0: no limit`, { default: byDefault, minimum: 0 });

/** Counted for each listener; of IPv6 the addresses of a /64 together. */
const PerAddressSchema = object(
  'Limits of one client address for each listener; addresses of one IPv6 /64 count together. Never more than half of what the listener accepts',
  {
    publishers: share('Connections of encoders: RTMP, SRT, MPEG-TS over TCP, WebRTC', 256),
    viewers: share('Connections and sessions of viewers: HTTP, WebRTC, SRT, edges. Offices and mobile networks share an address', 5000),
    signalling: share('WebRTC signalling without a connected session: requests, WebSockets and sessions', 256),
    keyTrials: share('Wrong passphrases over SRT, a second', 20),
  },
  { default: {} },
);

/** `Server/Limits`. */
export const LimitsSchema = object(
  'Limits of one client, and of one application. An extension of Millrace',
  {
    perAddress: PerAddressSchema,
    perApplication: object(
      'Limits of one application',
      { streams: share('Streams published to it at once; those that are pulled do not count', 1000) },
      { default: {} },
    ),
  },
  { default: {} },
);

interface ProxiesFinish {
  readonly address: readonly string[];
}

/** `Server/TrustedProxies`. */
export const TrustedProxiesSchema = object(
  'Proxies in front of the server, which are believed about the addresses of clients. An extension of Millrace',
  {
    address: list('Addresses, as `192.0.2.10` or `192.0.2.0/24`. Their `X-Forwarded-For`, `-Proto` and `-Port` count', text('Address'), {
      default: [],
    }),
    proxyProtocol: object(
      'Listeners on which connections of these addresses begin with a PROXY header, version 1 or 2; without one they are closed',
      {
        http: boolean('All ports of HTTP, the API aside', { xml: 'HTTP', default: false }),
        rtmp: boolean('The ports of RTMP', { xml: 'RTMP', default: false }),
      },
      { default: {} },
    ),
  },
  {
    default: {},
    finish: finishing<ProxiesFinish>(({ address }, fail) => {
      for (const entry of address) {
        if (!AddressSet.isAddress(entry)) fail(`Address must be an IP address or a network as 192.0.2.0/24, but got '${entry}'`, 'address');
      }
    }),
  },
);
