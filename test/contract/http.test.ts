/** The API as an HTTP server: heads, methods, bodies, connections, other origins, host names, TLS. */
import { createHash } from 'node:crypto';
import { connect, Server } from 'node:net';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { ALL_METHODS, CrossDomainPolicy } from '../../src/access/cross-domains.ts';
import { RecordingLogger } from '../fakes/recording-logger.ts';
import {
  type ApiHarness,
  AUTHORIZATION,
  anyOrigin,
  exchange,
  NO_CONTROLLER,
  parseAnswer,
  startApi,
  TLS_FILES,
  TOKEN,
  VERSION,
} from './harness.ts';

const UNAUTHORIZED = '{"message":"[HTTP] Authorization header is required to call API (401)","statusCode":401}';
const MIB = 1_048_576;

let api: ApiHarness;
beforeAll(async () => {
  api = await startApi();
});
afterAll(() => api.close());

describe('heads', () => {
  test('an answer has the headers of this API and no others', async () => {
    const { status, reason, headers, body } = await api.send({ path: '/v1/version' });
    expect([status, reason, body]).toEqual([200, 'OK', VERSION]);
    expect(Object.fromEntries([...headers].filter(([name]) => name !== 'date'))).toEqual({
      'access-control-allow-credentials': 'true',
      'access-control-allow-methods': ALL_METHODS,
      'access-control-allow-origin': '*',
      connection: 'close',
      'content-length': String(VERSION.length),
      'content-type': 'application/json;charset=UTF-8',
      server: 'Millrace',
      vary: 'Origin',
    });
  });

  test('reason phrases match the envelope', async () => {
    const body = JSON.stringify([{ name: 'r', host: { names: ['r'] } }, {}]);
    const { status, reason } = await api.send({ method: 'POST', path: '/v1/vhosts', body });
    expect([status, reason]).toEqual([207, 'Multi Status']);
  });

  test('HEAD answers as GET does, without the body', async () => {
    const head = await api.send({ method: 'HEAD', path: '/v1/version' });
    expect([head.status, head.headers.get('content-length'), head.body]).toEqual([200, String(VERSION.length), '']);
    expect((await api.send({ method: 'HEAD', path: '/v1/nope' })).status).toBe(404);
  });

  test('OPTIONS needs neither authentication nor an existing path', async () => {
    const answer = await api.send({ method: 'OPTIONS', path: '/nowhere', headers: { Authorization: null } });
    expect([answer.status, answer.headers.get('content-type'), answer.headers.has('content-length'), answer.body]).toEqual([
      204,
      'text/html',
      false,
      '',
    ]);
  });

  test('a request target that is no path is answered in the envelope', async () => {
    const { status, body } = await api.send({ path: '*' });
    expect([status, body]).toEqual([
      400,
      '{"message":"[HTTP] Malformed request: the request target is not a path (400)","statusCode":400}',
    ]);
  });
});

describe('authentication', () => {
  test.each(['/v1/version', '/v1/nope', '/', '/v2/internals/codecs', '/v1/vhosts/default/apps/app:startRecord'])(
    '%s needs it',
    async (path) => {
      for (const method of ['GET', 'POST', 'PUT', 'DELETE', 'PATCH']) {
        const answer = await api.send({ method, path, headers: { Authorization: null } });
        expect([answer.status, answer.body, answer.headers.get('www-authenticate')]).toEqual([401, UNAUTHORIZED, 'Basic realm="Millrace"']);
      }
    },
  );

  test('is checked before the body', async () => {
    const answer = await api.send({ method: 'POST', path: '/v1/vhosts', body: '{bad', headers: { Authorization: 'Basic eA==' } });
    expect([answer.status, answer.body]).toEqual([401, '{"message":"[HTTP] Invalid credential (401)","statusCode":401}']);
  });

  test('a request without it does not make the server read its body', async () => {
    const answer = await api.raw(`POST /v1/vhosts HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: ${MIB}\r\n\r\n`);
    expect(parseAnswer(answer, false).status).toBe(401);
  });
});

