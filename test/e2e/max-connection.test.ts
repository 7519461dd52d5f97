/** `MaxConnection` of an application at the real server, for each protocol that has it. */
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { requireProgram } from '../../scripts/ensure-tools.ts';
import { apiPath } from '../harness/api-client.ts';
import { Child } from '../harness/child.ts';
import { until } from '../harness/poll.ts';
import { freePorts } from '../harness/ports.ts';
import { type FfmpegPublisher, publish } from '../harness/publisher.ts';
import { startServer, type TestServer } from '../harness/server.ts';
import { SocketViewer } from '../harness/socket-viewer.ts';
import { encodeSrt } from '../harness/srt-encoder.ts';
import { type WhepOffer, whepOffer } from '../harness/whep-offer.ts';

const SMALL = { width: 320, height: 180, videoKbps: 300 } as const;
const ONE = { maxConnection: 1 };
const APP = apiPath.app('made', 'app');
const WORDS = 'which is all it may have (MaxConnection)';
const PROFILE = { name: 'p', outputStreamName: '${OriginStreamName}', encodes: { videos: [{ name: 'v', bypass: true }] } };

let server: TestServer;
let srt: { ingest: number; egress: number };
let encoder: FfmpegPublisher;
const cleanups: (() => unknown)[] = [];

beforeAll(async () => {
  const [ingest = 0, egress = 0] = await freePorts(2);
  srt = { ingest, egress };
  server = await startServer({ hostNames: ['127.0.0.1'], webrtc: {}, srt });
  await server.api.create('/v1/vhosts', [{ name: 'made', host: { names: ['localhost'] } }]);
  const application = {
    ...{ name: 'app', type: 'live', outputProfiles: { outputProfile: [PROFILE] } },
    ...{ providers: { rtmp: ONE, srt: ONE }, publishers: { webrtc: ONE, srt: ONE } },
  };
  await server.api.create(`${apiPath.vhost('made')}/apps`, [application]);
  encoder = publish({ url: server.rtmp('live', 'app', 'localhost'), ...SMALL });
  await encoder.sent(60);
});
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});
afterAll(async () => {
  await encoder?.stop();
  await server?.close();
});

const signalling = (scheme: 'ws' | 'http', rest = ''): string => `${scheme}://localhost:${server.ports.http}/app/live${rest}`;
const srtCall = (port: number, stream: string): string =>
  `srt://127.0.0.1:${port}?streamid=${encodeURIComponent(`made/app/${stream}`)}&latency=200000`;
const sessions = (protocol: string): Promise<string[]> => server.api.get(`${APP}/streams/live/sessions?protocol=${protocol}`);

test('publishers', async () => {
  const refused = publish({ url: server.rtmp('second', 'app', 'localhost'), ...SMALL });
  cleanups.push(() => refused.kill());
  expect((await refused.child.ended(20_000)).code).not.toBe(0);
  expect(server.log).toContain(`application 'app' has 1 streams of provider 'rtmp', ${WORDS}`);
  const bySrt = encodeSrt(srtCall(srt.ingest, 'third'));
  cleanups.push(() => bySrt.kill());
  const streams = (): Promise<string[]> => server.api.get(`${APP}/streams`);
  await until('the stream of another provider', async () => (await streams()).includes('third'));
  const another = encodeSrt(srtCall(srt.ingest, 'fourth'));
  cleanups.push(() => another.kill());
  expect((await another.ended(20_000)).code).not.toBe(0);
  expect(await streams()).toEqual(['live', 'third']);
});

test('viewers over WebRTC, at their offers and at their connection', async () => {
  const post = async (): Promise<{ status: number; answer: string; offer: WhepOffer }> => {
    const offer = await whepOffer();
    cleanups.push(offer.close);
    const headers = { 'Content-Type': 'application/sdp' };
    const response = await fetch(signalling('http', '?direction=whep'), { method: 'POST', headers, body: offer.sdp });
    const answer = await response.text();
    return { status: response.status, answer, offer };
  };
  // Both get an answer before either plays; then only one may play.
  const both = [await post(), await post()];
  expect(both.map(({ status }) => status)).toEqual([201, 201]);
  for (const { offer, answer } of both) offer.accept(answer);
  await until('a viewer that plays', () => both.some(({ offer }) => offer.received() > 50));
  await until('the other to be sent away', () => server.log.includes('viewer session closed: the application has all the viewers'));
  expect(await sessions('webrtc')).toHaveLength(1);
  expect(both.filter(({ offer }) => offer.received() > 50)).toHaveLength(1);
  expect((await post()).status).toBe(503);
  const socket = new WebSocket(signalling('ws'));
  cleanups.push(() => socket.close());
  const word = new Promise((resolve) => {
    socket.onmessage = ({ data }) => resolve(JSON.parse(`${data}`));
  });
  socket.onopen = () => socket.send(JSON.stringify({ command: 'request_offer' }));
  expect(await word).toEqual({ code: 404, error: 'Cannot create offer' });

  const [only = ''] = await sessions('webrtc');
  expect((await server.api.call('DELETE', `${APP}/streams/live/sessions/${only}`)).status).toBe(200);
  const viewer = new SocketViewer();
  cleanups.push(() => viewer.close());
  await viewer.play(signalling('ws'));
  await until('packets', () => viewer.received > 50);
});

test('viewers over SRT', async () => {
  const play = (): Child => {
    const player = new Child(requireProgram('ffmpeg'), ['-v', 'error', '-nostdin', '-i', srtCall(srt.egress, 'live'), '-f', 'null', '-']);
    cleanups.push(() => player.kill());
    return player;
  };
  const first = play();
  await until('the viewer', async () => (await sessions('srt')).length === 1);
  expect((await play().ended(20_000)).code).not.toBe(0);
  expect(server.log).toMatch(/viewer refused: the application has all the viewers that its publisher may have \(MaxConnection\)/);
  expect(await sessions('srt')).toHaveLength(1);
  await first.kill();
  await until('the end of the session', async () => (await sessions('srt')).length === 0);
  play();
  await until('another session', async () => (await sessions('srt')).length === 1);
});

test('MaxConnection is refused by name for publishers without viewer counts', async () => {
  const publishers = { llhls: { maxConnection: 5 } };
  const refused = await server.api.call('POST', `${apiPath.vhost('made')}/apps`, [{ name: 'more', type: 'live', publishers }]);
  expect([refused.status, JSON.stringify(refused.body)]).toEqual([
    501,
    expect.stringContaining('Publishers/LLHLS/MaxConnection is not built yet'),
  ]);
});
