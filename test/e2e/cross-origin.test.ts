/** Pages of other origins: every form of `CrossDomains`, at the API and at the port of players and WHIP. */
import { writeFileSync } from 'node:fs';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { until } from '../harness/poll.ts';
import { publish } from '../harness/publisher.ts';
import { startServer, type TestServer } from '../harness/server.ts';
import { ACCESS_TOKEN, serverXml } from '../harness/server-xml.ts';

/** Lists of patterns, with allowed and refused origins. */
const LISTS: readonly { readonly urls: readonly string[]; readonly allowed: readonly string[]; readonly refused: readonly string[] }[] = [
  { urls: ['*'], allowed: ['https://a.example', 'null'], refused: [] },
  { urls: ['http://other.example', '*'], allowed: ['https://a.example'], refused: [] },
  {
    urls: ['https://panel.example'],
    allowed: ['https://panel.example'],
    refused: ['http://panel.example', 'https://panel.example:8443', 'https://panel.example.evil', 'null'],
  },
  {
    urls: ['panel.example'],
    allowed: ['http://panel.example', 'https://panel.example', 'capacitor://panel.example'],
    refused: ['https://x.panel.example', 'https://panel_example', 'panel.example'],
  },
  {
    urls: ['http://*.panel.example'],
    allowed: ['http://a.panel.example', 'http://b.a.panel.example'],
    refused: ['https://a.panel.example', 'http://panel.example', 'http://a.panel.example.evil'],
  },
  { urls: ['*.panel.example'], allowed: ['http://a.panel.example', 'https://a.panel.example'], refused: ['https://panel.example'] },
  {
    urls: ['http?://panel.*'],
    allowed: ['http://panel.example', 'https://panel.test'],
    refused: ['ftp://panel.test', 'https://a.panel.test'],
  },
  {
    urls: ['https://a.example', 'http://b.example', 'null'],
    allowed: ['https://a.example', 'http://b.example'],
    refused: ['http://a.example', 'null', 'https://c.example'],
  },
  { urls: ['null'], allowed: ['null', 'https://a.example'], refused: [] },
];
const WANTED_HEADERS = 'authorization,content-type';

interface Asked {
  readonly url: string;
  readonly method?: string;
  readonly body?: string;
  readonly authorization?: string;
}

/** The CORS headers of the answer to a page of `origin`. */
async function ask({ url, authorization, ...request }: Asked, origin: string) {
  const headers: Record<string, string> = { Origin: origin };
  if (authorization !== undefined) headers['Authorization'] = authorization;
  if (request.method === 'OPTIONS') {
    headers['Access-Control-Request-Method'] = 'POST';
    headers['Access-Control-Request-Headers'] = WANTED_HEADERS;
  }
  const answer = await fetch(url, { ...request, headers });
  await answer.arrayBuffer();
  const [allowed, credentials, methods, wanted] = ['origin', 'credentials', 'methods', 'headers'].map((name) =>
    answer.headers.get(`access-control-allow-${name}`),
  );
  return { status: answer.status, allowed, credentials, methods, wanted };
}

/** Sends requests from pages of all origins in a list; `status` must be the same for all. */
async function expectList(
  { urls, allowed, refused }: (typeof LISTS)[number],
  asked: Asked,
  status: number,
  methods: string,
): Promise<void> {
  const title = `${asked.method ?? 'GET'} ${asked.url} for ${urls.join(' ')}`;
  for (const origin of allowed) {
    const named = urls.includes('*') ? '*' : urls.length === 1 && urls[0] === 'null' ? 'null' : origin;
    const wanted = asked.method === 'OPTIONS' ? WANTED_HEADERS : null;
    expect(await ask(asked, origin), `${title}, ${origin}`).toEqual({ status, allowed: named, credentials: 'true', methods, wanted });
  }
  for (const origin of refused) {
    const nothing = { allowed: null, credentials: null, methods: null, wanted: null };
    expect(await ask(asked, origin), `${title}, ${origin}`).toEqual({ status, ...nothing });
  }
}

