/** Nodes that relay streams over TLS only. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { selfSigned } from '../fakes/self-signed.ts';
import { apiPath, type StreamInformation } from '../harness/api-client.ts';
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