test('a failed certificate reload gives the reason in a header, in addition to the text of the contract', async () => {
  const broken = await startApi();
  const reload = (headers = {}) => broken.send({ method: 'POST', path: '/v1/vhosts:reloadAllCertificates', headers });
  try {
    expect((await reload()).headers.has('millrace-reason')).toBe(false);
    broken.certificates.broken = true;
    const { status, headers } = await reload();
    expect([status, headers.get('millrace-reason')]).toEqual([500, 'certificate file cannot be read, not even by caf']);
    // Names of files are only for tokens that may reload certificates.
    const stranger = await reload({ Authorization: null });
    expect([stranger.status, stranger.headers.has('millrace-reason')]).toEqual([401, false]);
  } finally {
    await broken.close();
  }
});

describe('access tokens', () => {
  const READER = 'a-token-that-reads';
  const basic = (credential: string): Record<string, string> => ({
    Authorization: `Basic ${Buffer.from(credential).toString('base64')}`,
  });
  let several: ApiHarness;
  beforeAll(async () => {
    const hashed = `sha256:${createHash('sha256').update('a-token-that-writes').digest('hex')}`;
    several = await startApi({
      accessTokens: [
        { name: 'dashboard', value: READER, mayWrite: false },
        { name: 'panel', value: hashed, mayWrite: true },
      ],
    });
  });
  afterAll(() => several.close());

  test('a read-only token may use GET and HEAD only', async () => {
    const headers = { Authorization: `Bearer ${READER}` };
    expect((await several.send({ path: '/v1/version', headers })).body).toBe(VERSION);
    expect((await several.send({ method: 'HEAD', path: '/v1/version', headers })).status).toBe(200);
    expect((await several.send({ path: '/v1/nope', headers })).status).toBe(404);
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
      for (const path of ['/v1/vhosts', '/v1/vhosts/default', '/v1/vhosts/default/apps/app:startRecord', '/v1/nope']) {
        const { status, body } = await several.send({ method, path, headers, body: '[{ "name": "made", "host": { "names": ["m"] } }]' });
        expect([status, body]).toEqual([
          403,
          `{"message":"[HTTP] The access token [dashboard] may only read: ${method} is not allowed (403)","statusCode":403}`,
        ]);
      }
    }
    expect([...several.store.documents.keys()]).toEqual([]);
  });

  test('a hashed token that may write works like the first token, and the log names the token', async () => {
    const body = JSON.stringify([{ name: 'by-panel', host: { names: ['p'] } }]);
    expect((await several.send({ method: 'POST', path: '/v1/vhosts', headers: basic('x:a-token-that-writes'), body })).status).toBe(200);
    expect((await several.send({ method: 'DELETE', path: '/v1/vhosts/by-panel', headers: basic(`${TOKEN}:`) })).status).toBe(200);
    const answered = several.logger.matching('API request answered').filter(({ fields }) => fields['status'] === 200);
    expect(answered.map(({ fields }) => [fields['method'], fields['token']])).toEqual([
      ['POST', 'panel'],
      ['DELETE', 'AccessToken'],
    ]);
  });

  test('a wrong token is answered with a Basic challenge, and logged with its address but without its value', async () => {
    for (const Authorization of ['Bearer guess-1', 'Basic guess-2', 'guess-3']) {
      const { status, headers } = await several.send({ path: '/v1/version', headers: { Authorization } });
      expect([status, headers.get('www-authenticate')]).toEqual([401, 'Basic realm="Millrace"']);
    }
    await several.send({ path: '/v1/version', headers: { Authorization: null } });
    const lines = several.logger.matching('API request with a wrong access token');
    expect(lines.map(({ level, fields }) => [level, fields])).toEqual([
      ['warn', { peer: '127.0.0.1', detail: 'Invalid credential', count: 1 }],
    ]);
    expect(JSON.stringify(several.logger.lines)).not.toMatch(/guess|a-token-that/);
    await several.server.close();
    expect(several.logger.matching('API request with a wrong access token').map(({ fields }) => fields['count'])).toEqual([1, 2]);
  });
});

