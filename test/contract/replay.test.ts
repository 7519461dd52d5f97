/** Sends the recorded requests in their order, and compares the answers with the reference server's. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Deviation, DIFFERENCES } from './differences.ts';
import { type ApiHarness, parseAnswer, type RawAnswer, startApi, TLS_FILES } from './harness.ts';
import { OWN_VALUES } from './own-values.ts';
import { answerText, type Exchange, recordedExchanges, requestBytes } from './recorded.ts';
import { shapeDifference } from './shape.ts';

/** Requests over TLS, or two at once, which `http.test.ts` tests. */
const ELSEWHERE = new Set([70, 73, 74]);
/** Time of the recorded requests. */
const BEGIN = Date.UTC(2026, 10, 21, 9, 40);
/** The recorded requests dump to a folder of another machine; this folder has a name of the same length. */
const RECORDED_FOLDER = '/data/dumps';
const DUMP_FOLDER = mkdtempSync('/tmp/');

/** Headers that depend on the moment or on the connection. */
const VARYING_HEADERS = new Set(['date', 'content-length']);

const deviations = new Map<number, Deviation>(
  Object.values(DIFFERENCES).flatMap((exchanges) => Object.entries(exchanges).map(([n, deviation]) => [Number(n), deviation] as const)),
);

describe('recorded exchanges', () => {
  let api: ApiHarness;
  beforeAll(async () => {
    api = await startApi({ accessToken: 'ome-access-token', tls: { port: 0, load: async () => TLS_FILES } }, 'anywhere', BEGIN);
    api.scheduled.media.set('file://sample.mp4', { length: 60_000 });
  });
  afterAll(async () => {
    await api.close();
    rmSync(DUMP_FOLDER, { recursive: true });
  });

  /** Advances the clock, with encoders that send and channels that play. */
  const passes = async (ms: number): Promise<void> => {
    await api.scheduled.advance(ms);
    api.keepAlive();
  };

  /** The publishers' actions between the recorded requests. */
  const meanwhile: Readonly<Record<number, () => unknown>> = {
    386: () => api.publish('default', 'app', 'stream'),
    413: () => api.feed('default', 'app', 'stream', 60),
    454: () => api.feed('default', 'app', 'stream', 60),
    474: () => api.feed('default', 'app', 'stream', 400),
    496: () => api.feed('default', 'app', 'stream', 60),
    499: () => api.publish('default', 'bare', 'pushed'),
    540: () => api.feed('default', 'app', 'stream', 30),
    550: () => api.feed('default', 'app', 'stream', 200),
    602: async () => {
      // The pulled stream has had no viewer for a minute.
      api.clock.advance(61_000);
      // Its publisher has not been silent.
      await api.feed('default', 'app', 'stream', 1);
      api.keepAlive();
      await api.until(() => api.orchestrator.application('default', 'app')?.stream('pulled') === undefined);
      await Promise.all(['w1', 'stream2', 'srtin'].map((name) => api.publish('default', 'app', name)));
    },
    607: async () => {
      await api.publish('default', 'subs', 'stream');
      await api.feed('default', 'subs', 'stream', 60);
    },
    617: () => api.orchestrator.application('default', 'subs')?.stream('stream')?.terminate({ code: 'peer-left', detail: 'stopped' }),
    // The time of the recorded schedules.
    634: () => passes(Date.UTC(2026, 10, 21, 9, 43, 16) - api.clock.now()),
    647: () => passes(3000),
    659: () => passes(5000),
    683: () => api.feed('default', 'app', 'stream', 60),
    702: () => passes(Date.UTC(2026, 10, 21, 9, 43, 55) - api.clock.now()),
    706: () => passes(1000),
    714: () => api.feed('default', 'app', 'stream2', 60),
    721: () => api.orchestrator.application('default', 'app')?.stream('w1')?.terminate({ code: 'peer-left', detail: 'stopped' }),
    722: () =>
      api.orchestrator.application('default', 'app')?.streams.map((stream) => stream.terminate({ code: 'peer-left', detail: 'stopped' })),
    730: () => api.publish('dyn', 'live', 's1'),
    741: () => api.publish('dyn', 'live', 's1'),
  };

  for (const exchange of recordedExchanges().filter(({ n }) => !ELSEWHERE.has(n))) {
    test(`${exchange.n} ${exchange.name}`, async () => {
      await meanwhile[exchange.n]?.();
      const answer = parseAnswer(
        await api.raw(Buffer.from(here(requestBytes(exchange).toString('latin1')), 'latin1')),
        exchange.request.line.startsWith('HEAD '),
      );
      const deviation = deviations.get(exchange.n);
      if (deviation === undefined) expectSame(exchange, answer);
      else expectDeviation(exchange, answer, deviation);
    });
  }
});

