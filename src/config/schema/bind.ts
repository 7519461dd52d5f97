/**
 * Ports of the server. A listener exists only if its element is present. SRT options and addresses of media ports are plain text here;
 * `findings/option-findings.ts` has the services check them before anything starts.
 */
import { isIP } from 'node:net';
import type { Static } from '@sinclair/typebox';
import {
  address,
  boolean,
  finishing,
  integer,
  list,
  NO_EFFECT,
  needless,
  object,
  optional,
  path,
  port,
  ports,
  text,
  unbuilt,
} from './field.ts';

const WORKERS = needless('threads are shared by all ports');
const workerCount = integer('Workers; read for compatibility', { default: 1, minimum: 0, ...WORKERS });
const threadPerSocket = boolean('A thread for each socket; read for compatibility', { default: false, ...WORKERS });

const plainPort = (description: string, protocol: string, number: number) => port(description, { protocols: [protocol], default: number });

interface HttpFinish {
  port?: number;
  tlsPort?: number;
}

const httpPorts = {
  port: optional(port('Port for HTTP', { protocols: ['tcp'] })),
  tlsPort: optional(port('Port for HTTPS', { protocols: ['tcp'], xml: 'TLSPort' })),
};

const deliveryThreads = optional(
  integer(
    'Number of threads that serve HTTP; absent: one for each core, 0: the main thread serves HTTP. The largest value of all HTTP publishers applies to all',
    {
      minimum: 0,
      maximum: 256,
    },
  ),
);

/** An HTTP server that opens both usual ports if none is named. */
function httpListener(
  description: string,
  plain: number,
  secure: number,
  { xml, workers = deliveryThreads }: { xml?: string; workers?: typeof deliveryThreads } = {},
) {
  const finish = finishing<HttpFinish>((value) => {
    if (value.port !== undefined || value.tlsPort !== undefined) return;
    value.port = plain;
    value.tlsPort = secure;
  });
  const text = `${description}. If no port is given: ${plain} and ${secure} (TLS)`;
  return object(text, { ...httpPorts, workerCount: workers, threadPerSocket }, xml === undefined ? { finish } : { xml, finish });
}

const signallingWorkers = optional(
  integer('Workers; read for compatibility', { minimum: 0, maximum: 256, idle: { ...WORKERS.idle, quiet: 1 } }),
);
const signalling = () => optional(httpListener('Signalling over WebSocket and HTTP', 3333, 3334, { workers: signallingWorkers }));

const IceCandidatesSchema = object('Addresses for media', {
  iceCandidate: list('Addresses as `<ip>:<ports>/udp`; `*` is every address of the machine', text('Address'), { default: ['*:10000/udp'] }),
  tcpRelay: list('Addresses of the TURN relay over TCP, as `<ip>:<port>`', text('Address'), { default: [] }),
  tcpForce: boolean('Offers the relay to every client, not only to clients that ask for TCP', { default: false }),
  tcpRelayWorkerCount: integer('Workers of the relay; read for compatibility', { default: 1, minimum: 0, ...WORKERS }),
  iceWorkerCount: integer('Workers; read for compatibility', { default: 1, minimum: 0, ...WORKERS }),
  enableLinkLocalAddress: boolean('Also offers link-local addresses', { default: false }),
});

const webrtcMembers = {
  signalling: signalling(),
  iceCandidates: optional(IceCandidatesSchema),
  tcpRelayBind: optional(text('Address that the relay listens on')),
  iceServers: optional(
    object('Further STUN and TURN servers, offered to clients together with the relay', {
      iceServer: list(
        'Servers',
        object('One server', {
          urls: object('Addresses of the server', { url: list('Addresses', text('URL, `stun:` or `turn:`', { form: 'ice-server' })) }),
          userName: optional(text('User', { form: 'quoted' })),
          credential: optional(text('Password', { form: 'quoted' })),
        }),
        { default: [] },
      ),
    }),
  ),
};

const KeyValueSchema = object('One option', { key: text('Name'), value: text('Value') });

const srtMembers = (number: number) => ({
  port: ports('Ports', { protocols: ['srt'], default: `${number}/srt` }),
  workerCount,
  threadPerSocket,
  options: list('Socket options', KeyValueSchema, { flatten: 'option', default: [] }),
  streamPassphrases: list(
    'Passphrases of single streams, instead of the passphrase of the port. An extension of Millrace',
    object('One stream', { streamPath: text('`vhost/app/stream`'), passphrase: text('10 to 79 bytes') }),
    { flatten: 'stream', default: [] },
  ),
  streamMap: list(
    'Streams by port, for callers that send no stream id',
    object('One port', { port: port('Port', { protocols: ['srt'] }), streamPath: text('`vhost/app/stream`') }),
    { flatten: 'stream', default: [] },
  ),
});

/** `<Bind><Managers><API>`: only the ports. Names and credentials of the API are in `<Managers>`. */
const BindApiSchema = object(
  'The management API. Without a port it is off',
  {
    port: optional(port('Port for HTTP', { protocols: ['tcp'] })),
    tlsPort: optional(port('Port for HTTPS; needs Managers/Host/TLS', { protocols: ['tcp'], xml: 'TLSPort' })),
    ip: list('Addresses to listen on; default: the addresses in `Server/IP`. An extension of Millrace', address('Address, or `*`'), {
      xml: 'IP',
      default: [],
    }),
    workerCount,
  },
  { xml: 'API' },
);
/** `<Bind><Managers><Metrics>`. */
const BindMetricsSchema = object('A port that answers `GET /metrics` and nothing else. An extension of Millrace', {
  port: port('Port for HTTP', { protocols: ['tcp'] }),
  ip: list('Addresses to listen on; default: the addresses in `Server/IP`', address('Address, or `*`'), { xml: 'IP', default: [] }),
});