describe('health', () => {
  test('is reported without authentication', async () => {
    const { status, body } = await api.send({ path: '/health', headers: { Authorization: null } });
    expect([status, body]).toEqual([200, '{"status":"ok"}']);
    expect((await api.send({ method: 'HEAD', path: '/health', headers: { Authorization: null } })).status).toBe(200);
  });

  test('lists each condition, and reports a starting or stopping server', async () => {
    const ask = async () => {
      const { status, body } = await api.send({ path: '/health', headers: { Authorization: null } });
      return [status, JSON.parse(body)];
    };
    const { conditions } = api.health;
    try {
      for (let index = 0; index < 30; index += 1) conditions.raise(String(index), `reason ${index}`);
      const reasons = Array.from({ length: 20 }, (_, index) => `reason ${index}`);
      expect(await ask()).toEqual([200, { status: 'degraded', reasons }]);
      api.health.phase = 'starting';
      expect(await ask()).toEqual([503, { status: 'starting' }]);
      expect((await api.send({ path: '/v1/version' })).status).toBe(200);
      api.health.phase = 'stopping';
      expect(await ask()).toEqual([503, { status: 'stopping' }]);
      const refused = await api.send({ method: 'POST', path: '/v1/vhosts', body: '[]' });
      expect([refused.status, refused.body]).toEqual([503, '{"message":"[HTTP] The server is stopping (503)","statusCode":503}']);
    } finally {
      api.health.phase = 'running';
      for (let index = 0; index < 30; index += 1) conditions.clear(String(index));
    }
    expect(await ask()).toEqual([200, { status: 'ok' }]);
  });

  test('is only read', async () => {
    expect((await api.send({ method: 'POST', path: '/health', headers: { Authorization: null } })).status).toBe(401);
    expect((await api.send({ method: 'POST', path: '/health' })).body).toBe(NO_CONTROLLER);
  });
});

describe('methods', () => {
  test('any path gets an envelope', async () => {
    const part = fc.constantFrom(
      'v1',
      'v2',
      'vhosts',
      'default',
      'apps',
      'app',
      'streams',
      'stats',
      'current',
      '',
      ':',
      '%',
      '%ff',
      '%ED%98%B8',
      '..',
      '?',
      '#',
      'a:b',
    );
    const path = fc.array(part, { maxLength: 10 }).map((parts) => `/${parts.join('/')}`);
    await fc.assert(
      fc.asyncProperty(fc.constantFrom('GET', 'POST', 'PATCH', 'DELETE'), path, async (method, target) => {
        const answer = await api.send({ method, path: target });
        expect(JSON.parse(answer.body).statusCode).toBe(answer.status);
        expect(answer.status).not.toBe(500);
      }),
      { numRuns: 150 },
    );
  });

  test.each(['PUT', 'TRACE', 'PROPFIND', 'CONNECT'])('%s is answered like a missing path', async (method) => {
    const { status, body } = await api.send({ method, path: '/v1/vhosts' });
    expect([status, body]).toEqual([404, NO_CONTROLLER]);
  });

  test('CONNECT needs authentication like other methods', async () => {
    expect((await api.send({ method: 'CONNECT', path: '/v1/vhosts', headers: { Authorization: null } })).status).toBe(401);
  });

  test.each(['FOO /v1/version HTTP/1.1\r\n\r\n', 'get /v1/version HTTP/1.1\r\n\r\n', 'hello world\r\n\r\n'])(
    '%j gets an envelope',
    async (bytes) => {
      const answer = parseAnswer(await api.raw(bytes), false);
      expect([answer.status, JSON.parse(answer.body)]).toEqual([
        501,
        { message: '[HTTP] Not implemented: unknown method (501)', statusCode: 501 },
      ]);
    },
  );

  test.each([
    ['GET /v1/version HTTP/1.1\r\nContent-Length: x\r\n\r\n', 400],
    [`GET /v1/version HTTP/1.1\r\nA: ${'a'.repeat(70_000)}\r\n\r\n`, 431],
    ['GET /v1/vhosts/\u00ed HTTP/1.1\r\n\r\n', 400],
  ])('a broken head gets an envelope', async (bytes, status) => {
    const answer = parseAnswer(await api.raw(bytes), false);
    expect([answer.status, JSON.parse(answer.body).statusCode]).toEqual([status, status]);
  });
});