test('the API answers pages of the origins that it names, before it asks for a token', async () => {
  const server = await startServer({ apiOrigins: [] });
  onTestFinished(() => server.close());
  const version = `http://127.0.0.1:${server.ports.api}/v1/version`;
  const authorization = `Basic ${Buffer.from(ACCESS_TOKEN).toString('base64')}`;
  const methods = 'OPTIONS, HEAD, GET, POST, PUT, PATCH, DELETE';
  for (const list of LISTS) {
    writeFileSync(server.config, serverXml(server.ports, { apiOrigins: list.urls }));
    await server.stop();
    await server.restart();
    await expectList(list, { url: version, authorization }, 200, methods);
    await expectList(list, { url: version }, 401, methods);
    await expectList(list, { url: version, method: 'OPTIONS', authorization }, 204, methods);
    await expectList(list, { url: version, method: 'OPTIONS' }, 204, methods);
  }
}, 120_000);

describe('an application answers pages of its named origins only:', () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startServer({ hostNames: ['127.0.0.1'], webrtc: {} });
    await server.api.create('/v1/vhosts', [{ name: 'open', host: { names: ['localhost'] } }]);
    return () => server.close();
  });

  /** An application with a playable stream `live`; resolves with its address. */
  async function serve(app: string, crossDomains: object): Promise<string> {
    const encodes = {
      videos: [{ name: 'video', bypass: true }],
      images: [{ name: 'image', codec: 'jpeg', width: 80, height: 45, framerate: 1 }],
    };
    const application = {
      name: app,
      type: 'live',
      providers: { rtmp: {}, webrtc: { crossDomains } },
      publishers: { llhls: { chunkDuration: 0.5, segmentDuration: 1, crossDomains }, thumbnail: { crossDomains } },
      outputProfiles: { outputProfile: [{ name: 'p', outputStreamName: `\${OriginStreamName}`, encodes }] },
    };
    await server.api.create('/v1/vhosts/open/apps', [application]);
    const encoder = publish({ url: server.rtmp('live', app, 'localhost'), width: 320, height: 180, videoKbps: 200 });
    onTestFinished(async () => {
      await encoder.stop();
    });
    const base = `http://localhost:${server.ports.http}/${app}`;
    for (const file of ['llhls.m3u8', 'thumb.jpg']) {
      await until(`${file} is there`, async () => (await fetch(`${base}/live/${file}`)).status === 200);
    }
    return base;
  }

  test.each(LISTS)('$urls', async (list) => {
    const base = await serve(`app${LISTS.indexOf(list)}`, { urls: list.urls });
    const delivery = 'OPTIONS, GET, HEAD';
    await expectList(list, { url: `${base}/live/llhls.m3u8` }, 200, delivery);
    await expectList(list, { url: `${base}/live/llhls.m3u8`, method: 'OPTIONS' }, 200, delivery);
    await expectList(list, { url: `${base}/none/llhls.m3u8` }, 404, delivery);
    await expectList(list, { url: `${base}/none/llhls.m3u8`, method: 'OPTIONS' }, 200, delivery);
    await expectList(list, { url: `${base}/live/thumb.jpg` }, 200, 'GET');
    await expectList(list, { url: `${base}/live/thumb.jpg`, method: 'OPTIONS' }, 200, delivery);
    const whip = { url: `${base}/other?direction=whip` };
    const exchange = 'OPTIONS, POST, PATCH, DELETE';
    await expectList(list, { ...whip, method: 'OPTIONS' }, 200, exchange);
    await expectList(list, { ...whip, method: 'POST', body: 'no description' }, 400, exchange);
  });

  test('with additional headers, some for all requests and some for these origins', async () => {
    const headers = [
      { key: 'X-Edge', value: 'one: two' },
      { key: 'access-control-allow-credentials', value: 'false' },
      { key: 'Access-Control-Allow-Headers', value: 'range' },
    ];
    const base = await serve('headers', { urls: ['*.panel.example'], headers });
    const requests = [
      [`${base}/live/llhls.m3u8`, 'GET'],
      [`${base}/live/llhls.m3u8`, 'OPTIONS'],
      [`${base}/live/thumb.jpg`, 'GET'],
      [`${base}/other?direction=whip`, 'OPTIONS'],
    ] as const;
    for (const [url, method] of requests) {
      for (const [origin, credentials, wanted] of [
        ['https://a.panel.example', 'false', 'range'],
        ['https://stranger.example', null, null],
      ] as const) {
        const answer = await fetch(url, { method, headers: { Origin: origin, 'Access-Control-Request-Headers': WANTED_HEADERS } });
        const told = ['x-edge', 'access-control-allow-credentials', 'access-control-allow-headers'].map((name) => answer.headers.get(name));
        expect(told, `${method} ${url} for ${origin}`).toEqual(['one: two', credentials, wanted]);
      }
    }
  });
});
