/** The content of requests: names and patterns, tokens, origins, locations, and complete requests to the API. */
import { CrossDomainPolicy } from '../../../src/access/cross-domains.ts';
import { SessionTokens } from '../../../src/delivery/session-token.ts';
import { connectUrl, publishTarget } from '../../../src/services/rtmp/publish-target.ts';
import { compileWildcard } from '../../../src/util/wildcard.ts';
import { type ApiHarness, startApi } from '../../contract/harness.ts';
import type { FuzzTarget } from '../support/fuzz-target.ts';

const ADDRESS = '#default#app/stream';
const EXPIRES_AT = 1_800_000_000_000;
const MAX_PATTERN = 64;

function tokens(): SessionTokens {
  return new SessionTokens(Buffer.alloc(32, 7), 36);
}

const POLICY = {
  defaults: { urls: ['*.example.com', 'https://player.example.org', 'null'], headers: [{ key: 'X-Served', value: 'yes' }] },
  own: { urls: ['http?://*.tv'], headers: [{ key: 'Access-Control-Allow-Headers', value: 'range' }] },
  methods: 'GET, HEAD',
};

const LOCAL = { host: '192.0.2.1', port: 1935, scheme: 'rtmp' } as const;

/** Method and target, then the body; the rest of a request is fixed, so that every input is a request. */
const API_REQUESTS: readonly (readonly [line: string, body?: unknown])[] = [
  ['GET /v1/version'],
  ['GET /v1/vhosts/default/apps/app/streams?x=1'],
  ['GET /v1/stats/current/vhosts/default/apps/app/streams/live'],
  ['GET /v2/internals/queues'],
  ['GET /openapi.json'],
  ['POST /v1/vhosts', [{ name: 'another', host: { names: ['a.example.com'] }, applications: [{ name: 'a', providers: { rtmp: {} } }] }]],
  ['POST /v1/vhosts/another/apps', [{ name: 'b', type: 'live', publishers: { llhls: {}, file: { rootPath: '/tmp' }, push: {} } }]],
  ['PATCH /v1/vhosts/default/apps/app', { outputProfiles: { outputProfile: [{ name: 'p', outputStreamName: 'x' }] } }],
  ['POST /v1/vhosts/default/apps/app/outputProfiles', [{ name: 'q', outputStreamName: '${OriginStreamName}', encodes: { audios: [] } }]],
  ['POST /v1/vhosts/default/apps/app/streams', { name: 's', urls: ['rtsp://192.0.2.1/app/stream'], properties: { persistent: true } }],
  ['POST /v1/vhosts/default/apps/app:startRecord', { id: 'r', stream: { name: 'live', variantNames: [] }, filePath: '/a/${Stream}.ts' }],
  [
    'POST /v1/vhosts/default/apps/app:startRecord',
    { id: 'i', stream: { name: 'live' }, interval: 1000, schedule: '0 */1 *', metadata: 'm' },
  ],
  ['POST /v1/vhosts/default/apps/app:stopRecord', { id: 'r' }],
  ['POST /v1/vhosts/default/apps/app:records', { id: 'r' }],
  [
    'POST /v1/vhosts/default/apps/app:startPush',
    { id: 'p', stream: { name: 'live' }, protocol: 'rtmp', url: 'rtmp://h/a', streamKey: 'k' },
  ],
  [
    'POST /v1/vhosts/default/apps/app:startPush',
    { id: 't', stream: { name: 'live', trackIds: [1] }, protocol: 'srt', url: 'srt://h:1?mode=caller' },
  ],
  ['POST /v1/vhosts/default/apps/app:stopPush', { id: 'p' }],
  ['POST /v1/vhosts/default/apps/app:pushes', {}],
  [
    'POST /v1/vhosts/default/apps/app/streams/live:startHlsDump',
    { id: 'd', outputStreamName: 'live', outputPath: '/tmp', playlist: ['x'] },
  ],
  ['DELETE /v1/vhosts/another/apps/a'],
  ['DELETE /v1/vhosts/another'],
];
const HEAD = /^([A-Z]{1,16}) (\/[!-~]*)\n/;
/** Number of requests to one server: the objects that they create stay in it. */
const REQUESTS_OF_A_SERVER = 100;

/** Whether an error is a mistake in our code, and no refusal of a disk or peer. */
function isOurs(error: unknown): boolean {
  return [TypeError, RangeError, ReferenceError, SyntaxError].some((kind) => error instanceof kind);
}

/** Servers of the API, one after the other, with a live stream. */
class ApiServers {
  #harness: Promise<ApiHarness> | null = null;
  #asked = 0;

