/** Certificates are replaced while clients are connected: through the API, and by programs that replace files. */
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2';
import { Agent, request as requestHttps } from 'node:https';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type ConnectionOptions, type TLSSocket, connect as tlsConnect } from 'node:tls';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { type ClientOptions, WebSocket } from 'ws';
import { RtmpPublisher } from '../fakes/rtmp-publisher.ts';
import { chained } from '../fakes/self-signed.ts';
import { until } from '../harness/poll.ts';
import { freePorts } from '../harness/ports.ts';
import { publish } from '../harness/publisher.ts';
import { startServer, type TestServer } from '../harness/server.ts';

/** Hosts with a certificate each, and the API. */
const HOSTS = { one: 'one.test', two: 'two.test', api: 'api.test' } as const;
type Host = keyof typeof HOSTS;

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'millrace-rotation-'));
  return () => rmSync(folder, { recursive: true, force: true });
});

function paths(host: Host): { certPath: string; keyPath: string; chainCertPath: string } {
  const [certPath, keyPath, chainCertPath] = ['cert', 'privkey', 'chain'].map((name) => path.join(folder, 'live', host, `${name}.pem`));
  return { certPath: certPath ?? '', keyPath: keyPath ?? '', chainCertPath: chainCertPath ?? '' };
}

function element(host: Host): string {
  const { certPath, keyPath, chainCertPath } = paths(host);
  return `<TLS><CertPath>${certPath}</CertPath><KeyPath>${keyPath}</KeyPath><ChainCertPath>${chainCertPath}</ChainCertPath></TLS>`;
}

let lastVersion = 0;

/**
 * Issues a certificate and puts it where certbot would: new files in `archive`, then links to them, one after the other. Returns the root
 * for clients.
 */
function renew(host: Host): string {
  lastVersion += 1;
  const { cert, key, intermediate, root } = chained(HOSTS[host]);
  const [archive, live] = [path.join(folder, 'archive', host), path.join(folder, 'live', host)];
  for (const made of [archive, live]) mkdirSync(made, { recursive: true });
  for (const [name, text] of Object.entries({ cert, privkey: key, chain: intermediate })) {
    const link = path.join(live, `${name}.pem`);
    writeFileSync(path.join(archive, `${name}${lastVersion}.pem`), text);
    rmSync(link, { force: true });
    symlinkSync(path.join('..', '..', 'archive', host, `${name}${lastVersion}.pem`), link);
  }
  return root;
}

/** Handshake with a client that trusts only `root`; returns the code of the failure, or `trusted`. */
function handshake(port: number, servername: string, root: string): Promise<string> {
  return new Promise((resolve) => {
    const socket: TLSSocket = tlsConnect({ port, host: '127.0.0.1', servername, ca: root });
    socket.once('secureConnect', () => {
      resolve('trusted');
      socket.destroy();
    });
    socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
  });
}

/** An open connection that can send a request. */
interface Live {
  readonly name: string;
  closed: boolean;
  ask(): Promise<unknown>;
  close(): void;
}

function overHttp1(port: number, target: string, headers: Record<string, string>): Live {
  const agent = new Agent({ keepAlive: true, maxSockets: 1, rejectUnauthorized: false, servername: HOSTS.one });
  const sockets = new Set<unknown>();
  const live: Live = {
    name: `HTTP/1.1 ${target}`,
    closed: false,
    close: () => agent.destroy(),
    ask: () =>
      new Promise((resolve, reject) => {
        const request = requestHttps(
          { agent, port, host: '127.0.0.1', path: target, headers: { host: HOSTS.one, ...headers } },
          (answer) => {
            sockets.add(request.socket);
            live.closed ||= sockets.size > 1;
            answer.resume().once('end', () => (answer.statusCode === 200 ? resolve(null) : reject(new Error(`${answer.statusCode}`))));
          },
        );
        request.once('error', reject).end();
      }),
  };
  return live;
}

