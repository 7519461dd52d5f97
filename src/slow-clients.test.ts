/** Every port of a whole server meets clients that waste its time, and is rid of all of them in time. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { RecordingLogger } from '../test/fakes/recording-logger.ts';
import { selfSigned } from '../test/fakes/self-signed.ts';
import { type Conversation, clientHello, type Manner, mannersOf, SlowClient } from '../test/fakes/slow-client.ts';
import {
  apiTalk,
  http2Talk,
  iceTalk,
  metricsTalk,
  ovtTalk,
  rtmpTalk,
  transportTalk,
  turnTalk,
  viewerTalk,
} from '../test/fakes/slow-talk.ts';
import { FakeWebrtcPublisher } from '../test/fakes/webrtc-publisher.ts';
import { until } from '../test/harness/poll.ts';
import { freePorts } from '../test/harness/ports.ts';
import { openSockets } from '../test/support/open-sockets.ts';
import { loadServerConfig } from './config/index.ts';
import { BindSchema } from './config/schema/bind.ts';
import { MillraceServer } from './server.ts';
import { SrtUdpPort } from './transport/srt/udp-port.ts';
import { systemClock } from './util/clock.ts';

/** A minute takes one and a half seconds. */
const PATIENCE = 0.025;
const TRICKLE_MS = 5000 * PATIENCE;
/** The longest limit, that of who takes no answer, is 180 s; the rest is for a busy machine. */
const RID_WITHIN_MS = 40_000;
const TOKEN = 'slow:token';
const PORTS = ['api', 'apiTls', 'metrics', 'rtmp', 'rtmps', 'srtIn', 'srtOut', 'mpegts', 'http', 'https', 'ovt', 'ice', 'relay'] as const;
type Ports = Record<(typeof PORTS)[number], number>;

function xmlOf(p: Ports): string {
  const web = `<Port>${p.http}</Port><TLSPort>${p.https}</TLSPort>`;
  const ice = `<IceCandidates><IceCandidate>127.0.0.1:${p.ice}/udp</IceCandidate><TcpRelay>127.0.0.1:${p.relay}</TcpRelay></IceCandidates>`;
  const webrtc = `<WebRTC><Signalling>${web}</Signalling>${ice}</WebRTC>`;
  const tls = '<TLS><CertPath>server.crt</CertPath><KeyPath>server.key</KeyPath></TLS>';
  const silence = '<PacketSilenceTimeoutMs>600</PacketSilenceTimeoutMs>';
  return `<Server version="8"><Name>slow</Name><Type>origin</Type><IP>127.0.0.1</IP>
    <Bind>
      <Managers><API><Port>${p.api}</Port><TLSPort>${p.apiTls}</TLSPort></API><Metrics><Port>${p.metrics}</Port></Metrics></Managers>
      <Providers><RTSPC/><OVT/><RTSP/>
        <RTMP><Port>${p.rtmp}</Port><TLSPort>${p.rtmps}</TLSPort></RTMP><SRT><Port>${p.srtIn}/srt</Port></SRT>
        <MPEGTS><Port>${p.mpegts}/tcp</Port></MPEGTS>${webrtc}
      </Providers>
      <Publishers>
        <OVT><Port>${p.ovt}</Port></OVT><LLHLS>${web}</LLHLS><HLS>${web}</HLS><Thumbnail>${web}</Thumbnail>${webrtc}
        <SRT><Port>${p.srtOut}/srt</Port></SRT>
      </Publishers>
    </Bind>
    <Managers><Host><Names><Name>*</Name></Names>${tls}</Host><API><AccessToken>${TOKEN}</AccessToken></API></Managers>
    <VirtualHosts><VirtualHost><Name>default</Name><Host><Names><Name>*</Name></Names>${tls}</Host>
      <Applications><Application><Name>app</Name><Type>live</Type>
        <OutputProfiles><OutputProfile><Name>p</Name><OutputStreamName>\${OriginStreamName}</OutputStreamName>
          <Encodes><Audio><Name>a</Name><Bypass>true</Bypass></Audio></Encodes></OutputProfile></OutputProfiles>
        <Providers><RTMP>${silence}</RTMP><SRT>${silence}</SRT><WebRTC>${silence}<Timeout>600</Timeout></WebRTC>
          <MPEGTS>${silence}<StreamMap><Stream><Name>ts</Name><Port>${p.mpegts}/tcp</Port></Stream></StreamMap></MPEGTS></Providers>
        <Publishers><LLHLS/><HLS/><OVT/><SRT/><WebRTC/><Thumbnail/></Publishers>
      </Application></Applications>
    </VirtualHost></VirtualHosts>
  </Server>`;
}

