/** Pushed and pulled streams: success, each status, and the text of each refusal. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { IngestRefused } from '../../src/core/ingest.ts';
import { MemoryPullStore } from '../fakes/fake-pull-source.ts';
import { type Answer, checkedCalls, done, error, FILE_APP, found } from './checked-calls.ts';
import { type ApiHarness, startApi } from './harness.ts';

let api: ApiHarness;
beforeEach(async () => {
  api = await startApi();
});
afterEach(() => api.close());

const { call } = checkedCalls(() => api);

describe('streams', () => {
  const STREAMS = `${FILE_APP}/streams`;
  const missing = error(404, 'Could not find the stream: [default/#default#app/nope]');

  test('are listed in the order of their start', async () => {
    await api.publish('default', 'app', 'z');
    await api.publish('default', 'app', 'a');
    expect(await call('GET', STREAMS)).toEqual(found(['z', 'a']));
    expect(await call('GET', '/v1/vhosts/default/apps/nope/streams')).toEqual(error(404, 'Could not find the application: [default/nope]'));
  });

  test('show the tracks of the input and of the outputs', async () => {
    await api.publish('default', 'app', 's');
    const { json } = await call('GET', `${STREAMS}/s`);
    expect(json.response).toMatchObject({ name: 's', input: { sourceType: 'Rtmp', sourceUrl: 'TCP://198.51.100.7:50412' } });
    expect(json.response.input.tracks.map(({ type }: Answer) => type)).toEqual(['Video', 'Audio', 'Data']);
    expect(json.response.input.tracks[0].video).toMatchObject({ codec: 'H264', width: 320, height: 180, bypass: false, framerate: 30 });
    expect(json.response.outputs.map(({ name }: Answer) => name)).toEqual(['s']);
    const { body } = await api.send({ path: `${STREAMS}/s` });
    expect(body).toContain('"framerate":30.0,');
    expect(body).toMatch(/"keyFrameInterval":30,"keyFrameIntervalAvg":30\.0,"keyFrameIntervalConf":0\.0,"keyFrameIntervalLatest":30,/);
  });

  test.each([`${STREAMS}/nope`, '/v1/vhosts/default/apps/nope/streams/s'])('are 404 at %s', async (path) => {
    const either = { message: 'Could not find the application or stream (404)', statusCode: 404 };
    expect(await call('GET', path)).toEqual({ status: 404, json: either });
  });

  test('are returned together with their statistics, in the requested order, without missing streams', async () => {
    for (const name of ['z', 'a', 'm']) await api.publish('default', 'app', name);
    const many = '/v2/vhosts/default/apps/app/streams';
    const names = async (query: string): Promise<string[]> =>
      (await call('GET', `${many}${query}`)).json.response.map(({ information }: Answer) => information.name);
    expect(await names('?names=m/nope/z')).toEqual(['m', 'z']);
    expect(await names('')).toEqual(['z', 'a', 'm']);
    expect(await names('?names=')).toEqual([]);
    const { json } = await call('GET', `${many}?names=a`);
    const [alone, figures] = [await call('GET', `${STREAMS}/a`), await call('GET', '/v1/stats/current/vhosts/default/apps/app/streams/a')];
    expect(json.response).toEqual([{ information: alone.json.response, statistics: figures.json.response }]);
    const tooMany = Array.from({ length: 51 }, (_, n) => `s${n}`).join('/');
    expect(await call('GET', `${many}?names=${tooMany}`)).toEqual(error(400, 'At most 50 streams may be asked for at once, not 51'));
  });

  test('are terminated: the publisher is disconnected', async () => {
    const closed = await api.publish('default', 'app', 's');
    expect(await call('DELETE', `${STREAMS}/s`)).toEqual(done);
    expect(closed.map(({ code }) => code)).toEqual(['deleted']);
    expect(await call('GET', STREAMS)).toEqual(found([]));
    expect(await call('DELETE', `${STREAMS}/nope`)).toEqual(missing);
  });

  test.each([
    [[], 'Request body must be an object'],
    [{}, 'Stream name or urls is required'],
    [{ name: 1, urls: ['rtsp://h/x'] }, 'Stream name or urls is required'],
    [{ name: 'p', urls: 'rtsp://h/x' }, 'Stream name or urls is required'],
    [{ name: 'p', urls: [] }, 'Urls must be at least one'],
    [{ name: 'p', urls: [5] }, 'Url must be a string'],
  ])('%j does not ask for a pull', async (body, text) => {
    expect(await call('POST', STREAMS, body)).toEqual(error(400, text));
  });

  test('are not pulled from URLs of several schemes, or under a name with a slash', async () => {
    const urls = ['rtsp://h/x', 'ovt://h/x'];
    expect(await call('POST', STREAMS, { name: 'p', urls })).toEqual(error(400, 'Urls must have the same scheme'));
    const text = 'Stream name must not be empty or contain / : ? # or white space: [a/b]';
    expect(await call('POST', STREAMS, { name: 'a/b', urls: ['rtsp://h/x'] })).toEqual(error(400, text));
    expect(api.rtsp.asked).toEqual([]);
  });

  test.each([
    ['properties', 'an object', { properties: 5 }],
    ['properties', 'an object', { properties: [] }],
    ['properties.persistent', 'true or false', { properties: { persistent: 'true' } }],
    ['properties.relay', 'true or false', { properties: { relay: 1 } }],
    ['properties.ignoreRtcpSRTimestamp', 'true or false', { properties: { ignoreRtcpSRTimestamp: '' } }],
    ['properties.noInputFailoverTimeoutMs', 'a whole number', { properties: { noInputFailoverTimeoutMs: '3000' } }],
    ['properties.unusedStreamDeletionTimeoutMs', 'a whole number', { properties: { unusedStreamDeletionTimeoutMs: 0.5 } }],
    ['properties.retryCount', 'a whole number', { properties: { retryCount: {} } }],
  ])('are not pulled with an invalid %s', async (member, words, more) => {
    const body = { name: 'p', urls: ['rtsp://h/x'], ...more };
    expect(await call('POST', STREAMS, body)).toEqual(error(400, `Invalid [${member}] parameter: it must be ${words}`));
    expect(api.rtsp.asked).toEqual([]);
  });

  test('are not pulled with a misspelt member', async () => {
    const body = { name: 'p', urls: ['rtsp://h/x'], properties: { Persistent: true } };
    const text = 'Unknown parameter [properties.Persistent]: did you mean [properties.persistent]?';
    expect(await call('POST', STREAMS, body)).toEqual(error(400, text));
  });

  const PLAYS = 'rtsp://user:secret@127.0.0.1:1/app/stream';
  const failed = error(502, 'Could not pull the stream : http://127.0.0.1/v1/vhosts/default/apps/app/streams');
  const createdAnswer = { status: 201, json: { message: 'Created', statusCode: 201 } };

  test('are pulled, listed with their source, and deleted', async () => {
    expect(await call('POST', STREAMS, { name: 'p', urls: [PLAYS] })).toEqual(createdAnswer);
    const { json } = await call('GET', `${STREAMS}/p`);
    expect(json.response.input).toMatchObject({ sourceType: 'RtspPull', sourceUrl: 'rtsp://127.0.0.1:1/app/stream' });
    expect(await call('POST', STREAMS, { name: 'p', urls: [PLAYS] })).toEqual(error(409, 'Stream already exists'));
    expect(await call('DELETE', `${STREAMS}/p`)).toEqual(done);
    expect(api.rtsp.opened.map(({ closed }) => closed)).toEqual([true]);
    expect(await call('GET', STREAMS)).toEqual(found([]));
  });

  test('are shown without the credentials of their URL', async () => {
    const url = 'rtsp://user:secret@127.0.0.1:1/x?token=secret&a=b&Signature=secret&policy=secret&key=secret#/app/stream';
    expect(await call('POST', STREAMS, { name: 'p', urls: [url] })).toEqual(createdAnswer);
    const { json } = await call('GET', `${STREAMS}/p`);
    expect(json.response.input.sourceUrl).toBe('rtsp://127.0.0.1:1/x?token=***&a=b&Signature=***&policy=***&key=***#/app/stream');
    expect(api.rtsp.asked).toEqual([url]);
    expect(JSON.stringify(api.logger.lines)).not.toContain('secret');
  });

  test('are pulled from the next URL when the first fails, and answered with 502 when all fail', async () => {
    expect(await call('POST', STREAMS, { name: 'p', urls: ['rtsp://h/a', PLAYS] })).toEqual(createdAnswer);
    expect(await call('POST', STREAMS, { name: 'q', urls: ['rtsp://h/a', 'rtsp://h/b'] })).toEqual(failed);
    expect(await call('POST', STREAMS, { name: 'q', urls: ['srt://u:secret@h/a'] })).toEqual(failed);
    expect(
      api.logger.lines.filter(({ message }) => message.startsWith("stream 'q' cannot")).map(({ level, message }) => [level, message]),
    ).toEqual([
      ['warn', "stream 'q' cannot be pulled: refused by the test"],
      ['warn', "stream 'q' cannot be pulled: scheme 'srt' cannot be pulled"],
    ]);
    expect(JSON.stringify(api.logger.lines)).not.toContain('secret');
    expect(await call('GET', STREAMS)).toEqual(found(['p']));
    expect(api.rtsp.asked).toEqual(['rtsp://h/a', PLAYS, 'rtsp://h/a', 'rtsp://h/b']);
    const why = async (url: string): Promise<string | undefined> =>
      (await api.send({ method: 'POST', path: STREAMS, body: JSON.stringify({ name: 'q', urls: [url] }) })).headers.get('millrace-reason');
    expect(await why('rtsp://u:secret@h/a')).toBe('refused by the test');
    expect(await why('srt://u:secret@h/a')).toBe("scheme 'srt' cannot be pulled");
    expect(api.logger.lines.filter(({ level }) => level === 'error')).toEqual([]);
  });

  test('are not pulled when the provider is disabled, and the log names the provider', async () => {
    await call('POST', '/v1/vhosts', [{ name: 'w', host: { names: ['w'] } }]);
    await call('POST', '/v1/vhosts/w/apps', [{ name: 'a', type: 'live', providers: { rtmp: {} } }]);
    const { status } = await call('POST', '/v1/vhosts/w/apps/a/streams', { name: 'off', urls: [PLAYS] });
    expect(status).toBe(502);
    await api.logger.line("stream 'off' cannot be pulled: provider 'rtsppull' is not enabled in application 'a'");
  });

  test('wait for their source under their name: a second pull of it is refused meanwhile', async () => {
    const both = await Promise.all([1, 2].map(() => call('POST', STREAMS, { name: 'p', urls: [PLAYS] })));
    expect(both.map(({ status }) => status).sort()).toEqual([201, 409]);
  });

  test('continue with the next URL when the source ends or falls silent, under the same stream', async () => {
    const other = 'rtsp://127.0.0.1:2/app/stream';
    const properties = { noInputFailoverTimeoutMs: 2000, unusedStreamDeletionTimeoutMs: 600_000 };
    await call('POST', STREAMS, { name: 'p', urls: [PLAYS, other], properties });
    const stream = api.orchestrator.application('default', 'app')!.stream('p')!;
    api.rtsp.deliver();
    api.rtsp.opened[0]!.target.sink.close({ code: 'peer-left', detail: 'bye' });
    await api.until(() => api.rtsp.opened.length === 2);
    await api.until(() => stream.sourceUrl === other);
    api.rtsp.deliver();
    api.clock.advance(2001);
    await api.until(() => api.rtsp.opened.length === 3);
    expect(api.rtsp.opened.map(({ closed }) => closed)).toEqual([true, true, false]);
    expect(api.orchestrator.application('default', 'app')!.stream('p')).toBe(stream);
  });

  test('are deleted when every URL has failed as often as allowed', async () => {
    await call('POST', STREAMS, { name: 'p', urls: [PLAYS], properties: { retryCount: 1 } });
    api.rtsp.plays = () => false;
    api.rtsp.opened[0]!.target.sink.close({ code: 'peer-left', detail: 'bye' });
    await api.until(() => api.orchestrator.application('default', 'app')!.stream('p') === undefined);
    // The lost connection without a packet is the first failure, the retry the second.
    expect(api.rtsp.asked).toHaveLength(2);
  });

  test('are deleted without viewers, unless they are persistent', async () => {
    const properties = { unusedStreamDeletionTimeoutMs: 5000, noInputFailoverTimeoutMs: 600_000 };
    await call('POST', STREAMS, { name: 'p', urls: [PLAYS], properties });
    await call('POST', STREAMS, { name: 'kept', urls: [PLAYS], properties: { ...properties, persistent: true } });
    api.clock.advance(5001);
    await api.until(() => api.orchestrator.application('default', 'app')!.stream('p') === undefined);
    expect(await call('GET', STREAMS)).toEqual(found(['kept']));
  });

  test('are kept while their source is away when they are persistent, and continue when it returns', async () => {
    await call('POST', STREAMS, { name: 'p', urls: [PLAYS], properties: { persistent: true, retryCount: 0 } });
    api.rtsp.plays = () => false;
    api.rtsp.opened[0]!.target.sink.close({ code: 'peer-left', detail: 'bye' });
    await api.until(() => api.rtsp.asked.length === 4);
    expect(await call('GET', STREAMS)).toEqual(found(['p']));
    api.rtsp.plays = () => true;
    await api.until(() => api.rtsp.opened.length === 2);
  });

  test('are on disk before the answer when they are persistent, and off it before that of their deletion', async () => {
    const body = { name: 'p', urls: [PLAYS], properties: { persistent: true, relay: true, ignoreRtcpSRTimestamp: true } };
    api.pullStore.full = true;
    expect((await call('POST', STREAMS, body)).status).toBe(500);
    expect(await call('GET', STREAMS)).toEqual(found([]));
    api.pullStore.full = false;
    expect(await call('POST', STREAMS, body)).toEqual(createdAnswer);
    expect([...api.pullStore.documents.values()]).toMatchObject([{ vhost: 'default', app: 'app', ...body }]);
    expect(api.rtsp.opened.at(-1)?.target.ignoreSenderReports).toBe(true);
    expect(await call('DELETE', `${STREAMS}/p`)).toEqual(done);
    expect(api.pullStore.documents.size).toBe(0);
  });

  test.each([
    ['nothing', {}],
    ['no valid time', { noInputFailoverTimeoutMs: 0, unusedStreamDeletionTimeoutMs: -9, retryCount: -1, ignoreRtcpSRTimestamp: null }],
  ])('use the times of their virtual host, or the default times, with %s in the request', async (_what, odd) => {
    const standard = { noInputFailoverTimeoutMs: 3000, unusedStreamDeletionTimeoutMs: 60_000 };
    const rest = { persistent: true, retryCount: 1, ignoreRtcpSRTimestamp: false, relay: false };
    await call('POST', STREAMS, { name: 'p', urls: [PLAYS], properties: { ...odd, persistent: true } });
    expect(api.pullStore.documents.get('p')?.properties).toEqual({ ...standard, ...rest });
    expect(api.rtsp.opened.at(-1)?.target.ignoreSenderReports).toBe(false);
    const origins = { properties: { noInputFailoverTimeout: 1234, unusedStreamDeletionTimeout: 5678 } };
    await call('POST', '/v1/vhosts', [{ name: 'made', host: { names: ['made.test'] }, origins }]);
    await call('POST', '/v1/vhosts/made/apps', [{ name: 'app', type: 'live', providers: { rtspPull: {} } }]);
    await call('POST', '/v1/vhosts/made/apps/app/streams', { name: 'q', urls: [PLAYS], properties: { ...odd, persistent: true } });
    expect(api.pullStore.documents.get('q')?.properties).toEqual({
      ...{ ...rest, noInputFailoverTimeoutMs: 1234, unusedStreamDeletionTimeoutMs: 5678 },
    });
  });

  test('are restored after a restart of their application when they are persistent, and deleted with it', async () => {
    const APPS = '/v1/vhosts/made/apps';
    await call('POST', '/v1/vhosts', [{ name: 'made', host: { names: ['made.test'] } }]);
    await call('POST', APPS, [{ name: 'app', type: 'live', providers: { rtspPull: {}, rtmp: {} } }]);
    await call('POST', `${APPS}/app/streams`, { name: 'kept', urls: [PLAYS], properties: { persistent: true } });
    await call('POST', `${APPS}/app/streams`, { name: 'passing', urls: [PLAYS] });
    expect((await call('PATCH', `${APPS}/app`, { providers: { webrtc: { timeout: 1 } } })).status).toBe(200);
    await api.until(() => api.orchestrator.application('made', 'app')?.stream('kept') !== undefined);
    await api.until(() => api.rtsp.opened.length === 3);
    expect(await call('GET', `${APPS}/app/streams`)).toEqual(found(['kept']));
    expect(api.rtsp.opened.map(({ closed }) => closed)).toEqual([true, true, false]);
    expect(api.pullStore.documents.size).toBe(1);
    expect((await call('DELETE', `${APPS}/app`)).status).toBe(200);
    await api.until(() => api.pullStore.documents.size === 0);
  });

  test('exist until they are deleted when they are persistent, also while their provider is switched off', async () => {
    const APP = '/v1/vhosts/made/apps/app';
    await call('POST', '/v1/vhosts', [{ name: 'made', host: { names: ['made.test'] } }]);
    await call('POST', '/v1/vhosts/made/apps', [{ name: 'app', type: 'live', providers: { rtmp: {} } }]);
    const given = { persistent: true, noInputFailoverTimeoutMs: 3000, unusedStreamDeletionTimeoutMs: 60_000 };
    const properties = { ...given, retryCount: 1, ignoreRtcpSRTimestamp: false, relay: false };
    for (const name of ['one', 'two']) {
      const document = { vhost: 'made', app: 'app', name, urls: ['rtsp://user:secret@camera/x'], properties };
      await api.pullStore.save(document);
      expect(() => api.pulls.restore(document)).toThrow('is not enabled');
    }
    expect(await call('GET', `${APP}/streams`)).toEqual(found(['one', 'two']));
    expect(await call('GET', STREAMS)).toEqual(found([]));
    const { json } = await call('GET', `${APP}/streams/one`);
    expect(json.response).toEqual({
      name: 'one',
      input: { createdTime: expect.any(String), sourceType: 'RtspPull', sourceUrl: 'rtsp://camera/x', tracks: [] },
      outputs: [],
    });
    // In lists of several streams, a waiting stream has no statistics.
    const together = await call('GET', `${APP.replace('/v1', '/v2')}/streams?names=one`);
    expect(together.json.response).toEqual([{ information: json.response }]);
    expect((await call('POST', `${APP}/streams`, { name: 'one', urls: [PLAYS] })).status).toBe(409);
    expect(await call('DELETE', `${APP}/streams/one`)).toEqual(done);
    expect([...api.pullStore.documents.keys()]).toEqual(['two']);
    for (const method of ['GET', 'DELETE']) expect((await call(method, `${APP}/streams/one`)).status).toBe(404);
    expect(await call('GET', `${APP}/streams`)).toEqual(found(['two']));
    // If another stream has taken the name, it is listed once, and deleted together with the waiting pull.
    await api.publish('made', 'app', 'two');
    expect(await call('GET', `${APP}/streams`)).toEqual(found(['two']));
    expect((await call('GET', `${APP}/streams/two`)).json.response.input.sourceType).toBe('Rtmp');
  });

  test.each(['/v1/vhosts/made/apps/app', '/v1/vhosts/made'])(
    'do not wait for another application of the name when %s is deleted',
    async (path) => {
      await call('POST', '/v1/vhosts', [{ name: 'made', host: { names: ['made.test'] } }]);
      await call('POST', '/v1/vhosts/made/apps', [{ name: 'app', type: 'live', providers: { rtspPull: {} } }]);
      await call('POST', '/v1/vhosts/made/apps/app/streams', { name: 'p', urls: [PLAYS], properties: { persistent: true } });
      const document = { ...api.pullStore.documents.get('p')!, name: 'q' };
      await call('DELETE', '/v1/vhosts/made/apps/app/streams/p');
      await call('DELETE', '/v1/vhosts/made/apps/app');
      await call('POST', '/v1/vhosts/made/apps', [{ name: 'app', type: 'live', providers: { rtmp: {} } }]);
      const other = { ...document, vhost: 'default', name: 'other' };
      await api.pullStore.save(document);
      await api.pullStore.save(other);
      expect(() => api.pulls.restore(document)).toThrow('is not enabled');
      expect((await call('DELETE', path)).status).toBe(200);
      expect([...api.pullStore.documents.keys()]).toEqual(['other']);
      expect(api.pulls.waiting).toBe(0);
    },
  );

  test.each([
    ['/v1/vhosts/made/apps/app', 'Internal Server Error'],
    ['/v1/vhosts/made', 'Internal Server Error'],
  ])('keep playing, or waiting, on disk when %s cannot be deleted', async (path, text) => {
    const APP = '/v1/vhosts/made/apps/app';
    await call('POST', '/v1/vhosts', [{ name: 'made', host: { names: ['made.test'] } }]);
    await call('POST', '/v1/vhosts/made/apps', [{ name: 'app', type: 'live', providers: { rtspPull: {}, rtmp: {} } }]);
    await call('POST', `${APP}/streams`, { name: 'plays', urls: [PLAYS], properties: { persistent: true } });
    const waits = { ...api.pullStore.documents.get('plays')!, name: 'waits' };
    await api.pullStore.save(waits);
    const closed = await api.publish('made', 'app', 'waits');
    expect(() => api.pulls.restore(waits)).toThrow(IngestRefused);
    const isAsBefore = async () => {
      expect([...api.pullStore.documents.keys()].toSorted()).toEqual(['plays', 'waits']);
      expect(await call('GET', `${APP}/streams`)).toEqual(found(['plays', 'waits']));
      expect([api.rtsp.opened.map((pull) => pull.closed), closed, api.pulls.waiting]).toEqual([[false], [], 1]);
    };
    const refusals: (() => void)[] = [
      () => {
        api.pullStore.full = true;
      },
      // The first stream is already removed from the disk.
      () => {
        api.pullStore.remove = async (document) => {
          if (document.name === 'waits') throw new Error('the disk is broken');
          await MemoryPullStore.prototype.remove.call(api.pullStore, document);
        };
      },
      () => {
        api.store.full = true;
      },
    ];
    for (const refuse of refusals) {
      refuse();
      expect(await call('DELETE', path)).toEqual(error(500, text));
      await isAsBefore();
      api.pullStore.full = false;
      api.pullStore.remove = MemoryPullStore.prototype.remove;
      api.store.full = false;
    }
    expect(await call('DELETE', path)).toEqual(done);
    expect([api.pullStore.documents.size, api.rtsp.opened.map((pull) => pull.closed), api.pulls.waiting]).toEqual([0, [true], 0]);
  });

  test('need their provider in the application', async () => {
    await call('POST', '/v1/vhosts', [{ name: 'made', host: { names: ['made.test'] } }]);
    await call('POST', '/v1/vhosts/made/apps', [{ name: 'app', type: 'live', providers: { rtmp: {} } }]);
    const path = '/v1/vhosts/made/apps/app/streams';
    const { status, headers } = await api.send({ method: 'POST', path, body: JSON.stringify({ name: 'p', urls: [PLAYS] }) });
    expect([status, headers.get('millrace-reason')]).toEqual([502, "provider 'rtsppull' is not enabled in application 'app'"]);
    expect(api.rtsp.asked).toEqual([]);
  });

  test('pass untouched when they are relayed', async () => {
    await call('POST', STREAMS, { name: 'p', urls: [PLAYS], properties: { relay: true } });
    const { json } = await call('GET', `${STREAMS}/p`);
    expect(json.response.outputs.map(({ name }: Answer) => name)).toEqual(['p']);
    const tracks: Answer[] = json.response.outputs[0].tracks;
    expect(tracks.map(({ name }) => name)).toEqual(['video_0', 'audio_0', 'Data']);
  });
});