function overHttp2(port: number, target: string, headers: Record<string, string>): Live {
  const session: ClientHttp2Session = connectHttp2(`https://127.0.0.1:${port}`, { servername: HOSTS.one, rejectUnauthorized: false });
  session.on('error', () => undefined);
  const live: Live = {
    name: `HTTP/2 ${target}`,
    closed: false,
    close: () => session.destroy(),
    ask: () =>
      new Promise((resolve, reject) => {
        const request = session.request({ ':path': target, ':authority': HOSTS.one, ...headers });
        request.once('response', ({ ':status': status }) => (status === 200 ? resolve(null) : reject(new Error(`${status}`))));
        request.once('error', reject).resume();
      }),
  };
  session.once('close', () => {
    live.closed = true;
  });
  return live;
}

async function overWebSocket(port: number): Promise<Live> {
  const options: ClientOptions & ConnectionOptions = { servername: HOSTS.one, rejectUnauthorized: false, headers: { host: HOSTS.one } };
  const socket = new WebSocket(`wss://127.0.0.1:${port}/app/live`, options);
  await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject));
  const live: Live = {
    name: 'WebSocket',
    closed: false,
    close: () => socket.terminate(),
    ask: () =>
      new Promise((resolve, reject) => {
        socket.once('pong', resolve);
        socket.ping(undefined, true, (error) => error && reject(error));
      }),
  };
  socket.once('close', () => {
    live.closed = true;
  });
  return live;
}

async function overRtmps(port: number, key: string): Promise<Live> {
  const publisher = await RtmpPublisher.publish(port, { tcUrl: `rtmps://${HOSTS.one}:${port}/app`, key, serverName: HOSTS.one });
  let asked = 3;
  const live: Live = {
    name: `RTMPS ${key}`,
    closed: false,
    close: () => publisher.close(),
    ask: () => {
      asked += 1;
      const transaction = asked;
      publisher.call('createStream', transaction, null);
      return publisher.until(() => publisher.commands().some(({ transactionId }) => transactionId === transaction));
    },
  };
  void publisher.closed.then(() => {
    live.closed = true;
  });
  return live;
}

/** A hundred connections, of all kinds. */
async function hundred(server: TestServer, tls: { rtmp: number; http: number; api: number }): Promise<Live[]> {
  const authorization = { authorization: server.api.authorization };
  const times = <T>(count: number, make: (n: number) => T): T[] => Array.from({ length: count }, (_, n) => make(n));
  const all = [
    ...times(20, () => overHttp1(tls.http, '/app/live/llhls.m3u8', {})),
    ...times(20, () => overHttp2(tls.http, '/app/live/llhls.m3u8', {})),
    ...times(15, () => overHttp1(tls.api, '/v1/vhosts', authorization)),
    ...times(15, () => overHttp2(tls.api, '/v1/vhosts', authorization)),
    ...(await Promise.all(times(20, () => overWebSocket(tls.http)))),
    ...(await Promise.all(times(10, (n) => overRtmps(tls.rtmp, `silent-${n}`)))),
  ];
  onTestFinished(() => {
    for (const live of all) live.close();
  });
  return all;
}

/** Sends a request on all connections; returns those that do not answer, or had to reconnect. */
async function lost(all: readonly Live[]): Promise<string[]> {
  const answers = await Promise.allSettled(all.map((live) => live.ask()));
  return all.flatMap((live, n) => (live.closed || answers[n]?.status !== 'fulfilled' ? [live.name] : []));
}

