/** The web console on the API port: the files that every client gets, and the files that are not served. */
import { createHash } from 'node:crypto';
import { readdirSync } from 'node:fs';

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ApiHarness, startApi } from './harness.ts';

const LISTENERS = {
  providers: { rtmp: { port: 1935 }, srt: [9999], webrtc: { port: 3333, tlsPort: 3334 } },
  publishers: { llhls: { port: 3333, tlsPort: 3334 }, webrtc: { port: 3333 } },
};
const OPEN = { Authorization: null };
const HTML = { ...OPEN, Accept: 'text/html,application/xhtml+xml,*/*;q=0.8' };

let api: ApiHarness;
beforeAll(async () => {
  api = await startApi({ listeners: LISTENERS });
});
afterAll(() => api.close());

function policyOf(headers: ReadonlyMap<string, string>): Map<string, string[]> {
  const directives = (headers.get('content-security-policy') ?? '').split('; ').map((directive) => directive.split(' '));
  return new Map(directives.map(([name = '', ...values]) => [name, values]));
}

describe('the console', () => {
  test('is served without a token, below its own path', async () => {
    const { status, headers } = await api.send({ path: '/console', headers: OPEN });
    expect([status, headers.get('location')]).toEqual([308, 'console/']);
    const page = await api.send({ path: '/console/', headers: OPEN });
    expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
    expect(page.body).toContain('<div id="console">');
    expect(page.headers.has('www-authenticate')).toBe(false);
  });

  test('runs only its own code, connects only to this host, and cannot be framed', async () => {
    const { headers, body } = await api.send({ path: '/console/', headers: { ...OPEN, Host: 'media.example:8081' } });
    const policy = policyOf(headers);
    const inline = [...body.matchAll(/<script type="importmap">(.*?)<\/script>/gs)].map(([, text = '']) => text);
    const hash = createHash('sha256').update(inline.join('')).digest('base64');
    expect([inline.length, policy.get('script-src'), policy.get('style-src')?.filter((source) => !source.startsWith("'sha256-"))]).toEqual([
      1,
      ["'self'", `'sha256-${hash}'`],
      ["'self'"],
    ]);
    expect(policy.get('connect-src')).toEqual([
      "'self'",
      ...['http://media.example:3333', 'ws://media.example:3333', 'http://media.example:1935', 'ws://media.example:1935'],
      ...['https://media.example:3334', 'wss://media.example:3334'],
    ]);
    for (const name of ['default-src', 'base-uri', 'form-action', 'frame-ancestors']) expect(policy.get(name)).toEqual(["'none'"]);
    expect(Object.fromEntries(headers)).toMatchObject({
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
      'referrer-policy': 'no-referrer',
    });
    expect(body.match(/(?:src|href)="(?!\.\/)[^"]*"/)).toBeNull();
  });

  test('an invalid host name is not copied into a header', async () => {
    const { headers } = await api.send({ path: '/console/', headers: { ...OPEN, Host: 'x; script-src *' } });
    expect(policyOf(headers).get('connect-src')?.[1]).toBe('http://*:3333');
    expect(policyOf(headers).get('script-src')?.[0]).toBe("'self'");
  });

  test('has its modules without types, and the packages that they import', async () => {
    const page = await api.send({ path: '/console/', headers: OPEN });
    const { imports } = JSON.parse(/importmap">(.*?)<\/script>/.exec(page.body)?.[1] ?? '') as { imports: Record<string, string> };
    const modulesOf = (folder: string): string[] =>
      readdirSync(new URL(`../../src/${folder}`, import.meta.url)).filter((name) => name.endsWith('.ts') && !/\.(test|d)\.ts$/.test(name));
    // The typed client is below the page, as in the import map; modules with types only are not served.
    const client = modulesOf('client/').filter((name) => name !== 'openapi-types.ts' && name !== 'call-types.ts');
    const own = [...modulesOf('console/'), ...client.map((name) => `client/${name}`)];
    expect(own).toEqual(expect.arrayContaining(['main.ts', 'client/client.ts']));
    expect(imports['../client/']).toBe('./client/');
    const files = Object.values(imports).filter((path) => !path.endsWith('/'));
    for (const name of [...own, ...files.map((path) => path.slice(2))]) {
      const { status, headers, body } = await api.send({ path: `/console/${name}`, headers: OPEN });
      expect([name, status, headers.get('content-type')]).toEqual([name, 200, 'text/javascript; charset=utf-8']);
      // Its imports are served as well.
      if (!own.includes(name)) continue;
      expect(body).not.toMatch(/^(?:export )?(?:interface|type) /m);
      for (const [, module = ''] of body.matchAll(/\bfrom '([^']+)'|^import '([^']+)'/gm)) {
        const place = new URL(module.replace(/^\.\.\/client\//, './client/'), `http://x/${name}`).pathname.slice(1);
        expect([name, module, module.startsWith('.') ? own.includes(place) : module in imports]).toEqual([name, module, true]);
      }
    }
  });

  test.each([
    '/console/nothing.ts',
    '/console/../package.json',
    '/console/../../../etc/passwd',
    '/console/..%2f..%2fpackage.json',
    '/console//etc/passwd',
    '/console/tsconfig.json',
    '/console/history.test.ts',
    '/console/preact/package.json',
    '/console/__proto__',
  ])('%s is 404', async (path) => {
    const { status, body, headers } = await api.send({ path, headers: OPEN });
    expect([status, body, headers.get('x-content-type-options')]).toEqual([404, 'The console has no such file.\n', 'nosniff']);
  });

  test('is sent compressed, once', async () => {
    const plain = await api.send({ path: '/console/hls.mjs', headers: OPEN });
    const head = await api.send({ method: 'HEAD', path: '/console/hls.mjs', headers: OPEN });
    expect([head.status, head.body, head.headers.get('content-length')]).toEqual([200, '', plain.headers.get('content-length')]);
    const port = api.server.addresses[0]?.port;
    const raw = await api.raw(`GET /console/console.css HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip\r\nConnection: close\r\n\r\n`);
    expect([port, raw.includes('Content-Encoding: gzip')]).toEqual([expect.any(Number), true]);
    const etag = plain.headers.get('etag') ?? '';
    const again = await api.send({ path: '/console/hls.mjs', headers: { ...OPEN, 'If-None-Match': etag } });
    expect([again.status, again.body, again.headers.get('etag')]).toEqual([304, '', etag]);
  });

  test('answers GET and HEAD only', async () => {
    for (const method of ['POST', 'PUT', 'DELETE', 'PATCH']) {
      expect((await api.send({ method, path: '/console/', headers: OPEN })).status).toBe(401);
    }
  });

  test('obeys the host names of the API', async () => {
    const named = await startApi({ hostNames: ['api.example'] });
    try {
      expect((await named.send({ path: '/console/', headers: { ...OPEN, Host: 'api.example' } })).status).toBe(200);
      const other = await named.send({ path: '/console/', headers: { ...OPEN, Host: 'rebound.example' } });
      expect([other.status, other.body.includes('<html')]).toEqual([403, false]);
    } finally {
      await named.close();
    }
  });
});

describe('the root', () => {
  test('shows an HTML page with a link to the console to a browser', async () => {
    const { status, headers, body } = await api.send({ path: '/', headers: HTML });
    expect([status, headers.get('content-type'), headers.get('x-frame-options')]).toEqual([200, 'text/html; charset=utf-8', 'DENY']);
    expect(body).toContain('<a href="console/">Console</a>');
    expect(policyOf(headers).get('script-src')).toEqual(["'self'"]);
  });

  test('answers a program 401, and 404 without a token', async () => {
    expect((await api.send({ path: '/', headers: { ...OPEN, Accept: '*/*' } })).status).toBe(401);
    expect((await api.send({ path: '/', headers: { Accept: 'text/html' } })).status).toBe(404);
  });
});

test('GET /v1/server lists the media ports, and the virtual hosts of the configuration file', async () => {
  const { status, body } = await api.send({ path: '/v1/server' });
  const { response } = JSON.parse(body) as { response: { readOnlyVirtualHosts: string[] } };
  expect([status, response]).toEqual([200, { ...LISTENERS, draining: false, mayWrite: true, readOnlyVirtualHosts: expect.any(Array) }]);
  expect(response.readOnlyVirtualHosts).toEqual(api.orchestrator.virtualHosts.filter(({ readOnly }) => readOnly).map(({ name }) => name));
  expect((await api.send({ path: '/v1/server', headers: OPEN })).status).toBe(401);
});
