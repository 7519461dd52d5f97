/** WHIP and the WebSocket protocol for publishers, with requests and peers of our own. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { WebSocket } from 'ws';
import { FakeIngestGate } from '../../../../test/fakes/fake-ingest-gate.ts';
import { foreignPeer } from '../../../../test/fakes/foreign-peer.ts';
import { HeldTurns } from '../../../../test/fakes/held-turns.ts';
import { RecordingLogger } from '../../../../test/fakes/recording-logger.ts';
import { FakeWebrtcPublisher } from '../../../../test/fakes/webrtc-publisher.ts';
import { until } from '../../../../test/harness/poll.ts';
import type { CrossDomainRules } from '../../../access/cross-domains.ts';
import { systemClock } from '../../../util/clock.ts';
import { NO_TURNS } from '../../../util/newcomer-turns.ts';
import { ProtocolError } from '../../../util/protocol-error.ts';
import { readViewerFeedback } from '../../../wire/rtp/viewer-feedback.ts';
import { SignallingServer } from '../signalling/signalling-server.ts';
import { PeerTransport } from '../transport/peer-transport.ts';
import { PublishSide } from './publish-side.ts';
import { WebrtcProvider } from './webrtc-provider.ts';

let ports: Set<number>;
let gate: FakeIngestGate;
let transport: PeerTransport;
let provider: WebrtcProvider;
let signalling: SignallingServer;
let server: Server;
let publisher: FakeWebrtcPublisher;
let crossDomains: CrossDomainRules | null;
let timeout: number;
/** Lead of the provider's clock over the real clock, ms. */
let ahead: number;
let logger: RecordingLogger;
let held: HeldTurns | null;

beforeEach(async () => {
  gate = new FakeIngestGate();
  logger = new RecordingLogger();
  crossDomains = null;
  timeout = 30_000;
  ahead = 0;
  held = null;
  ports = new Set([3333]);
  const media = [{ host: '127.0.0.1', port: 0, addresses: ['127.0.0.1'] }];
  transport = await PeerTransport.open({ ports: [], publishPorts: media, tcp: false, threads: 1, clock: systemClock, logger });
  const settingsOf = () => ({ timeout, keyframeInterval: 300 });
  const clock = { now: systemClock.now, monotonic: () => systemClock.monotonic() + ahead };
  provider = new WebrtcProvider({ gate, transport, settingsOf, clock, logger });
  const iceServers = [{ urls: ['turn:192.0.2.9:3478?transport=tcp'], username: 'me', credential: 'a "secret"' }];
  const virtualHostFor = (host: string): string | undefined => (host === '127.0.0.1' ? 'default' : undefined);
  const publish = new PublishSide({
    provider,
    virtualHostFor,
    crossDomainsOf: () => crossDomains,
    iceServersFor: (place) => (place.transport === 'tcp' ? iceServers : place.transport === 'none' ? [] : null),
    turns: { take: (newcomer) => (held ?? NO_TURNS).take(newcomer), leave: () => undefined },
    logger,
  });
  signalling = new SignallingServer({ play: null, publish: { side: publish, ports }, virtualHostFor });
  server = createServer((request, response) => signalling.request(request, response, foreignPeer()));
  server.on('upgrade', (request, socket, head) => signalling.upgrade(request, socket, head, foreignPeer()));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  publisher = new FakeWebrtcPublisher();
});

afterEach(async () => {
  publisher.close();
  signalling.close();
  provider.stop();
  server.closeAllConnections();
  server.close();
  await transport.close();
});

