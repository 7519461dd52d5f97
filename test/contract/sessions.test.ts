/** The Sessions section of the contract, row by row. */
import { Value } from '@sinclair/typebox/value';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { SessionStatisticsSchema } from '../../src/api/schemas.ts';
import type { SessionHandle } from '../../src/core/publishing.ts';
import { found } from './checked-calls.ts';
import { type ApiHarness, startApi } from './harness.ts';

const STREAM = '/v1/vhosts/default/apps/app/streams/s';
const STATISTICS = '/v1/stats/current/vhosts/default/apps/app/streams/s';
const MISSING = { status: 404, json: { message: 'Not Found', response: 'Could not find the session', statusCode: 404 } };

let api: ApiHarness;
let ended: string[];

beforeEach(async () => {
  api = await startApi();
  await api.publish('default', 'app', 's');
  ended = [];
});
afterEach(() => api.close());

function watch(id: string, kind: 'webrtc' | 'llhls' | 'srt', client?: string): SessionHandle {
  const output = api.orchestrator.application('default', 'app')?.stream('s')?.outputs[0];
  if (output === undefined) throw new Error('the stream has no output');
  return output.openSession({ kind, id, client, onTerminate: (reason) => ended.push(`${id} ${reason}`) });
}

const connections = async (version: 'v1' | 'v2') => {
  const { json } = (await api.call('GET', STATISTICS.replace('v1', version))) as { json: { response: Record<string, unknown> } };
  return (version === 'v1' ? json.response : json.response['publishers']) as { connections: object; totalConnections: number };
};

describe('the list', () => {
  test('has the names of the WebRTC viewers, oldest first', async () => {
    expect(await api.call('GET', `${STREAM}/sessions`)).toEqual(found([]));
    const first = watch('aBc+/=', 'webrtc');
    watch('017_x-y', 'llhls');
    watch('z', 'webrtc');
    expect(await api.call('GET', `${STREAM}/sessions`)).toEqual(found(['aBc+/=', 'z']));
    first.close();
    expect(await api.call('GET', `${STREAM}/sessions?other=1`)).toEqual(found(['z']));
  });

  test.each([
    ['all', ['a', 'b', 'c', 'd']],
    ['webrtc', ['a', 'd']],
    ['llhls,srt', ['b', 'c']],
    ['srt%2Cwebrtc', ['a', 'c', 'd']],
    ['hlsv3', []],
  ])('with protocol=%s has %j', async (words, names) => {
    for (const [id, kind] of [
      ['a', 'webrtc'],
      ['b', 'llhls'],
      ['c', 'srt'],
      ['d', 'webrtc'],
    ] as const)
      watch(id, kind);
    expect(await api.call('GET', `${STREAM}/sessions?protocol=${words}`)).toEqual(found(names));
  });

  test.each(['', 'WebRTC', 'all,webrtc', 'rtmp'])('lists the valid protocols when it is asked for %j', async (words) => {
    const { status, json } = await api.call('GET', `${STREAM}/sessions?protocol=${words}`);
    const known = 'file, hlsv3, llhls, ovt, push, srt, thumbnail, webrtc';
    expect([status, json]).toEqual([
      400,
      { message: `[HTTP] Invalid [protocol] parameter: it must be all, or of ${known} (400)`, statusCode: 400 },
    ]);
  });

  test('agrees with the statistics of both versions', async () => {
    watch('a', 'webrtc');
    watch('b', 'webrtc');
    watch('c', 'llhls');
    for (const version of ['v1', 'v2'] as const) {
      expect(await connections(version)).toMatchObject({
        connections: { webrtc: 2, llhls: 1, srt: 0 },
        totalConnections: 3,
        maxTotalConnections: 3,
      });
    }
  });

  test('ends with the stream', async () => {
    watch('a', 'webrtc');
    expect((await api.call('DELETE', STREAM)).status).toBe(200);
    expect(api.orchestrator.meter.totalSessions).toBe(0);
    expect((await api.call('GET', `${STREAM}/sessions`)).status).toBe(404);
  });
});

describe('the list of version 2', () => {
  const PAGE = STREAM.replace('v1', 'v2').concat('/sessions');
  const page = async (query = '') =>
    ((await api.call('GET', `${PAGE}${query}`)).json as { response: { sessions: object[]; total: number } }).response;

  test('has each viewer with protocol, address and figures, oldest first', async () => {
    watch('a', 'webrtc', '192.0.2.1');
    watch('b', 'llhls', '2001:db8::1').countBytes(1000);
    watch('c', 'srt');
    expect(await page()).toEqual({
      total: 3,
      sessions: [
        { session: 'a', protocol: 'webrtc', client: '192.0.2.1', statistics: expect.any(Object) },
        { session: 'b', protocol: 'llhls', client: '2001:db8::1', statistics: expect.objectContaining({ totalBytesOut: 1000 }) },
        { session: 'c', protocol: 'srt', statistics: expect.any(Object) },
      ],
    });
    expect(await page('?protocol=srt,webrtc&offset=1')).toMatchObject({ total: 2, sessions: [{ session: 'c' }] });
    expect(await page('?limit=1&offset=1')).toMatchObject({ total: 3, sessions: [{ session: 'b' }] });
    expect(await page('?offset=3')).toEqual({ total: 3, sessions: [] });
  });

  test.each(['limit=1001', 'limit=-1', 'offset=x', 'protocol=rtmp'])('refuses %s by the name of the parameter', async (query) => {
    const { status, json } = await api.call('GET', `${PAGE}?${query}`);
    expect([status, json]).toEqual([400, { message: expect.stringContaining(`[${query.split('=')[0]}]`), statusCode: 400 }]);
  });

  test('has no address with PrivacyProtection', async () => {
    await api.close();
    api = await startApi({ privacyProtection: true });
    await api.publish('default', 'app', 's');
    watch('a', 'webrtc', '192.0.2.1');
    expect(await page()).toMatchObject({ sessions: [{ client: 'xxx.xxx.xxx.xxx' }] });
  });
});

