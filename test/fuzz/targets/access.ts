/** Access control: signed URLs and their policies, keys, and answers of control servers. */
import { createHmac } from 'node:crypto';
import { createServer, type Server, type Socket } from 'node:net';
import type { AccessRequest, Verdict } from '../../../src/access/access-check.ts';
import { AccessControls } from '../../../src/access/access-controls.ts';
import { readAdmissionAnswer } from '../../../src/access/admission-messages.ts';
import { readNewUrl, withPortOf } from '../../../src/access/new-url.ts';
import { SignedPolicyCheck } from '../../../src/access/signed-policy.ts';
import { readSignedUrl, signUrl } from '../../../src/access/signed-url.ts';
import { ConfigError, readOutputProfiles } from '../../../src/config/index.ts';
import type { Clock } from '../../../src/util/clock.ts';
import { ControlServerClient, ControlServerFault } from '../../../src/util/control-server-client.ts';
import { hashKey, keptMark, saltOf, shownMark } from '../../../src/util/key-hash.ts';
import { timeOf } from '../../../src/util/timestamp.ts';
import type { FuzzTarget } from '../support/fuzz-target.ts';

const NOW = 1_800_000_000_000;
const CLOCK: Clock = { now: () => NOW, monotonic: () => 0 };
const SIGNING = { policyQueryKeyName: 'policy', signatureQueryKeyName: 'signature', secretKey: 'aKq#1kj' };
const CHECK = new SignedPolicyCheck({ ...SIGNING, enables: { providers: ['rtmp'], publishers: ['llhls'] } }, CLOCK);
const CLIENT = { address: '192.0.2.7', port: 40_000, realIp: '192.0.2.8' };
const POLICY = { url_expire: NOW + 1000 };
const WHOLE = { ...POLICY, url_activate: NOW - 1, stream_expire: NOW + 5000, allow_ip: '192.0.2.0/24', real_ip: '192.0.2.8' };
const SIGNED = ['http://a.test:3333/app/live/llhls.m3u8', 'rtmp://[::1]:1935/app/live?x=%20&y', 'srt://a.test/app/live'].map((url, n) =>
  signUrl(url, n === 0 ? POLICY : { ...WHOLE, direction: 'outgoing' }, SIGNING),
);
const SIGNED_TEXTS = new Set(SIGNED.map((url) => readSignedUrl(url, SIGNING).text));

const KEY = 'the-key-of-studio-1';
const LATER = { name: 'late', hash: hashKey('the-key-of-studio-2'), expires: '2001-01-01' };
const PLACE = { host: 'a.test', app: 'app', stream: 'live' };
const MAX_REASON = 200;
/** Characters of an escaped character. */
const ESCAPED = 6;
const ANSWER_MS = 2000;

const text = (value: string): Buffer => Buffer.from(value);
const json = (value: unknown): Buffer => text(JSON.stringify(value));

function asked(url: string, authorization?: string): AccessRequest {
  return { direction: 'outgoing', protocol: 'llhls', url, client: { ...CLIENT, authorization } };
}

function keyed(): AccessControls {
  const access = new AccessControls({
    clock: CLOCK,
    onFault: (error) => {
      throw error;
    },
    tell: () => undefined,
  });
  const playTokens = [{ name: 'site', hash: hashKey(KEY), streams: 'li?e*' }, LATER];
  access.follow([{ name: 'v', hostNames: ['a.test'], keys: { applications: new Map([['app', { playTokens }]]), template: {} } }]);
  return access;
}

/** The object in a control server's answer; null for anything else. */
function objectIn(input: Buffer): Readonly<Record<string, unknown>> | null {
  let value: unknown;
  try {
    value = JSON.parse(input.toString('utf8'));
  } catch {
    return null;
  }
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : null;
}

function decodedTwice(value: string): string {
  const decoded = (once: string): string => {
    try {
      return decodeURIComponent(once);
    } catch {
      return once;
    }
  };
  return value
    .split(/[?&=\s]/)
    .map((part) => decoded(decoded(part)))
    .join(' ');
}