const url = (path: string): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`;
const post = (body: string, path = '/app/stream?direction=whip', headers: Record<string, string> = {}): Promise<Response> =>
  fetch(url(path), { method: 'POST', body, headers });

/** Sends frames until `count` have come out. */
async function sendFrames(count: number): Promise<void> {
  const [stream] = gate.streams;
  await until(
    `${count} frames`,
    () => {
      publisher.send();
      return (stream?.packets.length ?? 0) >= count;
    },
    { deadlineMs: 30_000, everyMs: 40 },
  );
}

describe('WHIP', () => {
  test('a publisher that never connects starts no periodic check', async () => {
    const timers = vi.spyOn(globalThis, 'setInterval');
    const looks = () => timers.mock.calls.filter(([, everyMs]) => everyMs === 20).length;
    const response = await post(publisher.offer());
    expect(response.status).toBe(201);
    expect([provider.sessions, looks()]).toEqual([1, 0]);
    await publisher.connect(await response.text());
    await until('the connection', () => publisher.connected, { deadlineMs: 30_000 });
    await until('the timer of the checks', () => looks() === 1, { deadlineMs: 5000 });
    timers.mockRestore();
  });

  test('an offer is answered in the turn of its client, and refused when the queue is full', async () => {
    const turns = new HeldTurns();
    const replies: Promise<Response>[] = [];
    for (const [path, act] of [
      ['/app/first?direction=whip', 'enter'],
      ['/app/second?direction=whip', 'refused'],
    ] as const) {
      held = turns;
      replies.push(post(publisher.offer(), path));
      await until('the request', () => turns.waiting.length === replies.length, { deadlineMs: 5000 });
      expect(provider.sessions).toBe(act === 'enter' ? 0 : 1);
      if (act === 'enter') turns.waiting.at(-1)?.enter();
      else turns.waiting.at(-1)?.refused('there is no room');
    }
    const [first, second] = await Promise.all(replies);
    expect([first?.status, second?.status]).toEqual([201, 503]);
    expect(await second?.text()).toBe('there is no room\n');
    expect(turns.waiting.map(({ client }) => client)).toEqual(['192.0.2.1', '192.0.2.1']);
    expect(provider.sessions).toBe(1);
  });

  test('a publisher is admitted, received, asked for keyframes, and removed after its DELETE', async () => {
    const response = await post(publisher.offer());
    const answer = await response.text();
    expect(response.status).toBe(201);
    expect(response.headers.get('content-type')).toBe('application/sdp');
    expect(response.headers.get('etag')).toMatch(/^\w{8}$/);
    expect(response.headers.get('link')).toBeNull();
    expect(response.headers.get('access-control-expose-headers')).toBe('Location, Link, ETag');
    expect(answer).toContain('a=recvonly');
    expect(answer).toContain('a=setup:passive');
    expect(answer).not.toContain('a=msid:');
    expect(gate.streams[0]?.target).toMatchObject({ vhost: 'default', app: 'app' });
    expect(gate.streams[0]?.request).toMatchObject({
      streamName: 'stream',
      provider: 'webrtc',
      sourceType: 'WebRTC',
      sourceUrl: 'WebRTC://192.0.2.1',
    });
    await publisher.connect(answer);
    await until('the connection', () => publisher.connected, { deadlineMs: 30_000 });
    await sendFrames(10);
    expect(gate.streams[0]?.tracks).toMatchObject([{ type: 'video', codec: 'VP8', width: 320, height: 180 }]);
    await until('reports', () => publisher.heard.some((packet) => readViewerFeedback(packet).reports.length > 0), { deadlineMs: 5000 });
    // All frames of this publisher are keyframes: the server requests one when they stop.
    await until('a request', () => publisher.heard.some((packet) => readViewerFeedback(packet).keyframeWanted), { deadlineMs: 5000 });
    expect(gate.streams[0]?.bytes).toBeGreaterThan(100);
    // The only viewer in the fanout is the first.
    transport.fanout.inject(1, Buffer.alloc(40, 0x80));
    await until('the forged packet', () => transport.fanout.viewerCounters(1)?.refused === 1, { deadlineMs: 5000 });

    const location = response.headers.get('location') ?? '';
    expect(location).toMatch(/^\/app\/stream\/\w{16}\?direction=whip$/);
    const patch = (body: string, path = location): Promise<Response> => fetch(url(path), { method: 'PATCH', body });
    expect((await patch('a=ice-ufrag:x\r\n')).status).toBe(204);
    // Publishers of the reference server name any tag.
    const tagged = await fetch(url(location), { method: 'PATCH', body: 'a=ice-ufrag:x\r\n', headers: { 'If-Match': '"another"' } });
    expect([tagged.status, tagged.headers.get('content-type')]).toEqual([204, 'application/trickle-ice-sdpfrag']);
    expect((await patch('hello')).status).toBe(400);
    expect((await patch('a=ice-ufrag:x\r\n', '/app/stream?direction=whip')).status).toBe(400);
    expect((await fetch(url(location), { method: 'DELETE' })).status).toBe(200);
    expect(gate.streams[0]?.closeReason).toMatchObject({ code: 'peer-left' });
    expect(logger.lines.find(({ message }) => message.startsWith('WebRTC publication closed'))?.fields).toMatchObject({ refused: 1 });
    expect((await fetch(url(location), { method: 'DELETE' })).status).toBe(404);
    await until('the publisher sees the end', () => publisher.ended !== '', { deadlineMs: 5000 });
    expect([provider.sessions, transport.sessions, transport.fanout.counters().viewers]).toEqual([0, 0, 0]);
  });

  test('a track of an unsupported codec is named in the log', async () => {
    const speech = ['m=audio 9 UDP/TLS/RTP/SAVPF 0 8', 'a=mid:speech', 'a=sendonly', 'a=rtpmap:0 PCMU/8000', 'a=rtpmap:8 PCMA/8000', ''];
    expect((await post(publisher.offer() + speech.join('\r\n'))).status).toBe(201);
    // The client is on another machine, and the port is open on loopback.
    const warned = logger.lines.filter(({ level, message }) => level === 'warn' && !message.includes('loopback addresses'));
    expect(warned.map(({ message }) => message)).toEqual([
      'tracks left out: audio (PCMU, PCMA); WebRTC can bring H.264, H.265, VP8, AV1 and Opus',
    ]);
  });

  test('the stream ends when its publisher leaves', async () => {
    const answer = await (await post(publisher.offer())).text();
    await publisher.connect(answer);
    await until('the connection', () => publisher.connected, { deadlineMs: 30_000 });
    await sendFrames(2);
    publisher.close();
    await until('the end of the stream', () => gate.streams[0]?.closed === true, { deadlineMs: 5000 });
    expect(gate.streams[0]?.closeReason?.code).toBe('peer-left');
    expect(provider.sessions).toBe(0);
  });

  test('an internal fault ends the publication and is logged', async () => {
    await publisher.connect(await (await post(publisher.offer())).text());
    await until('the connection', () => publisher.connected, { deadlineMs: 30_000 });
    await sendFrames(1);
    const [stream] = gate.streams;
    Object.assign(stream ?? {}, {
      push: () => {
        throw new Error('ours');
      },
    });
    publisher.send();
    await until('the end of the stream', () => stream?.closed === true, { deadlineMs: 5000 });
    expect(stream?.closeReason).toEqual({ code: 'peer-error', detail: 'internal error' });
    const failures = logger.lines.filter(({ level }) => level === 'error');
    expect(failures.map(({ message }) => message)).toEqual(['a WebRTC publication failed inside the server']);
    expect([provider.sessions, transport.sessions]).toEqual([0, 0]);
  });

  test('a publisher of unreadable media is disconnected, and no internal error is logged', async () => {
    gate.fault = new ProtocolError('AVCC', 'made up');
    await publisher.connect(await (await post(publisher.offer())).text());
    await until('the connection', () => publisher.connected, { deadlineMs: 30_000 });
    const hasEnded = (): boolean => {
      publisher.send();
      ahead += 500;
      return gate.streams[0]?.closed === true;
    };
    await until('the end of the publication', hasEnded, { deadlineMs: 5000, everyMs: 40 });
    expect(gate.streams[0]?.closeReason).toEqual({ code: 'peer-error', detail: 'AVCC: made up' });
    await until('the publisher sees the end', () => publisher.ended !== '', { deadlineMs: 5000 });
    expect(logger.lines.filter(({ level }) => level === 'error')).toEqual([]);
    expect([provider.sessions, transport.sessions]).toEqual([0, 0]);
  });

  test('a publisher whose path fails is removed after the timeout', async () => {
    timeout = 1500;
    const answer = await (await post(publisher.offer())).text();
    await publisher.connect(answer);
    await until('the connection', () => publisher.connected, { deadlineMs: 30_000 });
    publisher.close(true);
    await until('the end of the stream', () => gate.streams[0]?.closed === true, { deadlineMs: 30_000 });
    expect(gate.streams[0]?.closeReason).toEqual({ code: 'timeout', detail: 'no connectivity check was answered for 1500 ms' });
    expect([provider.sessions, transport.sessions]).toEqual([0, 0]);
  });

  test('a stream that the server ends ends the session', async () => {
    const response = await post(publisher.offer());
    await publisher.connect(await response.text());
    await until('the connection', () => publisher.connected, { deadlineMs: 30_000 });
    gate.streams[0]?.request.onClose({ code: 'deleted', detail: 'deleted by the test' });
    await until('the publisher sees the end', () => publisher.ended !== '', { deadlineMs: 5000 });
    expect([provider.sessions, transport.sessions]).toEqual([0, 0]);
    expect((await fetch(url(response.headers.get('location') ?? ''), { method: 'DELETE' })).status).toBe(404);
  });

  test.each([
    ['no-application', 404, 'Could not find application'],
    ['provider-disabled', 404, 'Could not find application'],
    ['duplicate-name', 409, 'Stream is already exist'],
    ['invalid-name', 400, 'refused by the test: invalid-name'],
    ['shutting-down', 503, 'refused by the test: shutting-down'],
  ] as const)('%s is answered %i', async (refusal, status, text) => {
    gate.refusal = refusal;
    const response = await post(publisher.offer());
    expect([response.status, await response.text()]).toEqual([status, `${text}\n`]);
    expect([provider.sessions, transport.sessions]).toEqual([0, 0]);
    const lines = logger.matching(`publisher refused: refused by the test: ${refusal}`);
    expect(lines.map(({ level, fields }) => [level, fields])).toEqual([
      ['warn', { peer: '192.0.2.1', code: refusal, over: 'WHIP', vhost: expect.any(String), app: 'app', stream: expect.any(String) }],
    ]);
  });

  test.each([
    ['no session description', () => 'hello', 400, 'v=0'],
    ['no fingerprint', () => publisher.offer().replace(/a=fingerprint.*\r\n/, ''), 400, 'fingerprint'],
    ['no ICE password', () => publisher.offer().replace(/a=ice-pwd.*\r\n/, ''), 400, 'ice-pwd'],
    ['a publisher that waits for us', () => publisher.offer('passive'), 400, 'a=setup:passive'],
    ['a player', () => publisher.offer().replace('a=sendonly', 'a=recvonly'), 406, 'sends nothing'],
    ['a codec that is not received', () => publisher.offer().replace('VP8', 'VP9'), 406, 'H264'],
    ['too much', () => 'v=0\r\n'.padEnd(70_000, 'x'), 413, 'longer than'],
  ])('%s is refused and leaves no session', async (_name, body, status, text) => {
    const response = await post(body());
    expect(response.status).toBe(status);
    expect(await response.text()).toContain(text);
    expect(gate.streams).toEqual([]);
    expect([provider.sessions, transport.sessions]).toEqual([0, 0]);
  });

  test('a path without a stream and an unknown method are refused', async () => {
    expect((await post(publisher.offer(), '/app?direction=whip')).status).toBe(404);
    const put = await fetch(url('/app/stream?direction=whip'), { method: 'PUT', body: '' });
    expect([put.status, put.headers.get('allow')]).toEqual([405, 'OPTIONS, POST, PATCH, DELETE']);
    expect((await post(publisher.offer(), '/app/stream?direction=whep')).status).toBe(404);
  });

  test('a hundred publishers connect and leave without a leak', async () => {
    for (let n = 0; n < 100; n += 1) {
      const response = await post(publisher.offer());
      expect(response.status).toBe(201);
      await response.text();
      if (n % 2 === 0) await fetch(url(response.headers.get('location') ?? ''), { method: 'DELETE' });
      else gate.streams.at(-1)?.request.onClose({ code: 'deleted', detail: 'deleted by the test' });
    }
    expect([provider.sessions, transport.sessions, transport.fanout.counters().viewers]).toEqual([0, 0, 0]);
    expect(gate.streams.map(({ closed }) => closed)).toEqual(new Array(100).fill(true));
  });

  test('a port without a listener for publishers answers 404', async () => {
    ports.clear();
    const response = await post(publisher.offer());
    expect([response.status, await response.text()]).toEqual([404, 'this port does not listen for publishers over WebRTC\n']);
    expect(gate.streams).toHaveLength(0);
  });

  test('the announced maximum size and frame rate are set on the track', async () => {
    const answer = await (
      await post(publisher.offer(), undefined, { 'Oven-Capabilities': 'max_width=1280, max_height=720, max_fps=25' })
    ).text();
    await publisher.connect(answer);
    await until('the connection', () => publisher.connected, { deadlineMs: 30_000 });
    await sendFrames(2);
    expect(gate.streams[0]?.tracks).toMatchObject([
      { type: 'video', width: 320, height: 180, fullSize: { width: 1280, height: 720 }, framerateConf: 25 },
    ]);
  });

  test('TURN relays are listed in Link headers', async () => {
    const response = await post(publisher.offer(), '/app/stream?direction=whip&transport=tcp');
    expect(response.headers.get('link')).toBe(
      '<turn:192.0.2.9:3478?transport=tcp>; rel="ice-server"; username="me"; credential="a \\"secret\\""; credential-type="password"',
    );
  });

  test('pages of other origins may publish unless the application names its origins', async () => {
    const preflight = (origin: string): Promise<Response> =>
      fetch(url('/app/stream?direction=whip'), {
        method: 'OPTIONS',
        headers: { Origin: origin, 'Access-Control-Request-Headers': 'content-type,oven-capabilities' },
      });
    const open = await preflight('https://a.example');
    expect(open.status).toBe(200);
    expect(open.headers.get('access-control-allow-origin')).toBe('*');
    expect(open.headers.get('access-control-allow-methods')).toBe('OPTIONS, POST, PATCH, DELETE');
    expect(open.headers.get('access-control-allow-headers')).toBe('content-type,oven-capabilities');
    expect(open.headers.get('access-control-allow-private-network')).toBe('true');
    crossDomains = { urls: ['https://a.example'], headers: [] };
    expect((await preflight('https://a.example')).headers.get('access-control-allow-origin')).toBe('https://a.example');
    expect((await preflight('https://b.example')).headers.get('access-control-allow-origin')).toBeNull();
  });
});

describe('WebSocket', () => {
  interface Message {
    readonly command?: string;
    readonly id?: number;
    readonly code?: number;
    readonly error?: string;
    readonly sdp?: { readonly sdp: string };
    readonly candidates?: { readonly candidate: string }[];
    readonly iceServers?: unknown;
  }

  class Client {
    readonly socket: WebSocket;
    readonly heard: Message[] = [];
    closed = false;

    constructor(path = '/app/stream?direction=send') {
      this.socket = new WebSocket(url(path).replace('http', 'ws'));
      this.socket.on('message', (data) => this.heard.push(JSON.parse(data.toString()) as Message));
      this.socket.on('close', () => {
        this.closed = true;
      });
      this.socket.on('error', () => undefined);
    }

    async send(message: object): Promise<void> {
      if (this.socket.readyState === WebSocket.CONNECTING) await new Promise((resolve) => this.socket.once('open', resolve));
      this.socket.send(JSON.stringify(message));
    }

    async hears(count: number): Promise<Message> {
      await until(`${count} messages`, () => this.heard.length >= count, { deadlineMs: 5000, everyMs: 5 });
      return this.heard[count - 1] ?? {};
    }
  }

  test("a publisher answers the server's offer and is received; its stream ends with the connection", async () => {
    const client = new Client();
    await client.send({ command: 'request_offer' });
    const offer = await client.hears(1);
    expect(offer).toMatchObject({ command: 'offer', peer_id: 0, code: 200 });
    expect(offer.iceServers).toBeUndefined();
    const description = offer.sdp?.sdp ?? '';
    for (const line of [
      'a=rtpmap:100 H264/90000',
      'a=rtpmap:101 VP8/90000',
      'a=rtpmap:102 OPUS/48000/2',
      'a=setup:actpass',
      'a=recvonly',
    ]) {
      expect(description).toContain(`${line}\r\n`);
    }
    await client.send({ command: 'answer', id: offer.id, peer_id: 0, sdp: { type: 'answer', sdp: publisher.answer(description) } });
    await client.send({ command: 'candidate', id: offer.id, candidates: [{ candidate: 'candidate:1 1 UDP 1 192.0.2.3 4 typ host' }] });
    await publisher.connect(
      description,
      offer.candidates?.map(({ candidate }) => candidate),
    );
    await until('the connection', () => publisher.connected, { deadlineMs: 30_000 });
    await sendFrames(5);
    client.socket.close();
    await until('the end of the stream', () => gate.streams[0]?.closed === true, { deadlineMs: 5000 });
    expect([provider.sessions, transport.sessions]).toEqual([0, 0]);
  });

  test('`stop` ends the stream, the connection stays', async () => {
    const client = new Client();
    await client.send({ command: 'request_offer' });
    const { id, sdp } = await client.hears(1);
    // The name is taken with the answer, not before.
    expect(gate.streams).toEqual([]);
    await client.send({ command: 'answer', id, peer_id: 0, sdp: { type: 'answer', sdp: publisher.answer(sdp?.sdp ?? '') } });
    await until('the stream', () => gate.streams.length === 1, { deadlineMs: 5000 });
    await client.send({ command: 'stop', id });
    await until('the end of the stream', () => gate.streams[0]?.closed === true, { deadlineMs: 5000 });
    expect(client.closed).toBe(false);
    client.socket.close();
  });

  test('a name taken after the offer is refused at the answer', async () => {
    const client = new Client();
    await client.send({ command: 'request_offer' });
    const { id, sdp } = await client.hears(1);
    gate.refusal = 'duplicate-name';
    await client.send({ command: 'answer', id, peer_id: 0, sdp: { type: 'answer', sdp: publisher.answer(sdp?.sdp ?? '') } });
    expect(await client.hears(2)).toEqual({ code: 403, error: 'Forbidden' });
    await until('the connection is closed', () => client.closed, { deadlineMs: 5000 });
    expect([gate.streams, provider.sessions, transport.sessions]).toEqual([[], 0, 0]);
  });

  test.each([
    ['a name that is taken', '/app/stream?direction=send', 'duplicate-name' as const, { code: 404, error: 'Cannot create offer' }],
    ['a path without stream', '/app?direction=send', null, { code: 404, error: 'Cannot create offer' }],
  ])('%s is refused', async (_name, path, refusal, answer) => {
    gate.refusal = refusal;
    const client = new Client(path);
    await client.send({ command: 'request_offer' });
    expect(await client.hears(1)).toEqual(answer);
    await until('the connection is closed', () => client.closed, { deadlineMs: 5000 });
    expect([provider.sessions, transport.sessions]).toEqual([0, 0]);
  });

  test.each([
    ['an answer without description', (id: number) => ({ command: 'answer', id }), 400],
    ['an invalid answer', (id: number) => ({ command: 'answer', id, sdp: { type: 'answer', sdp: 'v=0\r\n' } }), 403],
  ])('%s closes the connection before the stream starts', async (_name, message, code) => {
    const client = new Client();
    await client.send({ command: 'request_offer' });
    const { id = 0 } = await client.hears(1);
    await client.send(message(id));
    expect(await client.hears(2)).toMatchObject({ code });
    await until('the connection is closed', () => client.closed, { deadlineMs: 5000 });
    expect(gate.streams).toEqual([]);
    expect([provider.sessions, transport.sessions]).toEqual([0, 0]);
  });

  test.each([
    ['another id', () => ({ command: 'stop', id: 0 }), 400],
    ['a command for players', (id: number) => ({ command: 'change_rendition', id, rendition_name: 'x' }), 400],
    ['a broken candidate', (id: number) => ({ command: 'candidate', id, candidates: [{ candidate: 'x' }] }), 400],
  ])('%s ends the connection and the stream', async (_name, message, code) => {
    const client = new Client();
    await client.send({ command: 'request_offer' });
    const { id = 0, sdp } = await client.hears(1);
    await client.send({ command: 'answer', id, peer_id: 0, sdp: { type: 'answer', sdp: publisher.answer(sdp?.sdp ?? '') } });
    await until('the stream', () => gate.streams.length === 1, { deadlineMs: 5000 });
    await client.send(message(id));
    expect(await client.hears(2)).toMatchObject({ code });
    await until('the connection is closed', () => client.closed, { deadlineMs: 5000 });
    expect(gate.streams.map(({ closed }) => closed)).toEqual([true]);
    expect([provider.sessions, transport.sessions]).toEqual([0, 0]);
  });

  test('TURN relays are listed to clients that ask for them', async () => {
    const client = new Client('/app/stream?direction=send&transport=tcp');
    await client.send({ command: 'request_offer' });
    expect((await client.hears(1)).iceServers).toEqual([
      { credential: 'a "secret"', urls: ['turn:192.0.2.9:3478?transport=tcp'], username: 'me' },
    ]);
    client.socket.close();
  });

  test('a client that asks for relays gets an empty list when there are none, in one spelling', async () => {
    const client = new Client('/app/stream?direction=send&transport=none');
    await client.send({ command: 'request_offer' });
    const offer = await client.hears(1);
    expect(offer.iceServers).toEqual([]);
    expect('ice_servers' in offer).toBe(false);
    client.socket.close();
  });
});
