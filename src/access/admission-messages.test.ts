import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { controlSignature } from '../../test/support/control-signature.ts';
import type { AccessProtocol, AccessRequest } from './access-check.ts';
import { closingMessage, openingMessage, readAdmissionAnswer } from './admission-messages.ts';

interface Recorded {
  readonly name: string;
  readonly signature: string;
  readonly body: string;
}

interface Body {
  readonly client: { readonly address: string; readonly port: number; readonly real_ip: string; readonly user_agent?: string };
  readonly request: Readonly<Record<'direction' | 'protocol' | 'status' | 'time' | 'url', string>> & { readonly new_url?: string };
}

const RECORDED: readonly Recorded[] = readFileSync(
  new URL('../../test/fixtures/recorded-webhooks/admission.jsonl', import.meta.url),
  'utf8',
)
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line) as Recorded);

describe('requests recorded from the reference server', () => {
  const zone = process.env['TZ'];
  beforeAll(() => {
    // The recorded server ran in UTC.
    process.env['TZ'] = 'UTC';
  });
  afterAll(() => {
    if (zone === undefined) delete process.env['TZ'];
    else process.env['TZ'] = zone;
  });

  test('are openings and closings of all protocols that it asks for', () => {
    const kinds = RECORDED.map(({ body }) => {
      const { request } = JSON.parse(body) as Body;
      return `${request.protocol} ${request.status}`;
    });
    expect([...new Set(kinds)].sort()).toEqual([
      ...['LLHLS closing', 'LLHLS opening', 'RTMP closing', 'RTMP opening', 'SRT closing', 'SRT opening'],
      ...['Thumbnail opening', 'WebRTC opening'],
    ]);
  });

  test.each(RECORDED)('$name is made byte for byte, with its signature', ({ body, signature }) => {
    const { client, request } = JSON.parse(body) as Body;
    const asked: AccessRequest = {
      direction: request.direction as AccessRequest['direction'],
      protocol: request.protocol.toLowerCase() as AccessProtocol,
      url: request.url,
      client: { address: client.address, port: client.port, realIp: client.real_ip, userAgent: client.user_agent },
    };
    const now = Date.parse(request.time);
    const made = request.status === 'opening' ? openingMessage(asked, now) : closingMessage(asked, request.new_url ?? '', now);
    expect(JSON.stringify(made)).toBe(body);
    expect(controlSignature('admsecret', JSON.stringify(made))).toBe(signature);
  });
});

test('a time is local with its offset, and an absent user agent is left out', () => {
  const zone = process.env['TZ'];
  process.env['TZ'] = 'Asia/Seoul';
  const client = { address: '2001:db8::7', port: 1, realIp: '2001:db8::7', userAgent: '' };
  const request: AccessRequest = { direction: 'outgoing', protocol: 'hls', url: 'http://[2001:db8::1]:80/a/b', client };
  expect(openingMessage(request, Date.UTC(2026, 0, 12, 4, 45, 0, 123))).toEqual({
    client: { address: '2001:db8::7', port: 1, real_ip: '2001:db8::7' },
    request: {
      ...{ direction: 'outgoing', protocol: 'HLS', status: 'opening', url: request.url },
      time: '2026-01-12T13:45:00.123+09:00',
    },
  });
  if (zone === undefined) delete process.env['TZ'];
  else process.env['TZ'] = zone;
});

const FOREVER = Number.POSITIVE_INFINITY;

test.each([
  [{ allowed: true }, { allowed: true, lifetimeMs: FOREVER }],
  [
    { allowed: true, lifetime: 0, new_url: '', reason: '' },
    { allowed: true, lifetimeMs: FOREVER },
  ],
  [
    { allowed: true, lifetime: null, new_url: null },
    { allowed: true, lifetimeMs: FOREVER },
  ],
  [
    { allowed: true, lifetime: 1500, new_url: 'rtmp://h/a/s' },
    { allowed: true, lifetimeMs: 1500, newUrl: 'rtmp://h/a/s' },
  ],
  [
    { allowed: false, reason: 'not paid', lifetime: 'x' },
    { allowed: false, lifetimeMs: 0, reason: 'not paid' },
  ],
  [
    { allowed: false, reason: 7 },
    { allowed: false, lifetimeMs: 0 },
  ],
  [
    { allowed: false, reason: 'a\r\nSet-Cookie: b\u202e' },
    { allowed: false, lifetimeMs: 0, reason: 'a\\u000d\\u000aSet-Cookie: b\\u202e' },
  ],
  [
    { allowed: false, reason: 'x'.repeat(10_000) },
    { allowed: false, lifetimeMs: 0, reason: 'x'.repeat(200) },
  ],
  [{}, 'allowed is not true or false'],
  [{ allowed: 'true' }, 'allowed is not true or false'],
  [{ allowed: 1 }, 'allowed is not true or false'],
  [{ allowed: null }, 'allowed is not true or false'],
  [{ Allowed: true }, 'allowed is not true or false'],
  [{ allowed: true, lifetime: '60000' }, 'lifetime is no number of milliseconds'],
  [{ allowed: true, lifetime: -1 }, 'lifetime is no number of milliseconds'],
  [{ allowed: true, new_url: 'http://h/only-an-app' }, 'new_url is no URL of a stream: scheme://host[:port]/app/stream'],
  [{ allowed: true, new_url: '/app/stream' }, 'new_url is no URL of a stream: scheme://host[:port]/app/stream'],
  [{ allowed: true, new_url: ['http://h/a/s'] }, 'new_url is no URL of a stream: scheme://host[:port]/app/stream'],
])('the answer %o is %o', (answer, read) => {
  expect(readAdmissionAnswer(answer)).toEqual(read);
});
