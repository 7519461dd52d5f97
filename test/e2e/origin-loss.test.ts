/** An edge whose origin dies: viewers stay, the next origin continues, and the first is used again when it returns. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { apiPath, type StreamInformation } from '../harness/api-client.ts';
import { LlhlsReader } from '../harness/llhls-reader.ts';
import { until } from '../harness/poll.ts';
import { freePorts } from '../harness/ports.ts';
import { type FfmpegPublisher, publish } from '../harness/publisher.ts';
import { startServer, type TestServer } from '../harness/server.ts';
import { SrtViewer } from '../harness/srt-viewer.ts';
import { whepOffer } from '../harness/whep-offer.ts';

const DEADLINE = { deadlineMs: 40_000 };
/** The second origin has another frame size, to which players must adapt. */
const SECOND_SIZE = { width: 320, height: 180 };

const origins: TestServer[] = [];
const encoders: FfmpegPublisher[] = [];
let ports: readonly number[];
let srtPort = 0;
let folder: string;
let edge: TestServer;

beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'millrace-origin-loss-'));
  const [first = 0, second = 0, ingest = 0, egress = 0] = await freePorts(4);
  ports = [first, second];
  srtPort = egress;
  const settings = { withoutHls: true, segmentDuration: 1 };
  const urls = ports.map((port) => `<Url>127.0.0.1:${port}/</Url>`).join('');
  const config = `<Origins>
    <Properties><NoInputFailoverTimeout>1500</NoInputFailoverTimeout><StreamFailbackTimeout>1000</StreamFailbackTimeout></Properties>
    <Origin><Location>/</Location><Pass><Scheme>ovt</Scheme><Urls>${urls}</Urls></Pass><Failback>true</Failback></Origin></Origins>`;
  edge = await startServer({ ...settings, origins: config, webrtc: {}, srt: { ingest, egress } });
  for (const ovtPort of ports) origins.push(await startServer({ ...settings, ovtPort }));
  await publishTo(0);
  await publishTo(1, SECOND_SIZE);
});

afterAll(async () => {
  await Promise.all(encoders.map(async (encoder) => await encoder.stop()));
  await Promise.all([edge, ...origins].map(async (server) => await server?.close()));
  rmSync(folder, { recursive: true, force: true });
});

async function publishTo(index: number, size: object = {}): Promise<void> {
  const encoder = publish({ url: origins[index]!.rtmp('live'), ...size });
  encoders.push(encoder);
  await encoder.sent(30);
}

const source = async (): Promise<string> => (await edge.api.get<StreamInformation>(apiPath.stream('live'))).input.sourceUrl ?? '';

test('players of LL-HLS, WebRTC and SRT keep playing while origins are killed and restarted', async () => {
  const url = edge.http('live', 'llhls.m3u8');
  await until('the playlist', async () => (await fetch(url)).status === 200, DEADLINE);
  const offer = await whepOffer();
  onTestFinished(offer.close);
  const whep = await fetch(`http://127.0.0.1:${edge.ports.http}/app/live?direction=whep`, { method: 'POST', body: offer.sdp });
  expect(whep.status).toBe(201);
  offer.accept(await whep.text());
  const reader = await LlhlsReader.open([url]);
  onTestFinished(async () => await reader.stop());
  const srt = new SrtViewer(folder, srtPort, 'live');
  onTestFinished(async () => await srt.close());
  await until('all players play', () => reader.newest > 2 && offer.received() > 50 && srt.size > 50_000, DEADLINE);
  expect(await source()).toContain(`:${ports[0]}/`);

  const goesOn = async (what: string): Promise<void> => {
    const [segment, packets, bytes] = [reader.newest, offer.received(), srt.size];
    const goOn = (): boolean => reader.newest > segment + 3 && offer.received() > packets + 100 && srt.size > bytes + 50_000;
    await until(what, goOn, DEADLINE);
    // The same connection.
    expect(srt.child.exit).toBeNull();
  };
  await origins[0]!.kill();
  await goesOn('all to play what the second origin has');
  expect(await source()).toContain(`:${ports[1]}/`);
  const discontinuities = () => [...reader.segments.values()].filter(({ discontinuity }) => discontinuity).length;
  expect(discontinuities()).toBe(1);

  await origins[0]!.restart();
  await publishTo(0);
  await until('the edge to go back', async () => (await source()).includes(`:${ports[0]}/`), DEADLINE);
  await goesOn('all to play what the first origin has');
  expect(discontinuities()).toBe(2);

  await reader.stop();
  expect(reader.faults).toEqual([]);
  expect(edge.log).not.toContain('internal error');
});
