/** An edge whose origin dies: viewers stay, the next origin continues, and the first is used again when it returns. */
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { apiPath, type StreamInformation } from '../harness/api-client.ts';
import { LlhlsReader } from '../harness/llhls-reader.ts';
import { until } from '../harness/poll.ts';
import { freePorts } from '../harness/ports.ts';
import { type FfmpegPublisher, publish } from '../harness/publisher.ts';
import { startServer, type TestServer } from '../harness/server.ts';
import { whepOffer } from '../harness/whep-offer.ts';

const DEADLINE = { deadlineMs: 40_000 };
/** The second origin has another frame size, to which players must adapt. */
const SECOND_SIZE = { width: 320, height: 180 };

const origins: TestServer[] = [];
const encoders: FfmpegPublisher[] = [];
let ports: readonly number[];
let edge: TestServer;

beforeAll(async () => {
  ports = await freePorts(2);
  const settings = { withoutHls: true, segmentDuration: 1 };
  const urls = ports.map((port) => `<Url>127.0.0.1:${port}/</Url>`).join('');
  const config = `<Origins>
    <Properties><NoInputFailoverTimeout>1500</NoInputFailoverTimeout><StreamFailbackTimeout>1000</StreamFailbackTimeout></Properties>
    <Origin><Location>/</Location><Pass><Scheme>ovt</Scheme><Urls>${urls}</Urls></Pass><Failback>true</Failback></Origin></Origins>`;
  edge = await startServer({ ...settings, origins: config, webrtc: {} });
  for (const ovtPort of ports) origins.push(await startServer({ ...settings, ovtPort }));
  await publishTo(0);
  await publishTo(1, SECOND_SIZE);
});

afterAll(async () => {
  await Promise.all(encoders.map(async (encoder) => await encoder.stop()));
  await Promise.all([edge, ...origins].map(async (server) => await server?.close()));
});

async function publishTo(index: number, size: object = {}): Promise<void> {
  const encoder = publish({ url: origins[index]!.rtmp('live'), ...size });
  encoders.push(encoder);
  await encoder.sent(30);
}

const source = async (): Promise<string> => (await edge.api.get<StreamInformation>(apiPath.stream('live'))).input.sourceUrl ?? '';

test('players of LL-HLS and WebRTC keep playing while origins are killed and restarted', async () => {
  const url = edge.http('live', 'llhls.m3u8');
  await until('the playlist', async () => (await fetch(url)).status === 200, DEADLINE);
  const offer = await whepOffer();
  onTestFinished(offer.close);
  const whep = await fetch(`http://127.0.0.1:${edge.ports.http}/app/live?direction=whep`, { method: 'POST', body: offer.sdp });
  expect(whep.status).toBe(201);
  offer.accept(await whep.text());
  const reader = await LlhlsReader.open([url]);
  onTestFinished(async () => await reader.stop());
  await until('both to play', () => reader.newest > 2 && offer.received() > 50, DEADLINE);
  expect(await source()).toContain(`:${ports[0]}/`);

  const goesOn = async (what: string): Promise<void> => {
    const [segment, packets] = [reader.newest, offer.received()];
    await until(what, () => reader.newest > segment + 3 && offer.received() > packets + 100, DEADLINE);
  };
  await origins[0]!.kill();
  await goesOn('both to play what the second origin has');
  expect(await source()).toContain(`:${ports[1]}/`);
  const discontinuities = () => [...reader.segments.values()].filter(({ discontinuity }) => discontinuity).length;
  expect(discontinuities()).toBe(1);

  await origins[0]!.restart();
  await publishTo(0);
  await until('the edge to go back', async () => (await source()).includes(`:${ports[0]}/`), DEADLINE);
  await goesOn('both to play what the first origin has');
  expect(discontinuities()).toBe(2);

  await reader.stop();
  expect(reader.faults).toEqual([]);
  expect(edge.log).not.toContain('internal error');
});