  async next(): Promise<ApiHarness> {
    this.#asked += 1;
    if (this.#asked % REQUESTS_OF_A_SERVER === 0) await this.close();
    this.#harness ??= startApi({}, 'in-own-folder').then(async (harness) => {
      await harness.publish('default', 'app', 'live');
      return harness;
    });
    return await this.#harness;
  }

  async close(): Promise<void> {
    const harness = this.#harness;
    this.#harness = null;
    await (await harness)?.close();
  }
}

const servers = new ApiServers();

export const REQUEST_TARGETS: readonly FuzzTarget[] = [
  {
    name: 'wildcards',
    form: 'text',
    seeds: () =>
      ['*.example.com\na.b.example.com', 'a?c*d*e\nabcxdye', '*a*a*a*a*b\naaaaaaaaaaaaaa', 'plain\nplain'].map((text) => Buffer.from(text)),
    run: (input) => {
      const [pattern = '', ...rest] = input.toString('utf8').split('\n');
      const text = rest.join('\n');
      const matches = compileWildcard(pattern.slice(0, MAX_PATTERN))(text);
      if (pattern === '*' && !matches) throw new Error('not everything matches *');
      if (!/[*?]/.test(pattern) && pattern.length <= MAX_PATTERN && matches !== (pattern === text)) throw new Error('a literal is none');
      return 0;
    },
  },
  {
    name: 'session-tokens',
    form: 'text',
    seeds: () => [Buffer.from(tokens().mint(ADDRESS, EXPIRES_AT).token), Buffer.from(tokens().mint('other', EXPIRES_AT).token)],
    run: (input) => {
      const text = input.toString('utf8');
      const verified = tokens().verify(text, ADDRESS);
      const isGenuine = text === tokens().mint(ADDRESS, EXPIRES_AT).token;
      if ((verified !== null) !== isGenuine) throw new Error(isGenuine ? 'a genuine token is refused' : 'a forged token is good');
      return 0;
    },
    cost: 3,
  },
  {
    name: 'cross-domains',
    form: 'text',
    seeds: () =>
      ['https://a.example.com\nrange, x-a', 'null\n', 'http://x.tv\nrange', 'https://player.example.org\n'].map((text) =>
        Buffer.from(text),
      ),
    run: (input) => {
      // The parser of heads removes line breaks from header values.
      const [origin = '', asked] = input.toString('latin1').replaceAll('\r', '').split('\n');
      const policy = new CrossDomainPolicy(POLICY);
      const { pairs, block } = policy.headers(origin, asked);
      if (block.split('\r\n').length !== pairs.length + 1) throw new Error('a header makes two');
      const allowed = pairs.find(([name]) => name === 'Access-Control-Allow-Origin')?.[1];
      if (allowed === '*' || (allowed !== undefined && !/\.example\.com|\.tv|^https:\/\/player\.example\.org$|^null$/.test(allowed)))
        throw new Error(`${allowed} is allowed`);
      policy.headers(origin, undefined);
      return block.length;
    },
    most: (length) => 512 + 4 * length,
  },
  {
    name: 'publish-targets',
    form: 'text',
    seeds: () =>
      ['rtmp://h:1936/live/inst?x=y\nlive\nkey?token=a', '\nlive\nkey', 'rtmps://[::1]/a/b/c?d#e\n\n?a=b&c', 'x\napp/inst?q\nk'].map(
        (text) => Buffer.from(text),
      ),
    run: (input) => {
      const [tcUrl, app, key = ''] = input.toString('utf8').split('\n');
      const url = connectUrl({ tcUrl, app }, LOCAL);
      const target = url === null ? null : publishTarget(url, key);
      if (target !== null && (target.app === '' || target.stream === '')) throw new Error('a place without a name');
      return target?.url.length ?? 0;
    },
    most: (length) => 64 + 3 * length,
  },
  {
    name: 'api-requests',
    form: 'text',
    seeds: () => API_REQUESTS.map(([line, body]) => Buffer.from(`${line}\n${body === undefined ? '' : JSON.stringify(body)}`)),
    run: async (input) => {
      const text = input.toString('latin1');
      const [head = '', method = '', path = ''] = HEAD.exec(text) ?? [];
      if (head === '') return 0;
      const harness = await servers.next();
      const { status, body } = await harness.send({ method, path, body: input.subarray(head.length) });
      if (!(status >= 200 && status < 600)) throw new Error(`answered with ${status}: ${body.slice(0, 300)}`);
      const fault = harness.logger.matching('API request failed').find(({ fields }) => isOurs(fields['err']));
      if (fault !== undefined) throw fault.fields['err'];
      return status === 200 ? 1 : 0;
    },
    close: () => servers.close(),
    cost: 40,
  },
];
