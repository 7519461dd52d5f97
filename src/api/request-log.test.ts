import { expect, test } from 'vitest';
import { RecordingLogger } from '../../test/fakes/recording-logger.ts';
import { until } from '../../test/harness/poll.ts';
import { mostInATurn } from '../../test/support/turns-during.ts';
import { type Answer, acknowledge, batch, batchFailure, batchSuccess, failure } from './envelope.ts';
import { ApiError } from './errors.ts';
import { RequestLog } from './request-log.ts';

const APP = '/v1/vhosts/default/apps/app';

/** The log lines about one request. */
function told(method: string, answer: Answer, more: { readonly target?: string; readonly body?: unknown; readonly reads?: boolean } = {}) {
  const logger = new RecordingLogger();
  const asked = { target: APP, body: undefined, reads: false, peer: '192.0.2.7', token: 'panel', ...more };
  new RequestLog(logger).answered({ method }, asked, answer);
  return logger.lines.map(({ message, fields }) => ({ message, ...fields }));
}

test('a refusal is logged with its reason and its code', () => {
  const line = { method: 'DELETE', target: APP, status: 404, peer: '192.0.2.7', token: 'panel', code: 'APP_NOT_FOUND' };
  expect(told('DELETE', failure(new ApiError('APP_NOT_FOUND', 'default', 'app')))).toEqual([
    { ...line, message: 'API request refused: Could not find the application: [default/app]' },
  ]);
});

test('a failure logs its reason in addition to the text of the contract', () => {
  const answer = { ...failure(new ApiError('STREAM_PULL_FAILED', 'rtsp://cam/1')), reason: 'connection refused' };
  expect(told('POST', answer)[0]?.message).toMatch(/^API request failed: Could not pull the stream.*; connection refused$/);
});

test('a batch logs each reason once, and at most three', () => {
  const bad = ['a', 'b', 'c', 'd', 'd'].map((name) => batchFailure(new ApiError('VHOST_EXISTS', name)));
  expect(told('POST', batch([batchSuccess({}), ...bad]))[0]?.message).toBe(
    'API request partly refused: The virtual host already exists: [a]; The virtual host already exists: [b]; The virtual host already exists: [c]; 1 more',
  );
  expect(told('POST', batch(bad))[0]?.message).toMatch(/^API request refused: /);
});

test('refused reads are logged, ordinary reads are not', () => {
  expect(told('GET', failure(new ApiError('HOST_NOT_ALLOWED', 'evil.example')))).toHaveLength(1);
  expect(told('POST', failure(new ApiError('TOKEN_READ_ONLY', 'panel', 'POST')), { reads: true })).toHaveLength(1);
  for (const code of ['STREAM_NOT_FOUND', 'AUTH_HEADER_REQUIRED', 'RANGE_OUTSIDE'] as const) {
    expect(told('GET', failure(new ApiError(code, 'a', 'b', 'c'))), code).toEqual([]);
  }
  expect(told('GET', acknowledge())).toEqual([]);
  expect(told('POST', acknowledge(), { reads: true })).toEqual([]);
  expect(told('POST', acknowledge())[0]?.message).toBe('API request answered');
});

test('secrets of the address and of the body are left out, and long texts are cut', () => {
  const body = { streamKey: 'abc-key', url: 'rtmp://u:p4ss@h/x' };
  const echo = new ApiError('CONFIG_INVALID', `streamKey 'abc-key' and rtmp://u:p4ss@h/x\n are ${'x'.repeat(1000)}`);
  const [line] = told('POST', failure(echo), { body, target: `${APP}?token=abcdefgh` });
  expect(line).toMatchObject({ target: `${APP}?token=***` });
  expect(line?.message).toMatch(/^API request refused: streamKey '\*\*\*' and \*\*\* are x{400,500}…$/);
  expect(told('POST', failure(echo), { target: `/${'y'.repeat(5000)}` })[0]).toMatchObject({
    target: expect.stringMatching(/^\/y{499}…$/),
  });
});

test('the secrets of a large body are looked for a few in a turn of the event loop', async () => {
  let reads = 0;
  const items = Array.from({ length: 2000 }, (_, n) => ({
    get url(): string {
      reads += 1;
      return `rtmp://host/app/stream?token=secret-${n}`;
    },
  }));
  const logger = new RecordingLogger();
  const answer = failure(new ApiError('SCHEDULE_INVALID', 'programs: secret-17 is wrong'));
  const asked = { target: APP, body: { programs: [{ items }] }, reads: false, peer: undefined, token: 'panel' };
  const most = await mostInATurn(
    () => reads,
    async () => {
      new RequestLog(logger).answered({ method: 'POST' }, asked, answer);
      await until('the line', () => logger.lines.length > 0);
    },
  );
  expect(most).toBeLessThan(200);
  expect(reads).toBe(2000);
  expect(logger.lines[0]?.message).toContain('programs: *** is wrong');
});
