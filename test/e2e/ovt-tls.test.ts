/** Nodes that relay streams over TLS only. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { chained, selfSigned } from '../fakes/self-signed.ts';
import { apiPath, type StreamInformation } from '../harness/api-client.ts';
import { LlhlsReader } from '../harness/llhls-reader.ts';
import { until } from '../harness/poll.ts';
import { freePorts } from '../harness/ports.ts';
import { publish } from '../harness/publisher.ts';
import { startServer } from '../harness/server.ts';
import { RedisServer } from '../support/redis-server.ts';

const DEADLINE = { deadlineMs: 40_000 };

test('an edge finds a stream in the map at an origin with TLS, and plays it if it trusts the certificate', async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'millrace-ovts-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const { cert, key } = selfSigned('localhost');
  const [certPath, keyPath] = [path.join(folder, 'cert.pem'), path.join(folder, 'key.pem')];
  writeFileSync(certPath, cert);
  writeFileSync(keyPath, key);
  const redis = await RedisServer.start();
  onTestFinished(async () => await redis.stop());
  const [ovtTlsPort = 0, rtmp = 0, http = 0] = await freePorts(3);
  const store = (own: string): string => `<OriginMapStore>${own}<RedisServer><Host>${redis.address}</Host></RedisServer></OriginMapStore>`;
  const host = `<TLS><CertPath>${certPath}</CertPath><KeyPath>${keyPath}</KeyPath></TLS>`;
  const [origin, edge, stranger] = await Promise.all([
    startServer({
      ...{ ovtTlsPort, hostNames: ['localhost', '*'], tls: { rtmp, http, host }, withoutHls: true, withoutLlhls: true },
      origins: store('<OriginHostName>localhost</OriginHostName>'),
    }),
    startServer({ origins: store(''), ovtCa: certPath, withoutHls: true, segmentDuration: 1 }),
    startServer({ origins: store(''), withoutHls: true, segmentDuration: 1 }),
  ]);
  onTestFinished(async () => void (await Promise.all([origin, edge, stranger].map(async (server) => await server.close()))));
  const encoder = publish({ url: origin.rtmp('live'), width: 320, height: 180, videoKbps: 200 });
  onTestFinished(async () => void (await encoder.stop()));
  const address = `ovts://localhost:${ovtTlsPort}/app/live`;
  await until('the stream in the map', async () => (await redis.value('app/live')) === address, DEADLINE);

  await until('the edge to play', async () => (await fetch(edge.http('live', 'llhls.m3u8'))).status === 200, DEADLINE);
  expect((await edge.api.get<StreamInformation>(apiPath.stream('live'))).input.sourceUrl).toBe(address);
  expect((await fetch(stranger.http('live', 'llhls.m3u8'))).status).toBe(404);
  expect(stranger.log).toMatch(/cannot pull from ovts:[^"]*: self-signed certificate/);
}, 90_000);

test('an edge keeps its stream while the certificate of its origin is replaced, and later edges get the new certificate', async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'millrace-ovts-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = (name: string): string => path.join(folder, name);
  /** Issues a certificate of a new authority for the origin; returns the file with the authority. */
  const issue = (name: string): string => {
    const { cert, key, intermediate, root } = chained('localhost');
    for (const [place, text] of [
      ['cert.pem', cert + intermediate],
      ['key.pem', key],
      [`${name}.pem`, root],
    ] as const)
      writeFileSync(file(place), text);
    return file(`${name}.pem`);
  };
  const before = issue('before');
  const [ovtTlsPort = 0, rtmp = 0, http = 0] = await freePorts(3);
  const host = `<TLS><CertPath>${file('cert.pem')}</CertPath><KeyPath>${file('key.pem')}</KeyPath></TLS>`;
  const origin = await startServer({
    ...{ ovtTlsPort, hostNames: ['localhost', '*'], tls: { rtmp, http, host }, withoutHls: true, withoutLlhls: true },
  });
  onTestFinished(async () => await origin.close());
  const encoder = publish({ url: origin.rtmp('live'), width: 320, height: 180, videoKbps: 200 });
  onTestFinished(async () => void (await encoder.stop()));
  await encoder.sent(30);
  const edgeThatTrusts = async (ovtCa: string) => {
    const pass = `<Pass><Scheme>ovts</Scheme><Urls><Url>localhost:${ovtTlsPort}/</Url></Urls></Pass>`;
    const origins = `<Origins><Origin><Location>/</Location>${pass}</Origin></Origins>`;
    const edge = await startServer({ origins, ovtCa, withoutHls: true, segmentDuration: 1 });
    onTestFinished(async () => await edge.close());
    const status = async (): Promise<number> => (await fetch(edge.http('live', 'llhls.m3u8'))).status;
    return { edge, status, plays: () => until('the stream plays', async () => (await status()) === 200, DEADLINE) };
  };
  const connected = await edgeThatTrusts(before);
  await connected.plays();
  const reader = await LlhlsReader.open([connected.edge.http('live', 'llhls.m3u8')]);
  onTestFinished(async () => await reader.stop());
  await until('reloads', () => reader.reloads >= 4, DEADLINE);

  const after = issue('after');
  await origin.api.call('POST', '/v1/vhosts:reloadAllCertificates');
  const [later, behind] = await Promise.all([edgeThatTrusts(after), edgeThatTrusts(before)]);
  await later.plays();
  expect(await behind.status()).toBe(404);
  expect(behind.edge.log).toMatch(/cannot pull from ovts:[^"]*: .*certificate/);

  const { reloads } = reader;
  await until('the first edge to go on', () => reader.reloads >= reloads + 6, DEADLINE);
  // One connection of the first edge, and one of the later edge.
  expect(origin.log.match(/OVT edge plays/g)).toHaveLength(2);
  await reader.stop();
  expect(reader.faults).toEqual([]);
}, 90_000);
