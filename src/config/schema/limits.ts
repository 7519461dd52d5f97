/** Limits of one client and one application, and the trusted proxies. */
import { AddressSet } from '../../util/address-set.ts';
import { boolean, finishing, integer, list, object, text } from './field.ts';

const share = (description: string, byDefault: number) => integer(`${description}; 0: no limit`, { default: byDefault, minimum: 0 });

/** Each listener counts on its own; the addresses of one IPv6 /64 count together. */
const PerAddressSchema = object(
  'Limits for each client address at each listener. All addresses of an IPv6 /64 count as one address. No address may take more than half of what a listener accepts',
  {
    publishers: share('Connections of encoders: RTMP, SRT, MPEG-TS over TCP, WebRTC', 256),
    viewers: share(
      'Connections and sessions of viewers: HTTP, WebRTC, SRT, edges. All viewers in an office or a mobile network may share one address',
      5000,
    ),
    signalling: share('WebRTC signalling without a connected session: requests, WebSockets and sessions', 256),
    keyTrials: share('Wrong SRT passphrases per second', 20),
  },
  { default: {} },
);

/** `Server/Limits`. */
export const LimitsSchema = object(
  'Limits for each client and each application. An extension of Millrace',
  {
    perAddress: PerAddressSchema,
    perApplication: object(
      'Limits for each application',
      { streams: share('Streams that are published to the application at the same time, without pulled streams', 1000) },
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
  'Trusted proxies in front of the server: they report the addresses of clients. An extension of Millrace',
  {
    address: list(
      'Addresses of the proxies, as `192.0.2.10` or `192.0.2.0/24`. The server trusts their headers `X-Forwarded-For`, `X-Forwarded-Proto` and `X-Forwarded-Port`',
      text('Address'),
      {
        default: [],
      },
    ),
    proxyProtocol: object(
      'Listeners with the PROXY protocol, version 1 or 2. A connection from a proxy must begin with a PROXY header, or it is closed',
      {
        http: boolean('All HTTP ports except that of the API', { xml: 'HTTP', default: false }),
        rtmp: boolean('The RTMP ports', { xml: 'RTMP', default: false }),
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