let ports: Ports;
let folder: string;
let server: MillraceServer;
/** Ports that the process listens on since the server has started, as the kernel says. */
let listening: { tcp: Set<number>; udp: Set<number> };
const clients: SlowClient[] = [];

function portsListening(): { tcp: Set<number>; udp: Set<number> } {
  const sockets = openSockets().filter((socket) => socket.listening);
  const numbers = (protocol: 'tcp' | 'udp') =>
    new Set(sockets.filter((socket) => socket.protocol === protocol).map(({ localPort }) => localPort));
  return { tcp: numbers('tcp'), udp: numbers('udp') };
}

beforeEach(async () => {
  const numbers = await freePorts(PORTS.length);
  ports = Object.fromEntries(PORTS.map((name, n) => [name, numbers[n]])) as Ports;
  folder = mkdtempSync(path.join(tmpdir(), 'millrace-slow-'));
  const { cert, key } = selfSigned('localhost');
  writeFileSync(path.join(folder, 'server.crt'), cert);
  writeFileSync(path.join(folder, 'server.key'), key);
  const configFile = path.join(folder, 'Server.xml');
  writeFileSync(configFile, xmlOf(ports));
  const before = portsListening();
  server = await MillraceServer.start({
    configFile,
    stateFolder: path.join(folder, 'state'),
    logger: new RecordingLogger(),
    timeoutScale: PATIENCE,
  });
  const after = portsListening();
  const added = (now: Set<number>, then: Set<number>) => new Set([...now].filter((port) => !then.has(port)));
  listening = { tcp: added(after.tcp, before.tcp), udp: added(after.udp, before.udp) };
}, 30_000);