/** The typed form of `<API>` in `<Bind>`; a port that is undefined is not opened. */
export type BindApiConfig = Static<typeof BindApiSchema>;

interface KeyFinish {
  secretKey?: string;
}

interface OvtFinish extends KeyFinish {
  port?: number;
  tlsPort?: number;
}

const OVT_PORT = 9000;

const MIN_KEY_LENGTH = 16;
/** Several servers share the key, and a short key could be guessed. */
function judgeOvtKey({ secretKey }: KeyFinish, fail: (message: string, key?: string) => void): void {
  if (secretKey !== undefined && secretKey.length < MIN_KEY_LENGTH)
    fail(`ovt.secretKey must have at least ${MIN_KEY_LENGTH} characters, but has ${secretKey.length}`, 'secretKey');
}

const ovtKeyFinish = finishing<KeyFinish>(judgeOvtKey);

/** Opens the usual port if none is named. */
const ovtFinish = finishing<OvtFinish>((value, fail) => {
  judgeOvtKey(value, fail);
  if (value.port === undefined && value.tlsPort === undefined) value.port = OVT_PORT;
});

const client = (description: string, xml: string) => optional(object(description, { workerCount, threadPerSocket }, { xml }));

interface MulticastFinish {
  group: string;
  source?: string;
}

const MULTICAST = /^(22[4-9]|23\d)\.|^ff[\da-f]{2}:/i;

const multicastFinish = finishing<MulticastFinish>(({ group, source }, fail) => {
  const family = isIP(group);
  if (family === 0 || !MULTICAST.test(group)) fail(`Group must be a multicast address, but got '${group}'`, 'group');
  else if (source !== undefined && isIP(source) !== family)
    fail(`Source must be an IPv${family} address, as Group is, but got '${source}'`, 'source');
});

const mpegtsMembers = {
  port: ports('Ports', { protocols: ['udp', 'tcp'], default: '4000/udp' }),
  multicast: list(
    'Multicast groups joined on every UDP port. An extension of Millrace',
    object(
      'One group',
      {
        group: text('Address of the group, e.g. `239.1.1.1`'),
        source: optional(text('The only accepted sender (source-specific multicast); for several senders, one entry each')),
        interface: optional(text('Address of the network interface, for IPv6 e.g. `::%eth0`; default: the choice of the system')),
      },
      { finish: multicastFinish },
    ),
    { default: [] },
  ),
  workerCount,
  threadPerSocket,
};

/** `<Bind>`: every listener of the server. Absent services do not listen. */
export const BindSchema = object('Listeners', {
  managers: object('Management', { api: optional(BindApiSchema), metrics: optional(BindMetricsSchema) }, { default: {} }),
  providers: object(
    'Ingest',
    {
      rtspc: client('RTSP pull (a client, without port)', 'RTSPC'),
      ovt: optional(
        object(
          'OVT pull (a client, without port)',
          {
            secretKey: optional(
              text('Key by which this server authenticates itself to origins, 16 characters or more. An extension of Millrace'),
            ),
            caPath: optional(
              path(
                'CA certificates (PEM) that verify origins with `ovts` URLs; default: the CA certificates of Node.js. An extension of Millrace',
              ),
            ),
            workerCount,
            threadPerSocket,
          },
          { xml: 'OVT', finish: ovtKeyFinish },
        ),
      ),
      rtmp: optional(
        object(
          'RTMP',
          {
            port: plainPort('Port', 'tcp', 1935),
            tlsPort: optional(
              port('Port for RTMPS, with the certificates of the virtual hosts. An extension of Millrace', {
                protocols: ['tcp'],
                xml: 'TLSPort',
              }),
            ),
            workerCount,
            threadPerSocket,
          },
          { xml: 'RTMP' },
        ),
      ),
      rtsp: optional(
        object(
          `RTSP: ${NO_EFFECT}`,
          { port: plainPort('Port', 'tcp', 554), workerCount, threadPerSocket },
          { xml: 'RTSP', ...unbuilt('nobody can publish over RTSP') },
        ),
      ),
      srt: optional(object('SRT', srtMembers(9999), { xml: 'SRT' })),
      mpegts: optional(object('MPEG-TS', mpegtsMembers, { xml: 'MPEGTS' })),
      webrtc: optional(object('WebRTC', webrtcMembers, { xml: 'WebRTC' })),
    },
    { default: {} },
  ),
  publishers: object(
    'Egress',
    {
      ovt: optional(
        object(
          `OVT. If no port is given: ${OVT_PORT}`,
          {
            port: optional(port('Port', { protocols: ['tcp'] })),
            tlsPort: optional(
              port('Port for OVT over TLS (`ovts://`), with the certificates of the virtual hosts. An extension of Millrace', {
                protocols: ['tcp'],
                xml: 'TLSPort',
              }),
            ),
            secretKey: optional(text('Key of the edges, 16 characters or more; edges without it are refused. An extension of Millrace')),
            workerCount,
            threadPerSocket,
          },
          { xml: 'OVT', finish: ovtFinish },
        ),
      ),
      llhls: optional(httpListener('LL-HLS', 80, 443, { xml: 'LLHLS' })),
      hls: optional(httpListener('HLS', 80, 443, { xml: 'HLS' })),
      thumbnail: optional(httpListener('Images', 80, 443)),
      webrtc: optional(object('WebRTC', webrtcMembers, { xml: 'WebRTC' })),
      srt: optional(object('SRT', srtMembers(9998), { xml: 'SRT' })),
    },
    { default: {} },
  ),
});
/** The typed form of `<Bind>`; a listener that is undefined is off. */
export type BindConfig = Static<typeof BindSchema>;