describe('connections', () => {
  test('stay open, and requests may be sent at once', async () => {
    const get = `GET /v1/version HTTP/1.1\r\nHost: x\r\nAuthorization: ${AUTHORIZATION}\r\n`;
    const received = await api.raw(`${get}\r\n${get}Connection: close\r\n\r\n`);
    expect(received.split(VERSION)).toHaveLength(3);
  });

  test('HTTP/1.0 without a host is served and closed', async () => {
    expect((await api.send({ path: '/v1/version', version: '1.0', headers: { Host: null, Connection: null } })).body).toBe(VERSION);
  });

  test('an unsupported upgrade is ignored', async () => {
    const headers = { Connection: 'Upgrade, HTTP2-Settings, close', Upgrade: 'h2c', 'HTTP2-Settings': 'AAMAAABkAAQAAP__' };
    expect((await api.send({ path: '/v1/version', headers })).body).toBe(VERSION);
  });

  test('end with the server in any state', async () => {
    const other = await startApi({ timeoutScale: 1000 });
    const opened = ['', 'GET /v1/version HTTP', 'CONNECT /v1/vhosts HTTP/1.1\r\n\r\n'].map((bytes) => {
      // The client keeps its side open after the server has closed its own.
      const socket = connect({ port: other.port, host: '127.0.0.1', allowHalfOpen: true }).resume();
      socket.on('error', () => undefined);
      socket.write(bytes);
      return { socket, closed: new Promise((resolve) => socket.once('close', resolve)) };
    });
    const refused = opened.at(-1)?.socket;
    await new Promise((resolve) => refused?.once('end', resolve));
    await other.close();
    for (const { socket, closed } of opened) {
      socket.end();
      await closed;
    }
  });

  test('are accepted at no port when one of the ports cannot be opened', async () => {
    const logger = new RecordingLogger();
    const tls = { port: api.port, load: async () => TLS_FILES };
    await expect(startApi({ logger, tls })).rejects.toThrow('EADDRINUSE');
    const [line] = logger.lines.filter(({ message }) => message === 'API listening');
    await expect(exchange(Number(line?.fields?.['port']), 'x')).rejects.toThrow('ECONNREFUSED');
  });
});