function here(text: string): string {
  return text.replaceAll(RECORDED_FOLDER, DUMP_FOLDER);
}

function expectSame(exchange: Exchange, answer: RawAnswer): void {
  expect(answer.status, answer.body).toBe(exchange.response.status);
  expectSameHeaders(exchange, answer);
  const recorded = here(answerText(exchange));
  const own = Object.values(OWN_VALUES).some((numbers) => numbers.includes(exchange.n));
  if (!own) expect(answer.body).toBe(recorded);
  else expect(shapeDifference(comparable(recorded), comparable(answer.body))).toBeNull();
}

function expectSameHeaders(exchange: Exchange, answer: RawAnswer): void {
  for (const line of exchange.response.headers ?? []) {
    const [name = '', value = ''] = line.replaceAll('OvenMediaEngine', 'Millrace').split(/: (.*)/s);
    if (!VARYING_HEADERS.has(name.toLowerCase())) expect(answer.headers.get(name.toLowerCase()), name).toBe(value);
  }
}

/** A difference that no longer exists must be removed from the table. */
function expectDeviation(exchange: Exchange, answer: RawAnswer, deviation: Deviation): void {
  expect(answer.status, answer.body).toBe(deviation.status);
  const json = JSON.parse(answer.body);
  if (deviation.body !== undefined || deviation.shape !== undefined) expectSameHeaders(exchange, answer);
  if (deviation.body !== undefined) expect(json).toEqual(deviation.body(JSON.parse(answerText(exchange))));
  if (deviation.shape !== undefined)
    expect(shapeDifference(deviation.shape(comparable(answerText(exchange))), comparable(answer.body))).toBeNull();
  if (deviation.message !== undefined) expect(json.message).toMatch(deviation.message);
  const isSame = answer.status === exchange.response.status && shapeDifference(comparable(answerText(exchange)), json) === null;
  expect(isSame, 'the answer is as recorded').toBe(false);
}

/**
 * The JSON of an answer for comparison. Of stream information only the input is compared: outputs depend on codecs and publishers. Bit
 * rates are texts here (difference `bitrate-text`); tracks are matched by type. A failed recording has a reason (`record-reason`), and a
 * stopped recording still has its path (`record-stop-answer`).
 */
function comparable(text: string): unknown {
  const json = JSON.parse(text);
  for (const task of [json?.response].flat()) {
    if (task?.state === 'error') delete task.reason;
    if (task?.state === 'stopping') for (const path of ['outputFilePath', 'outputInfoPath']) delete task[path];
  }
  const tracks = json?.response?.input?.tracks;
  if (!Array.isArray(tracks)) return json;
  const byType = Object.fromEntries(tracks.map((track) => [track.type, JSON.parse(JSON.stringify(track, bitratesAsText))]));
  return { ...json, response: { ...json.response, input: { ...json.response.input, tracks: byType }, outputs: [] } };
}

function bitratesAsText(key: string, value: unknown): unknown {
  return key.startsWith('bitrate') ? String(value) : value;
}

test('the documentation names every difference, and only these', () => {
  const page = readFileSync(new URL('../../docs/reference/api-differences.md', import.meta.url), 'utf8');
  const documented = [...page.matchAll(/^\| `([a-z0-9-]+)` \|/gm)].map(([, id]) => id);
  expect(documented).toEqual(Object.keys(DIFFERENCES));
});

test('every deviation is about a recorded exchange', () => {
  const recorded = new Set(recordedExchanges().map(({ n }) => n));
  expect([...deviations.keys()].filter((n) => !recorded.has(n))).toEqual([]);
});

test('every answer with own values is recorded, has one reason, and is no deviation', () => {
  const recorded = new Set(recordedExchanges().map(({ n }) => n));
  const own = Object.values(OWN_VALUES).flat();
  expect(own.filter((n) => !recorded.has(n) || deviations.has(n))).toEqual([]);
  expect(new Set(own).size).toBe(own.length);
});
