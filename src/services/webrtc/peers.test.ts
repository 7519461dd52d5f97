/** Candidates of peers, made from the elements of `Bind/…/WebRTC` and requested as delivery threads do. */
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { request } from 'node:http';
import { connect } from 'node:net';
import type { NetworkInterfaceInfo } from 'node:os';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { FakeIngestGate } from '../../../test/fakes/fake-ingest-gate.ts';
import { foreignPeer } from '../../../test/fakes/foreign-peer.ts';
import { RecordingLogger } from '../../../test/fakes/recording-logger.ts';
import { FakeWebrtcPublisher } from '../../../test/fakes/webrtc-publisher.ts';
import { until } from '../../../test/harness/poll.ts';
import { freePorts } from '../../../test/harness/ports.ts';
import { OPEN_GATE } from '../../access/access-check.ts';
import { parseServerConfig, readApplication } from '../../config/index.ts';
import type { Orchestrator } from '../../core/orchestrator.ts';
import { ServerLimits } from '../../delivery/server-limits.ts';
import { systemClock } from '../../util/clock.ts';
import { parseStun, StunAttribute, StunType, serializeStun, xorMappedAddress } from '../../wire/stun/stun-message.ts';
import { startPeers } from './peers.ts';

const SIGNALLING_PORT = 3333;

/** Interfaces in place of this machine's. */
const machine = vi.hoisted(() => ({ addresses: null as string[] | null }));
vi.mock('node:os', async (importOriginal) => {
  const original = await importOriginal<typeof import('node:os')>();
  const entry = (address: string) => ({ address, family: 'IPv4', internal: address.startsWith('127.') }) as NetworkInterfaceInfo;
  const networkInterfaces = () => (machine.addresses === null ? original.networkInterfaces() : { eth0: machine.addresses.map(entry) });
  return { ...original, networkInterfaces };
});

let stun: Socket;
let running: { stop(): Promise<void> }[];
let logger: RecordingLogger;

beforeEach(async () => {
  machine.addresses = null;
  running = [];
  logger = new RecordingLogger();
  stun = createSocket('udp4');
  stun.bind(0, '127.0.0.1');
  await once(stun, 'listening');
});

afterEach(async () => {
  for (const part of running.reverse()) await part.stop();
  stun.close();
});

/** The STUN server reports `outside` as our address; returns the element that names the server. */
function seenAs(outside: string): string {
  stun.on('message', (datagram, { port }) => {
    const { transaction } = parseStun(datagram);
    const attributes = [[StunAttribute.XOR_MAPPED_ADDRESS, xorMappedAddress(outside, 4711, transaction)]] as const;
    stun.send(serializeStun({ type: StunType.BINDING_SUCCESS, transaction, attributes, password: null }), port, '127.0.0.1');
  });
  return `<StunServer>127.0.0.1:${stun.address().port}</StunServer>`;
}

/** Starts WebRTC with these elements, and with `publishers` if it is not empty; returns the path of the signalling socket. */
async function start(head: string, candidates: string, publishers = ''): Promise<string> {
  const bind = `<Signalling><Port>${SIGNALLING_PORT}</Port></Signalling><IceCandidates>${candidates}</IceCandidates>`;
  const sides = `<Providers><WebRTC>${bind}</WebRTC></Providers>${publishers === '' ? '' : `<Publishers><WebRTC>${publishers}</WebRTC></Publishers>`}`;
  const xml = `<Server version="8"><Type>origin</Type><IP>*</IP>${head}<Bind>${sides}</Bind></Server>`;
  const { config } = parseServerConfig(xml, 'Server.xml', {});
  const limits = new ServerLimits(config, 1, logger);
  running.push(limits);
  const application = { definition: { config: readApplication({ name: 'app', type: 'live', providers: { webrtc: {} } }).typed } };
  const orchestrator = Object.assign(new FakeIngestGate(), { nameForHost: () => 'default', application: () => application });
  const parts = await startPeers({
    ...{ config, limits, logger, clock: systemClock, access: OPEN_GATE, finder: { find: () => null }, timeoutScale: 1 },
    orchestrator: orchestrator as unknown as Orchestrator,
  });
  if (parts === null) throw new Error('nothing was started');
  running.push(parts);
  return parts.signallingPath;
}

/** The addresses announced to a publisher: the media port, and relays. */
async function told(path: string, stream: string): Promise<{ media: string[]; relays: string[] }> {
  const createConnection = () => {
    const socket = connect(path);
    socket.write(`${JSON.stringify(foreignPeer('192.0.2.1', SIGNALLING_PORT))}\n`);
    return socket;
  };
  const asking = request({ createConnection, method: 'POST', path: `/app/${stream}?direction=whip`, headers: { host: 'here' } });
  const publisher = new FakeWebrtcPublisher();
  asking.end(publisher.offer());
  const [response] = await once(asking, 'response');
  const answer = await text(response);
  publisher.close();
  expect(response.statusCode).toBe(201);
  const media = [...answer.matchAll(/^a=candidate:\d+ 1 UDP \d+ (\S+ \d+) /gm)].map(([, place = '']) => place);
  return {
    media,
    relays: [response.headers.link ?? []].flat().flatMap((link: string) => link.split(', ').map((one) => one.split(';')[0] ?? '')),
  };
}

