/** Edges with viewers: one pull for all of them, and few lookups of missing streams. */
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { apiPath } from '../harness/api-client.ts';
import { until } from '../harness/poll.ts';
import { freePorts } from '../harness/ports.ts';
import { type FfmpegPublisher, publish } from '../harness/publisher.ts';
import { startServer, type TestServer } from '../harness/server.ts';
import { whepOffer } from '../harness/whep-offer.ts';

const PLAYLISTS = 460;
const OFFERS = 40;
const STRANGERS = 1000;
const AT_ONCE = 50;

let origin: TestServer;
let edge: TestServer;
let encoder: FfmpegPublisher;

beforeAll(async () => {
  const [ovtPort = 0] = await freePorts(1);
  const origins = `<Origins><Origin><Location>/</Location>
    <Pass><Scheme>ovt</Scheme><Urls><Url>127.0.0.1:${ovtPort}/</Url></Urls></Pass></Origin></Origins>`;
  origin = await startServer({ ovtPort, withoutHls: true, segmentDuration: 1 });
  edge = await startServer({ origins, segmentDuration: 1, webrtc: {}, withoutHls: true });
  encoder = publish({ url: origin.rtmp('live') });
  await encoder.sent(60);
});

afterAll(async () => {
  await encoder?.stop();
  await Promise.all([edge?.close(), origin?.close()]);
});

const times = (text: string, what: string): number => text.split(what).length - 1;

test('five hundred simultaneous first requests cause one pull, and all are answered', async () => {
  const offer = await whepOffer();
  onTestFinished(offer.close);
  const whep = `http://127.0.0.1:${edge.ports.http}/app/live?direction=whep`;
  const headers = { 'content-type': 'application/sdp' };
  const asked = [
    ...Array.from({ length: PLAYLISTS }, async () => (await fetch(edge.http('live', 'llhls.m3u8'))).status),
    ...Array.from({ length: OFFERS }, async () => (await fetch(whep, { method: 'POST', headers, body: offer.sdp })).status),
  ];
  const statuses = await Promise.all(asked);
  expect(new Set(statuses.slice(0, PLAYLISTS))).toEqual(new Set([200]));
  expect(new Set(statuses.slice(PLAYLISTS))).toEqual(new Set([201]));
  expect(times(edge.log, 'pulling from ovt://')).toBe(1);
  expect(times(origin.log, 'OVT edge plays')).toBe(1);
  const { connections } = await origin.api.get<{ connections: { ovt: number } }>(apiPath.stats('live'));
  expect(connections.ovt).toBe(1);
});

test('a thousand requests for an unknown stream cause at most one look-up per second', async () => {
  const began = performance.now();
  for (let wave = 0; wave < STRANGERS; wave += AT_ONCE) {
    const asked = Array.from({ length: AT_ONCE }, async () => (await fetch(edge.http('nowhere', 'llhls.m3u8'))).status);
    expect(new Set(await Promise.all(asked))).toEqual(new Set([404]));
  }
  // Log lines are written after the answers.
  await until('a line of the log', () => edge.log.includes('nowhere'));
  const lookUps = times(edge.log, "nowhere' could not be pulled");
  // A failed lookup is not repeated within a second.
  expect(lookUps).toBeLessThanOrEqual(1 + (performance.now() - began) / 1000);
  expect(lookUps).toBeGreaterThan(0);
});
