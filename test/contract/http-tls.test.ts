/** The API over TLS: HTTP/1.1 and HTTP/2, and the certificate. */
import { connect as connectHttp2 } from 'node:http2';
import { request as requestHttps } from 'node:https';
import { text } from 'node:stream/consumers';
import { connect as connectTls } from 'node:tls';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ApiHarness, AUTHORIZATION, NO_CONTROLLER, startApi, TLS_FILES, VERSION } from './harness.ts';

describe('TLS', () => {
  let loads = 0;
  let broken = false;
  const load = async () => {
    loads += 1;
    if (broken) throw new Error('no such file');
    return TLS_FILES;
  };
  let secure: ApiHarness;
  beforeAll(async () => {
    secure = await startApi({ port: null, tls: { port: 0, load } });
  });
  afterAll(() => secure.close());

  test('is served over HTTP/1.1', async () => {
    const body = await new Promise<string>((resolve, reject) => {
      const headers = { Authorization: AUTHORIZATION };
      const sent = requestHttps({ port: secure.port, path: '/v1/version', ca: TLS_FILES.cert, headers, agent: false }, (answer) =>
        resolve(text(answer)),
      );
      sent.on('error', reject).end();
    });
    expect(body).toBe(VERSION);
  });

  test('is served over HTTP/2, bodies and batches too', async () => {
    const session = connectHttp2(`https://localhost:${secure.port}`, { ca: TLS_FILES.cert });
    try {
      const stream = session.request({ ':method': 'POST', ':path': '/v1/vhosts', authorization: AUTHORIZATION });
      const head = new Promise<{ ':status'?: number }>((resolve) => stream.once('response', resolve));
      stream.end('[{"name":"h2","host":{"names":["h2"]}},{}]');
      expect((await head)[':status']).toBe(207);
      expect(JSON.parse(await text(stream))).toHaveLength(2);
    } finally {
      session.close();
    }
  });

  test('is chosen by ALPN, and not offered when HTTP/2 is off', async () => {
    const old = await startApi({ port: null, tls: { port: 0, load: async () => TLS_FILES, http2: false } });
    const chosen = (port: number, ALPNProtocols: string[]): Promise<string | false | null> =>
      new Promise((resolve) => {
        const socket = connectTls({ port, host: '127.0.0.1', servername: 'localhost', ca: TLS_FILES.cert, ALPNProtocols });
        socket.once('secureConnect', () => resolve(socket.alpnProtocol));
        socket.once('error', () => resolve(null));
        socket.once('secureConnect', () => socket.destroy());
      });
    try {
      expect(await chosen(secure.port, ['h2', 'http/1.1'])).toBe('h2');
      expect(await chosen(secure.port, ['http/1.1'])).toBe('http/1.1');
      expect(await chosen(old.port, ['h2', 'http/1.1'])).toBe('http/1.1');
      expect(await chosen(old.port, ['h2'])).toBe(null);
    } finally {
      await old.close();
    }
  });

  test('CONNECT over HTTP/2 is answered like a missing path', async () => {
    const session = connectHttp2(`https://localhost:${secure.port}`, { ca: TLS_FILES.cert });
    try {
      const stream = session.request({ ':method': 'CONNECT', ':authority': 'x', authorization: AUTHORIZATION });
      expect(await text(stream)).toBe(NO_CONTROLLER);
    } finally {
      session.close();
    }
  });

  test('an unknown HTTP/2 method is answered like a missing path', async () => {
    const session = connectHttp2(`https://localhost:${secure.port}`, { ca: TLS_FILES.cert });
    try {
      expect(await text(session.request({ ':method': 'FOO', authorization: AUTHORIZATION }))).toBe(NO_CONTROLLER);
    } finally {
      session.close();
    }
  });

  test('its certificate can be loaded again, and stays when that fails', async () => {
    const session = connectHttp2(`https://localhost:${secure.port}`, { ca: TLS_FILES.cert });
    const reload = async (): Promise<string> => {
      const stream = session.request({ ':method': 'POST', ':path': '/v1/managers/api:reloadCertificate', authorization: AUTHORIZATION });
      stream.end();
      return text(stream);
    };
    try {
      const before = loads;
      expect(await reload()).toBe('{"message":"OK","statusCode":200}');
      expect(loads).toBe(before + 1);
      broken = true;
      expect(await reload()).toBe('{"message":"[HTTP] Failed to create a certificate for API Server (500)","statusCode":500}');
    } finally {
      broken = false;
      session.close();
    }
  });

  test('is ended with the server', async () => {
    const other = await startApi({ port: null, tls: { port: 0, load } });
    const session = connectHttp2(`https://localhost:${other.port}`, { ca: TLS_FILES.cert });
    session.on('error', () => undefined);
    await new Promise((resolve) => session.once('connect', resolve));
    const ended = new Promise((resolve) => session.once('close', resolve));
    await other.close();
    await other.close();
    await ended;
  });
});