// A port that is open on all addresses cannot be opened on an address of the machine as well, and need not be.
test.each(['203.0.113.9', '127.0.0.1'])('peers get the public address %s that the STUN server reports', async (outside) => {
  const [star = 0, alone = 0, named = 0, relay = 0] = await freePorts(4);
  const places = [`*:${star}/udp`, `${alone}/udp`, `\${PublicIP}:${named}/udp`].map((place) => `<IceCandidate>${place}</IceCandidate>`);
  const path = await start(seenAs(outside), `${places.join('')}<TcpRelay>*:${relay}</TcpRelay><TcpForce>true</TcpForce>`);
  const [first, second, third] = [await told(path, 'a'), await told(path, 'b'), await told(path, 'c')];
  expect(first.media).toContain(`${outside} ${star}`);
  expect(second.media).toContain(`${outside} ${alone}`);
  expect(third.media).toEqual([`${outside} ${named}`]);
  expect(first.relays).toContain(`<turn:${outside}:${relay}?transport=tcp>`);
  const warned = logger.lines.filter(({ level }) => level === 'error' || level === 'warn').map(({ message }) => message);
  // The client is on another machine, and no other client gets the port of the public address alone.
  expect(warned).toEqual(outside === '127.0.0.1' ? [expect.stringMatching(/gets loopback addresses only/)] : []);
});

test('without a STUN server candidates with the public address are left out, and the log names them', async () => {
  const [star = 0, named = 0] = await freePorts(2);
  const path = await start('', `<IceCandidate>*:${star}/udp</IceCandidate><IceCandidate>\${PublicIP}:${named}/udp</IceCandidate>`);
  const both = [await told(path, 'a'), await told(path, 'b')];
  expect(both.flatMap(({ media }) => media.filter((place) => !place.endsWith(` ${star}`)))).toEqual([]);
  expect(both.map(({ relays }) => relays)).toEqual([[], []]);
  expect(logger.lines.find(({ level }) => level === 'warn')?.message).toBe(
    `Bind/Providers/WebRTC/IceCandidates/IceCandidate '\${PublicIP}:${named}/udp' is left out: the public address is not known (StunServer)`,
  );
});

test.each([
  ['*', '127.0.0.1'],
  ['127.0.0.1', '*'],
])('players at %s and publishers at %s share ports', async (players, publishers) => {
  const [port = 0, relay = 0] = await freePorts(2);
  const at = (host: string): string =>
    `<IceCandidate>${host}:${port}/udp</IceCandidate><TcpRelay>${host}:${relay}</TcpRelay><TcpForce>true</TcpForce>`;
  const path = await start('', at(publishers), `<IceCandidates>${at(players)}</IceCandidates>`);
  const { media, relays } = await told(path, 'a');
  expect([media, relays].map(({ length }) => length > 0)).toEqual([true, true]);
  if (publishers !== '*') expect([media, relays]).toEqual([[`127.0.0.1 ${port}`], [`<turn:127.0.0.1:${relay}?transport=tcp>`]]);
});

test('peers get addresses that the machine got later, and the log warns while there are none', async () => {
  const [port = 0, relay = 0] = await freePorts(2);
  machine.addresses = ['127.0.0.1'];
  const path = await start('', `<IceCandidate>*:${port}/udp</IceCandidate><TcpRelay>*:${relay}</TcpRelay><TcpForce>true</TcpForce>`);
  expect(await told(path, 'a')).toEqual({ media: [`127.0.0.1 ${port}`], relays: [`<turn:127.0.0.1:${relay}?transport=tcp>`] });
  await told(path, 'b');
  const warnings = logger.lines.filter(({ level }) => level === 'warn');
  expect(warnings.map(({ message, fields }) => [message, fields['peer']])).toEqual([
    [expect.stringMatching(/^a WebRTC peer on another machine gets loopback addresses only/), '192.0.2.1'],
  ]);
  machine.addresses = ['127.0.0.1', '198.51.100.7'];
  let names = 0;
  const now = await until(
    'the new address is announced',
    async () => {
      names += 1;
      const known = await told(path, `c${names}`);
      // Ports and relays read the addresses of the machine separately, each a second after its last read.
      return known.media.includes(`198.51.100.7 ${port}`) && !known.relays.some((place) => place.includes('127.0.0.1')) ? known : null;
    },
    { deadlineMs: 30_000, everyMs: 100 },
  );
  expect(now).toEqual({ media: [`198.51.100.7 ${port}`], relays: [`<turn:198.51.100.7:${relay}?transport=tcp>`] });
  expect(logger.lines.filter(({ message }) => message.includes('addresses of this machine have changed'))).toHaveLength(1);
});
