/** TLS from publisher to viewer, with a certificate that comes through the API and is replaced while everything runs. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect as connectHttp2 } from 'node:http2';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type TLSSocket, connect as tlsConnect } from 'node:tls';
import { expect, onTestFinished, test } from 'vitest';
import type { AmfObject } from '../../src/wire/rtmp/amf.ts';
import { RtmpPublisher } from '../fakes/rtmp-publisher.ts';
import { selfSigned } from '../fakes/self-signed.ts';
import { until } from '../harness/poll.ts';
import { freePorts } from '../harness/ports.ts';
import { publish } from '../harness/publisher.ts';
import { startServer, type TestServer } from '../harness/server.ts';

const HOST = 'localhost';
const APPLICATION = {
  name: 'app',
  type: 'live',
  publishers: { llhls: { segmentDuration: 1, chunkDuration: 0.2 } },
  outputProfiles: {
    outputProfile: [
      {
        name: 'pass',
        outputStreamName: '${OriginStreamName}',
        encodes: { videos: [{ name: 'v', bypass: true }], audios: [{ name: 'a', bypass: true }] },
      },
    ],
  },
};

/** Fingerprint of the certificate at `port`; null if nothing listens. */
function fingerprint(port: number): Promise<string | null> {
  return new Promise((resolve) => {
    const socket: TLSSocket = tlsConnect({ port, host: '127.0.0.1', servername: HOST, rejectUnauthorized: false });
    socket.once('secureConnect', () => {
      resolve(socket.getPeerCertificate().fingerprint256);
      socket.destroy();
    });
    socket.once('error', () => resolve(null));
  });
}

/** GET over HTTP/2; the text, or null for any other status than 200. */
async function get(port: number, target: string): Promise<string | null> {
  const session = connectHttp2(`https://${HOST}:${port}`, { rejectUnauthorized: false });
  try {
    const request = session.request({ ':path': target });
    const status = new Promise<number>((resolve, reject) => {
      session.once('error', reject);
      request.once('error', reject);
      request.once('response', (headers) => resolve(Number(headers[':status'])));
    });
    if ((await status) !== 200) return null;
    let text = '';
    for await (const chunk of request.setEncoding('utf8')) text += String(chunk);
    return text;
  } finally {
    session.close();
  }
}

function writeCertificate(server: TestServer): { certPath: string; keyPath: string } {
  const { cert, key } = selfSigned(HOST);
  const [certPath, keyPath] = ['cert.pem', 'key.pem'].map((name) => path.join(server.folder, name)) as [string, string];
  writeFileSync(certPath, cert);
  writeFileSync(keyPath, key);
  return { certPath, keyPath };
}

test('a stream is published over RTMPS and played over HTTP/2 with a certificate made through the API', async () => {
  const [rtmp = 0, http = 0] = await freePorts(2);
  const server = await startServer({ tls: { rtmp, http } });
  onTestFinished(() => server.close());
  expect([await fingerprint(rtmp), await fingerprint(http)]).toEqual([null, null]);
  expect(server.log).toContain(`RTMPS port ${rtmp} stays closed until a virtual host has a certificate`);

  await server.api.create('/v1/vhosts', [{ name: 'made', host: { names: [HOST], tls: writeCertificate(server) } }]);
  await server.api.create('/v1/vhosts/made/apps', [APPLICATION]);
  const first = await until('both TLS ports', async () => {
    const [one, other] = [await fingerprint(rtmp), await fingerprint(http)];
    return one !== null && one === other ? one : null;
  });

  const encoder = publish({ url: `rtmps://${HOST}:${rtmp}/app/live`, width: 320, height: 180, videoKbps: 300 });
  onTestFinished(async () => {
    await encoder.kill();
  });
  const master = await until('the playlist', () => get(http, '/app/live/llhls.m3u8'));
  const chunklist = /^\/app\/live\/chunklist_0_video\S+/m.exec(master)?.[0] ?? '';
  expect(await get(http, chunklist)).toContain('#EXT-X-PART:');

  writeCertificate(server);
  await server.api.create('/v1/vhosts/made:reloadCertificate', undefined);
  const second = await until('the new certificate', async () => {
    const now = await fingerprint(rtmp);
    return now !== null && now !== first ? now : null;
  });
  await expect.poll(() => fingerprint(http)).toBe(second);
  const sent = await encoder.sent(30);
  expect(sent.frames).toBeGreaterThan(30);

  writeFileSync(path.join(server.folder, 'cert.pem'), 'not a certificate');
  expect((await server.api.call('POST', '/v1/vhosts/made:reloadCertificate')).status).toBe(500);
  expect([await fingerprint(rtmp), await fingerprint(http)]).toEqual([second, second]);
});

/** Protocol chosen at `port` for a client that supports both. */
function agreedProtocol(port: number): Promise<string | false | null> {
  return new Promise((resolve, reject) => {
    const target = { port, host: '127.0.0.1', servername: HOST, rejectUnauthorized: false };
    const socket = tlsConnect({ ...target, ALPNProtocols: ['h2', 'http/1.1'] });
    socket.once('secureConnect', () => {
      resolve(socket.alpnProtocol);
      socket.destroy();
    });
    socket.once('error', reject);
  });
}

test.each([
  [true, 'h2'],
  [false, 'http/1.1'],
])('Modules/HTTP2 %s and Modules/ERTMP apply to all ports: %s', async (enable, protocol) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'millrace-modules-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const { cert, key } = selfSigned(HOST);
  for (const [name, text] of Object.entries({ cert, key })) writeFileSync(path.join(folder, `${name}.pem`), text);
  const element = `<TLS><CertPath>${folder}/cert.pem</CertPath><KeyPath>${folder}/key.pem</KeyPath></TLS>`;
  const [rtmp = 0, http = 0, api = 0] = await freePorts(3);
  const head = `<Modules>${['HTTP2', 'ERTMP'].map((module) => `<${module}><Enable>${enable}</Enable></${module}>`).join('')}</Modules>`;
  const server = await startServer({ head, tls: { rtmp, http, api, host: element, apiHost: element } });
  onTestFinished(() => server.close());
  expect([await agreedProtocol(http), await agreedProtocol(api)]).toEqual([protocol, protocol]);
  const publisher = await RtmpPublisher.open(server.ports.rtmp);
  onTestFinished(() => publisher.close());
  publisher.connect({ tcUrl: 'rtmp://media.example/app', fourCcList: ['*'] });
  const { args } = await publisher.command('_result');
  expect((args[0] as AmfObject).get('fourCcList') !== undefined).toBe(enable);
});