afterEach(async () => {
  for (const client of clients.splice(0)) client.close();
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** Those of `ours` that the server still holds a socket for, however little it does with it. */
function alive(ours: readonly SlowClient[]): string[] {
  const held = new Set(
    openSockets()
      .filter(({ protocol, localPort }) => protocol === 'tcp' && listening.tcp.has(localPort))
      .map(({ remotePort }) => remotePort),
  );
  return ours.filter(({ localPort }) => held.has(localPort)).map(({ name }) => name);
}

async function rid(ours: readonly SlowClient[]): Promise<void> {
  await until('nobody to be left', () => (alive(ours).length === 0 ? true : Promise.reject(new Error(alive(ours).join('; ')))), {
    deadlineMs: RID_WITHIN_MS,
    everyMs: 100,
  });
}

async function meet(port: number, conversation: Conversation, manner: Manner): Promise<SlowClient> {
  const client = await SlowClient.start(port, conversation, manner, TRICKLE_MS);
  clients.push(client);
  return client;
}

const inTls = (conversations: readonly Conversation[], alpn: 'h2' | 'http/1.1'): Conversation[] =>
  conversations.map((conversation) => ({ ...conversation, name: `${alpn} ${conversation.name}`, tls: true, alpn }));

/** The conversation with each port; RTMP anew for each client, because a name belongs to one. */
async function talks(): Promise<Map<number, () => Conversation[]>> {
  const hello: Conversation = { name: 'TLS', messages: [await clientHello()], filler: Buffer.alloc(1) };
  let lastKey = 0;
  const rtmp = (): Conversation => {
    lastKey += 1;
    return rtmpTalk(`slow-${lastKey}`);
  };
  return new Map<number, () => Conversation[]>([
    [ports.api, () => apiTalk(TOKEN)],
    [ports.apiTls, () => [hello, ...inTls(apiTalk(TOKEN), 'http/1.1'), ...inTls(http2Talk('/v1/vhosts', TOKEN), 'h2')]],
    [ports.metrics, metricsTalk],
    [ports.http, viewerTalk],
    [ports.https, () => [hello, ...inTls(viewerTalk(), 'http/1.1'), ...inTls(http2Talk('/app/h2?direction=whip', TOKEN), 'h2')]],
    [ports.rtmp, () => [rtmp()]],
    [ports.rtmps, () => [hello, { ...rtmp(), tls: true }]],
    [ports.ovt, () => [ovtTalk()]],
    [ports.relay, () => [turnTalk()]],
    [ports.ice, () => [iceTalk()]],
    [ports.mpegts, () => [transportTalk()]],
  ]);
}

test.runIf(process.platform === 'linux')('no slow client outlives its limit, on any port', { timeout: 120_000 }, async () => {
  const { bind } = loadServerConfig(path.join(folder, 'Server.xml')).config;
  for (const side of ['managers', 'providers', 'publishers'] as const) {
    expect(Object.keys(bind[side]).sort(), 'a listener is missing in the configuration of this test').toEqual(
      Object.keys(BindSchema.properties[side].properties).sort(),
    );
  }
  const said = await talks();
  expect([...said.keys()].sort(), 'a port listens that no slow client speaks to').toEqual([...listening.tcp].sort());
  const ours: SlowClient[] = [];
  for (const [port, conversations] of said) {
    // One at a time is all that this port takes.
    if (port === ports.mpegts) continue;
    for (const [n, form] of conversations().entries()) {
      for (const manner of mannersOf(form)) ours.push(await meet(port, conversations()[n] ?? form, manner));
    }
  }
  for (const manner of mannersOf(transportTalk())) await rid([await meet(ports.mpegts, transportTalk(), manner)]);
  await rid(ours);
});

test.runIf(process.platform === 'linux')('no client that never reads outlives its limit', { timeout: 120_000 }, async () => {
  const deaf: Manner = { whole: 0, ending: 'deaf' };
  const again = ([first]: Conversation[]): Conversation => ({ name: 'again', messages: [], filler: Buffer.concat(first?.messages ?? []) });
  const ours = [
    await meet(ports.http, again(viewerTalk()), deaf),
    await meet(ports.https, { ...again(viewerTalk()), tls: true }, deaf),
    await meet(ports.api, again(apiTalk(TOKEN)), deaf),
    await meet(ports.apiTls, { ...again(apiTalk(TOKEN)), tls: true }, deaf),
    await meet(ports.metrics, again(metricsTalk()), deaf),
    await meet(ports.ovt, again([ovtTalk()]), deaf),
    await meet(ports.relay, again([turnTalk()]), deaf),
  ];
  await rid(ours);
});

test('UDP callers that send nothing are disconnected', { timeout: 60_000 }, async () => {
  expect([...listening.udp].sort()).toEqual([ports.srtIn, ports.srtOut, ports.ice].sort());
  const local = await SrtUdpPort.open({ clock: systemClock, host: '127.0.0.1', port: 0, policy: null, onError: () => undefined });
  const { promise, resolve } = Promise.withResolvers<string>();
  const call = { streamId: 'default/app/srt', passphrase: null, keyLength: null, latency: { receive: 20, peer: 20 }, timeout: 10_000_000 };
  await local.connect({ address: '127.0.0.1', port: ports.srtIn }, call, {
    onData: () => undefined,
    onClosed: ({ code }) => resolve(code),
  });
  const url = `http://127.0.0.1:${ports.http}/app/whip?direction=whip`;
  const publisher = new FakeWebrtcPublisher();
  const offer = async (): Promise<number> =>
    (await fetch(url, { method: 'POST', body: publisher.offer(), headers: { 'Content-Type': 'application/sdp' } })).status;
  try {
    expect(await offer()).toBe(201);
    expect(await promise).toBe('peer-left');
    await until('the name is free again', async () => (await offer()) === 201, { deadlineMs: RID_WITHIN_MS });
  } finally {
    publisher.close();
    await local.close('the test has ended');
  }
});