/** Answers every request with the bytes of the input, and closes the connection. */
class RawControlServer {
  bytes: Uint8Array = Buffer.alloc(0);
  #server: Server | null = null;
  #client: ControlServerClient | null = null;
  readonly #sockets = new Set<Socket>();

  async client(): Promise<ControlServerClient> {
    if (this.#client !== null) return this.#client;
    const server = createServer((socket) => {
      this.#sockets.add(socket);
      socket.on('close', () => this.#sockets.delete(socket)).on('error', () => socket.destroy());
      socket.once('data', () => socket.end(this.bytes));
    });
    this.#server = server;
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = server.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    this.#client = new ControlServerClient({ url: `http://127.0.0.1:${port}/a`, secretKey: 'k', maxAnswerBytes: 1024 });
    return this.#client;
  }

  async close(): Promise<void> {
    this.#client?.close();
    this.#client = null;
    const server = this.#server;
    this.#server = null;
    for (const socket of this.#sockets) socket.destroy();
    await new Promise<void>((resolve) => (server === null ? resolve() : server.close(() => resolve())));
  }
}

const rawServer = new RawControlServer();
const keyRing = keyed();
const HEAD = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n';

export const ACCESS_TARGETS: readonly FuzzTarget[] = [
  {
    name: 'signed-urls',
    form: 'text',
    seeds: () => SIGNED.map(text),
    run: (input) => {
      const url = input.toString('utf8');
      const said = CHECK.judge(asked(url));
      // Only our signatures exist, so any other accepted text is a forgery. The signature may be at another place of the URL.
      if (said.admitted && !SIGNED_TEXTS.has(readSignedUrl(url, SIGNING).text)) throw new Error('a forged URL is good');
      return said.admitted ? 1 : 0;
    },
  },
  {
    name: 'signed-policies',
    form: 'text',
    seeds: () => [
      json(POLICY),
      json({ ...WHOLE, direction: 'outgoing' }),
      json({ ...WHOLE, allow_ip: '::1/128' }),
      json([]),
      text('{"url_expire":1e999}'),
    ],
    run: (input) => {
      const base = `http://a.test:3333/app/live/llhls.m3u8?policy=${input.toString('base64url')}`;
      const signature = createHmac('sha1', SIGNING.secretKey).update(base).digest('base64url');
      const said = CHECK.judge(asked(`${base}&signature=${signature}`));
      if (!said.admitted) return 0;
      const { url_expire: end } = JSON.parse(input.toString('utf8'));
      if (!(Number.isSafeInteger(end) && end > NOW && said.expiresAt > NOW)) throw new Error(`it is good until ${said.expiresAt}`);
      return 1;
    },
  },
  {
    name: 'access-keys',
    form: 'text',
    seeds: () => [
      text(`Bearer ${KEY}\nhttp://a.test/app/live`),
      text(`\nhttp://a.test/app/live?token=${KEY}&x`),
      text('Basic x\nrtmp://a?token=a%2562&token'),
    ],
    run: (input) => {
      const [authorization, ...rest] = input.toString('utf8').split('\n');
      const verdict = keyRing.admit(PLACE, asked(rest.join('\n'), authorization)) as Verdict;
      const shows = decodedTwice(input.toString('utf8')).split(' ').includes(KEY);
      if (verdict.admitted && !shows) throw new Error('somebody without a key is let in');
      return verdict.admitted ? 1 : 0;
    },
  },
  {
    name: 'key-hashes',
    form: 'text',
    seeds: () => [
      text(`${hashKey(KEY)}\n2026-12-31`),
      text('sha256:a:b\n2026-01-01T00:00:00.5+14:00'),
      text(`sha256::${'A'.repeat(43)}\n`),
    ],
    run: (input) => {
      const [hash = '', time = ''] = input.toString('utf8').split('\n');
      const [kept, salt] = [keptMark(hash), saltOf(hash)];
      if ((kept === undefined) !== (salt === undefined)) throw new Error('half of a hash is read');
      if (salt !== undefined && shownMark(salt, 'another-key-of-nobody') === kept) throw new Error('a key fits that nobody has made');
      return Number.isFinite(timeOf(time)) ? 1 : 0;
    },
  },
  {
    name: 'admission-answers',
    form: 'text',
    seeds: () => [
      json({ allowed: true, lifetime: 5000, new_url: 'ws://[::1]:3333/app/other/master?x=1', reason: 'because' }),
      json({ allowed: false, reason: 'not\n\u202epaid' }),
      json({ allowed: true, lifetime: -1, new_url: null }),
      json({ allowed: 'true' }),
    ],
    run: (input) => {
      const object = objectIn(input);
      const answer = object === null ? 'no object' : readAdmissionAnswer(object);
      if (typeof answer === 'string') return 0;
      const { allowed, lifetimeMs, newUrl, reason = '' } = answer;
      if (typeof allowed !== 'boolean' || !(lifetimeMs >= 0)) throw new Error(`allowed for ${lifetimeMs} ms`);
      if (/[\r\n]/.test(reason) || reason.length > ESCAPED * MAX_REASON) throw new Error('a reason that is more than a line');
      if (newUrl !== undefined && readNewUrl(newUrl) === null) throw new Error('a new_url that leads nowhere');
      return 1;
    },
  },
  {
    name: 'new-urls',
    form: 'text',
    seeds: () =>
      ['ws://h/app/stream', 'HTTP://[2001:db8::1]:80/a/b/c.m3u8?x=1&y', 'rtmp://media.example:1935/app/stream', 'srt://h/a/%2f'].map(text),
    run: (input) => {
      const written = input.toString('utf8');
      const url = readNewUrl(written);
      if (url === null) return 0;
      if (/[/?#@\s]/.test(url.authority) || !/^\/[^/]+\/[^/]/.test(url.path) || /[?#\s]/.test(url.query))
        throw new Error('parts that are several');
      const whole = readNewUrl(withPortOf(written, 'http://a.test:3333/app/stream'));
      if (whole?.host !== url.host || whole.path !== url.path || whole.query !== url.query)
        throw new Error('a port makes another URL of it');
      if (!/:\d+$/.test(whole.authority)) throw new Error('there is no port');
      return whole.path.length;
    },
    most: (length) => length,
  },
  {
    name: 'profile-answers',
    form: 'text',
    seeds: () => [
      json({
        allowed: true,
        outputProfiles: {
          outputProfile: [
            { name: 'p', outputStreamName: '${OriginStreamName}', encodes: { videos: [{ name: 'v', bypass: 'true' }], audios: [] } },
          ],
          hwaccels: { encoder: { enable: true, modules: 'nv:1,x264' } },
        },
      }),
      json({ allowed: 'true', outputProfiles: {} }),
    ],
    run: (input) => {
      const profiles = objectIn(input)?.['outputProfiles'];
      if (typeof profiles !== 'object' || profiles === null) return 0;
      return readOutputProfiles(profiles).typed.outputProfile.length;
    },
    most: (length) => 1 + length,
    expects: (error) => error instanceof ConfigError,
    cost: 4,
  },
  {
    name: 'control-server-bytes',
    seeds: () => [
      text(`${HEAD}Content-Length: 16\r\n\r\n{"allowed":true}`),
      text(`${HEAD}Transfer-Encoding: chunked\r\n\r\n10\r\n{"allowed":true}\r\n0\r\n\r\n`),
      text(`${HEAD}\r\n{"allowed":true}`),
      text('HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n'),
      text(`HTTP/1.1 100 Continue\r\n\r\n${HEAD}Content-Length: 99999\r\n\r\n{}`),
    ],
    run: async (input) => {
      const client = await rawServer.client();
      rawServer.bytes = input;
      const answer = await client.ask({ q: 1 }, { timeoutMs: ANSWER_MS });
      if (typeof answer !== 'object' || answer === null || Array.isArray(answer)) throw new Error('an answer that is no object');
      if (client.pending > 0) throw new Error('a question stays open');
      return 1;
    },
    expects: (error) => error instanceof ControlServerFault,
    close: () => rawServer.close(),
    cost: 20,
  },
];