describe('bodies', () => {
  const post = (body: string | Buffer, headers: Record<string, string | null> = {}) =>
    api.send({ method: 'POST', path: '/v1/vhosts', body, headers });

  test('may be chunked', async () => {
    const chunked = '2\r\n[]\r\n0\r\n\r\n';
    expect((await post(chunked, { 'Transfer-Encoding': 'chunked', 'Content-Length': null })).body).toBe('[]');
  });

  test('may wait for 100 Continue', async () => {
    expect((await post('[]', { Expect: '100-continue' })).body).toBe('[]');
  });

  test('are read despite an unknown Expect header', async () => {
    expect((await post('[]', { Expect: 'a miracle' })).body).toBe('[]');
  });

  test('are read as JSON despite another Content-Type', async () => {
    expect((await post('[]', { 'Content-Type': 'image/png; =' })).body).toBe('[]');
  });

  test('may be as long as 1 MiB', async () => {
    expect((await post(`[]${' '.repeat(MIB - 2)}`)).body).toBe('[]');
  });

  const tooLarge = '{"message":"[HTTP] Request body must not exceed 1048576 bytes (413)","statusCode":413}';

  test('must not be longer, whether announced or not', async () => {
    const body = `[]${' '.repeat(MIB - 1)}`;
    const announced = await post(body);
    expect([announced.status, announced.reason, announced.body]).toEqual([413, 'Content Too Large', tooLarge]);
    const chunked = `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;
    expect((await post(chunked, { 'Transfer-Encoding': 'chunked', 'Content-Length': null })).body).toBe(tooLarge);
  });

  test('nested too deeply are refused with the position', async () => {
    const { status, body } = await post('['.repeat(MIB));
    expect(status).toBe(400);
    expect(JSON.parse(body).message).toMatch(/^\[HTTP\] \[JSON\] \* Line 1, Column 1002\n/);
  });

  test('that are not UTF-8 are read with replacement characters', async () => {
    const body = Buffer.concat([Buffer.from('[{"name":"'), Buffer.from([0xff, 0xfe]), Buffer.from('","host":{"names":[]}}]')]);
    expect(JSON.parse((await post(body)).body)[0].response.name).toBe('\ufffd\ufffd');
  });

  test('that break off do not disturb the server', async () => {
    await new Promise<void>((resolve) => {
      const socket = connect({ port: api.port, host: '127.0.0.1' }, () => {
        const head = `POST /v1/vhosts HTTP/1.1\r\nHost: x\r\nAuthorization: ${AUTHORIZATION}\r\nContent-Length: 100\r\n\r\n[`;
        socket.write(head, () => socket.resetAndDestroy());
      });
      socket.once('close', () => resolve());
    });
    expect((await api.send({ path: '/v1/version' })).body).toBe(VERSION);
    expect(api.logger.lines.filter(({ level }) => level === 'error')).toEqual([]);
  });

  test('of any bytes get an envelope', async () => {
    const tokens = fc.constantFrom('[', ']', '{', '}', '"name"', ':', ',', '1', '"', '\\', 'null', '//', '/*', '\u0000', '\ud7ff');
    const bodies = fc.oneof(
      fc.uint8Array({ maxLength: 64 }).map((bytes) => Buffer.from(bytes)),
      fc.array(tokens, { maxLength: 20 }).map((parts) => Buffer.from(parts.join(''))),
    );
    const paths = fc.constantFrom(
      '/v1/vhosts',
      '/v1/vhosts/default/apps',
      '/v1/vhosts/default/apps/app/streams',
      '/v1/vhosts/default/apps/app:startPush',
    );
    await fc.assert(
      fc.asyncProperty(paths, bodies, async (path, body) => {
        const answer = await api.send({ method: 'POST', path, body });
        const json = JSON.parse(answer.body);
        if (!Array.isArray(json)) expect(json).toEqual({ message: expect.any(String), statusCode: answer.status });
        expect(answer.status).not.toBe(500);
      }),
      { numRuns: 150 },
    );
  });
});

describe('other origins', () => {
  test('a preflight request is answered with the request headers that it asked for', async () => {
    const headers = { Origin: 'http://ui.example', 'Access-Control-Request-Headers': 'authorization,content-type', Authorization: null };
    const answer = await api.send({ method: 'OPTIONS', path: '/v1/vhosts', headers });
    expect(answer.headers.get('access-control-allow-headers')).toBe('authorization,content-type');
  });

  test('pages of allowed origins may read the headers of an answer', async () => {
    const own = { urls: ['https://ui.example'], headers: [] };
    const guarded = await startApi({
      crossDomains: new CrossDomainPolicy({ defaults: { urls: [], headers: [] }, own, methods: ALL_METHODS }),
    });
    try {
      await guarded.call('POST', '/v1/vhosts', [{ name: 'v', host: { names: ['v'] }, crossDomains: { urls: ['*'] } }]);
      guarded.certificates.broken = true;
      const exposed = async (method: string, path: string, origin: string): Promise<unknown> =>
        (await guarded.send({ method, path, headers: { Origin: origin } })).headers.get('access-control-expose-headers');
      expect(await exposed('GET', '/v1/vhosts/v', 'https://ui.example')).toBe('Millrace-Ineffective');
      expect(await exposed('POST', '/v1/vhosts/v:reloadCertificate', 'https://ui.example')).toBe('Millrace-Reason');
      expect(await exposed('GET', '/v1/vhosts/v', 'https://other.example')).toBeUndefined();
      expect(await exposed('GET', '/v1/vhosts', 'https://ui.example')).toBeUndefined();
    } finally {
      await guarded.close();
    }
  });

  test('only listed origins are allowed', async () => {
    const own = { urls: ['https://*.example.org'], headers: [] };
    const guarded = await startApi({ crossDomains: new CrossDomainPolicy({ defaults: anyOrigin, own, methods: ALL_METHODS }) });
    try {
      const allowed = await guarded.send({ path: '/v1/version', headers: { Origin: 'https://ui.example.org' } });
      expect(allowed.headers.get('access-control-allow-origin')).toBe('https://ui.example.org');
      const refused = await guarded.send({ path: '/v1/version', headers: { Origin: 'https://example.com' } });
      expect([refused.status, refused.headers.has('access-control-allow-origin'), refused.headers.get('vary')]).toEqual([
        200,
        false,
        'Origin',
      ]);
    } finally {
      await guarded.close();
    }
  });
});

test('addresses of peers are hidden on request, in answers and in the log', async () => {
  const discreet = await startApi({ privacyProtection: true });
  try {
    await discreet.publish('default', 'app', 's');
    const path = '/v1/vhosts/default/apps/app/streams/s';
    const { body } = await discreet.send({ path });
    expect(JSON.parse(body).response.input.sourceUrl).toBe('TCP://xxx.xxx.xxx.xxx:xxx');
    await discreet.send({ method: 'DELETE', path });
    const line = discreet.logger.lines.find(({ message }) => message === 'API request answered');
    expect(line?.fields).toEqual({ method: 'DELETE', target: path, status: 200, peer: 'xxx.xxx.xxx.xxx', token: 'AccessToken' });
  } finally {
    await discreet.close();
  }
});

test('only host names of the list reach the API, but the health check', async () => {
  const guarded = await startApi({ hostNames: ['api.example.org'] });
  try {
    expect((await guarded.send({ path: '/v1/version', headers: { Host: 'api.example.org:8081' } })).status).toBe(200);
    const refused = await guarded.send({ path: '/v1/version', headers: { Host: 'evil.example', Authorization: null } });
    expect([refused.status, refused.body]).toEqual([
      403,
      '{"message":"[HTTP] The host name is not allowed: [evil.example] (403)","statusCode":403}',
    ]);
    expect((await guarded.send({ path: '/health', headers: { Host: 'evil.example' } })).status).toBe(200);
    expect((await guarded.send({ method: 'OPTIONS', path: '/v1/version', headers: { Host: 'evil.example' } })).status).toBe(204);
  } finally {
    await guarded.close();
  }
});

test('an error of the listening socket is logged, and the port stays open', async () => {
  const listen = vi.spyOn(Server.prototype, 'listen');
  const logger = new RecordingLogger();
  const other = await startApi({ logger });
  const [server] = listen.mock.contexts as Server[];
  listen.mockRestore();
  server?.emit('error', new Error('accept ENFILE'));
  expect(logger.lines.find(({ level }) => level === 'error')?.message).toBe('API listener failed');
  expect((await other.send({ path: '/v1/version' })).body).toBe(VERSION);
  await other.close();
});