test('certificates are replaced during a hundred connections, and no connection is lost', async () => {
  const [rtmp = 0, http = 0, api = 0] = await freePorts(3);
  const tls = { rtmp, http, api };
  const roots = { one: renew('one'), two: renew('two'), api: renew('api') };
  const server = await startServer({
    hostNames: [HOSTS.one, '127.0.0.1'],
    segmentDuration: 1,
    webrtc: {},
    tls: { ...tls, host: element('one'), apiHost: element('api') },
  });
  onTestFinished(() => server.close());
  await server.api.create('/v1/vhosts', [{ name: 'two', host: { names: ['*.two.test', HOSTS.two], tls: paths('two') } }]);

  /** Results of handshakes at each port, for clients that trust only `trust`. */
  const met = async (trust: typeof roots): Promise<string[]> => {
    const answers: string[] = [];
    for (const port of [rtmp, http]) answers.push(await handshake(port, HOSTS.one, trust.one), await handshake(port, HOSTS.two, trust.two));
    return [...answers, await handshake(api, HOSTS.api, trust.api)];
  };
  const EVERYBODY = Array.from({ length: 5 }, () => 'trusted');
  await until('the second host', async () => (await handshake(rtmp, HOSTS.two, roots.two)) === 'trusted');
  expect(await met(roots)).toEqual(EVERYBODY);
  // The server name selects the certificate.
  expect(await handshake(http, HOSTS.two, roots.one)).not.toBe('trusted');
  expect(await handshake(http, 'sub.two.test', roots.two)).toBe('ERR_TLS_CERT_ALTNAME_INVALID');

  const encoder = publish({ url: `rtmps://127.0.0.1:${rtmp}/app/live`, width: 320, height: 180, videoKbps: 300 });
  onTestFinished(async () => {
    await encoder.kill();
  });
  const probe = overHttp1(http, '/app/live/llhls.m3u8', {});
  onTestFinished(() => probe.close());
  await until('the playlist', () => probe.ask().then(() => true));
  const all = await hundred(server, tls);
  expect(all).toHaveLength(100);
  expect(await lost(all)).toEqual([]);

  const POSTS = ['/v1/vhosts/two:reloadCertificate', '/v1/vhosts:reloadAllCertificates', '/v1/managers/api:reloadCertificate'] as const;
  const [reloadTwo, reloadAll, reloadApi] = POSTS;
  const reload = async (target: string): Promise<unknown> => (await server.api.call('POST', target)).status;

  // Through the API, one after the other; a certificate is in use once the answer has come.
  roots.two = renew('two');
  expect(await reload(reloadTwo)).toBe(200);
  expect(await met(roots)).toEqual(EVERYBODY);
  roots.one = renew('one');
  roots.two = renew('two');
  expect(await reload(reloadAll)).toBe(200);
  expect(await met(roots)).toEqual(EVERYBODY);
  roots.api = renew('api');
  expect(await reload(reloadApi)).toBe(200);
  expect(await met(roots)).toEqual(EVERYBODY);
  expect(await lost(all)).toEqual([]);

  // Unusable files.
  const { certPath } = paths('two');
  rmSync(certPath);
  writeFileSync(certPath, 'not a certificate');
  rmSync(paths('api').chainCertPath);
  expect(await Promise.all(POSTS.map((target) => server.api.call('POST', target)))).toMatchObject([
    { status: 500 },
    { status: 500 },
    { status: 500, body: { message: '[HTTP] Failed to create a certificate for API Server (500)' } },
  ]);
  const asked = await fetch(server.api.base + reloadTwo, { method: 'POST', headers: { authorization: server.api.authorization } });
  expect(asked.headers.get('millrace-reason')).toContain(
    `virtual host 'two': the certificate or key cannot be used: there is no certificate in ${certPath}`,
  );
  expect(await met(roots)).toEqual(EVERYBODY);
  expect(server.log).toContain(`there is no certificate in ${certPath}`);
  expect(server.log).toContain(`the file cannot be read: ENOENT: no such file or directory, open '${paths('api').chainCertPath}'`);

  // Without a request: the renewal only replaced files.
  for (const host of ['one', 'two', 'api'] as const) roots[host] = renew(host);
  await until('the renewed certificates', async () => JSON.stringify(await met(roots)) === JSON.stringify(EVERYBODY));
  expect(await lost(all)).toEqual([]);
  const sent = await encoder.sent(30);
  expect(sent.frames).toBeGreaterThan(30);
});
