import { expect, test } from 'vitest';
import { acknowledge, batch, batchFailure, batchSuccess, failure } from './envelope.ts';
import { ApiError, CATALOGUE, causedBy, diskReason, notSaved } from './errors.ts';

test('a failure to save names the error of the disk, and no path', () => {
  const refused = (code: string) =>
    notSaved(new ApiError('RECORD_NOT_SAVED', 'r'), Object.assign(new Error(`${code}: /secret`), { code, errno: -1 }));
  expect(refused('EROFS').message).toBe('Failed to save the recording task: [r]: the file system is read-only');
  expect(refused('ENODEV').message).toBe('Failed to save the recording task: [r]: the file system refused (ENODEV)');
  // The contract gives these words; a header has the reason.
  const deleted = notSaved(new ApiError('APP_DELETE_FAILED'), Object.assign(new Error('EROFS'), { code: 'EROFS', errno: -1 }));
  expect([deleted.message, deleted.cause]).toEqual(['Internal Server Error', expect.any(Error)]);
  expect(diskReason(deleted)).toBe('the file system is read-only');
  expect(diskReason(refused('EROFS'))).toBeNull();
  expect(diskReason(causedBy(new ApiError('INTERNAL'), new Error('bug')))).toBeNull();
  expect(notSaved(new ApiError('RECORD_NOT_SAVED', 'r'), new Error('bug')).message).toBe('Failed to save the recording task: [r]');
});

test('every entry of the catalogue has a status of its kind', () => {
  for (const [code, { status }] of Object.entries(CATALOGUE))
    expect(status, code).toBeOneOf([400, 401, 403, 404, 408, 409, 413, 416, 431, 500, 501, 502, 503]);
});

test('a name that resembles a placeholder is not replaced again', () => {
  expect(new ApiError('APP_NOT_FOUND', '{1}', 'b').message).toBe('Could not find the application: [{1}/b]');
});

test('an error is framed by its kind, and bare inside a batch', () => {
  const missing = new ApiError('VHOST_NOT_FOUND', 'é"');
  expect(failure(missing).body).toBe('{"message":"[HTTP] Could not find the virtual host: [\\u00e9\\"] (404)","statusCode":404}');
  expect(batchFailure(missing).json).toBe('{"message":"Could not find the virtual host: [\\u00e9\\"]","statusCode":404}');
  const config = new ApiError('CONFIG_INVALID', 'virtualHost.name is not optional');
  expect(failure(config).body).toBe('{"message":"[Config] virtualHost.name is not optional","statusCode":400}');
  expect(batchFailure(config).json).toBe('{"message":"[Config] virtualHost.name is not optional","statusCode":400}');
});

test('the status of a batch is the common one, else 207', () => {
  const good = batchSuccess({ a: 1 });
  const bad = batchFailure(new ApiError('VHOST_EXISTS', 'v'));
  expect(batch([])).toEqual({ status: 200, body: '[]' });
  expect(batch([good, good]).status).toBe(200);
  expect(batch([bad, bad]).status).toBe(409);
  expect(batch([good, bad])).toEqual({
    status: 207,
    body: '[{"message":"OK","response":{"a":1},"statusCode":200},{"message":"Conflict","statusCode":409}]',
    faults: [expect.objectContaining({ code: 'VHOST_EXISTS' })],
  });
});

test('an acknowledgement carries the reason phrase', () => {
  expect(acknowledge().body).toBe('{"message":"OK","statusCode":200}');
  expect(acknowledge(201).body).toBe('{"message":"Created","statusCode":201}');
});