describe('termination', () => {
  test('disconnects only the named viewer', async () => {
    watch('a', 'webrtc');
    watch('b', 'llhls');
    expect(await api.call('DELETE', `${STREAM}/sessions/a`)).toEqual({ status: 200, json: { message: 'OK', statusCode: 200 } });
    expect(ended).toEqual(['a terminated through the API']);
    expect(await api.call('GET', `${STREAM}/sessions?protocol=all`)).toEqual(found(['b']));
    for (const version of ['v1', 'v2'] as const) {
      expect(await connections(version)).toMatchObject({ connections: { webrtc: 0, llhls: 1 }, totalConnections: 1 });
    }
    expect(await api.call('DELETE', `${STREAM}/sessions/a`)).toEqual(MISSING);
    expect(ended).toHaveLength(1);
  });

  test('finds other viewers by the protocol', async () => {
    watch('b', 'llhls');
    expect(await api.call('DELETE', `${STREAM}/sessions/b`)).toEqual(MISSING);
    expect(await api.call('DELETE', `${STREAM}/sessions/b?protocol=srt`)).toEqual(MISSING);
    expect((await api.call('DELETE', `${STREAM}/sessions/b?protocol=rtmp`)).status).toBe(400);
    expect(ended).toEqual([]);
    expect((await api.call('DELETE', `${STREAM}/sessions/b?protocol=llhls`)).status).toBe(200);
    expect(ended).toEqual(['b terminated through the API']);
  });

  test.each(['nope', '', '%61', 'b ', 'b:stop'])('of %j is answered 404 and ends no session', async (name) => {
    watch('a', 'webrtc');
    watch('b', 'llhls');
    expect(await api.call('DELETE', `${STREAM}/sessions/${encodeURI(name)}`)).toEqual(MISSING);
    expect(ended).toEqual([]);
  });
});

describe('statistics', () => {
  test('count only the bytes of the session', async () => {
    const session = watch('a', 'webrtc');
    watch('b', 'webrtc').countBytes(9999);
    api.clock.advance(600);
    session.countBytes(1000);
    api.clock.advance(600);
    session.countBytes(2000);
    const { status, json } = (await api.call('GET', `${STATISTICS}/sessions/a`)) as { status: number; json: Record<string, unknown> };
    expect(status).toBe(200);
    const response = json['response'] as Record<string, unknown>;
    expect(Value.Check(SessionStatisticsSchema, response)).toBe(true);
    expect(response).toMatchObject({ totalBytesOut: 3000, lastThroughputOut: 3000, avgThroughputOut: 20_000, maxThroughputOut: 20_000 });
    const [created, sent] = [response['createdTime'], response['lastSentTime']].map((time) => Date.parse(String(time)));
    expect((sent ?? 0) - (created ?? 0)).toBe(1200);
    expect(response['lastUpdatedTime']).toBe(response['lastSentTime']);
    expect(JSON.stringify(Object.keys(response))).toBe(JSON.stringify(Object.keys(response).sort()));
  });

  test('of other viewers are found by the protocol', async () => {
    watch('b', 'srt');
    expect(await api.call('GET', `${STATISTICS}/sessions/b`)).toEqual(MISSING);
    expect((await api.call('GET', `${STATISTICS}/sessions/b?protocol=all`)).status).toBe(200);
  });

  test('of an ended session are missing', async () => {
    watch('a', 'webrtc').close();
    expect(await api.call('GET', `${STATISTICS}/sessions/a`)).toEqual(MISSING);
    expect(await api.call('GET', `${STATISTICS}/sessions/`)).toEqual(MISSING);
  });
});

const REQUESTS = [
  ['GET', `${STREAM}/sessions`],
  ['DELETE', `${STREAM}/sessions/a`],
  ['GET', `${STATISTICS}/sessions/a`],
] as const;

describe.each(REQUESTS)('%s %s', (method, path) => {
  test.each([
    ['vhosts/default', 'vhosts/nope', 'Could not find the virtual host: [nope]'],
    ['apps/app', 'apps/nope', 'Could not find the application: [default/nope]'],
    ['streams/s', 'streams/nope', 'Could not find the stream: [default/#default#app/nope]'],
  ])('without %s is 404', async (from, to, text) => {
    watch('a', 'webrtc');
    const answer = await api.call(method, path.replace(from, to));
    expect(answer).toEqual({ status: 404, json: { message: `[HTTP] ${text} (404)`, statusCode: 404 } });
    expect(ended).toEqual([]);
  });

  test('requires authorization', async () => {
    watch('a', 'webrtc');
    const answer = await api.send({ method, path, headers: { Authorization: null } });
    expect(answer.status).toBe(401);
    expect(ended).toEqual([]);
  });
});

test.each(['POST', 'PATCH', 'PUT'])('%s is answered 404', async (method) => {
  watch('a', 'webrtc');
  expect((await api.call(method, `${STREAM}/sessions/a`, {})).status).toBe(404);
  expect((await api.call(method, `${STREAM}/sessions`, {})).status).toBe(404);
});
