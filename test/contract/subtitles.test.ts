/** Subtitles sent to a stream: success, each refusal with its text, and the tracks in stream information. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { MAX_CUE_MS, MAX_CUE_SETTINGS, MAX_CUE_TEXT } from '../../src/core/subtitle-injector.ts';
import { audioTrack, videoTrack } from '../fakes/source.ts';
import { checkedCalls, done, error } from './checked-calls.ts';
import { type ApiHarness, startApi } from './harness.ts';

const STREAM = '/v1/vhosts/default/apps/subs/streams/s';

let api: ApiHarness;
beforeEach(async () => {
  api = await startApi();
  await api.publish('default', 'subs', 's');
  await api.feed('default', 'subs', 's', 60);
});
afterEach(() => api.close());

const { call } = checkedCalls(() => api);
const post = (body: unknown) => call('POST', `${STREAM}:sendSubtitles`, body);
const send = (...subtitles: readonly unknown[]) => post({ format: 'webvtt', data: [{ label: 'English', subtitles }] });
const desk = () => api.orchestrator.application('default', 'subs')?.stream('s')?.subtitles;

describe('sendSubtitles', () => {
  test('accepts cues for each label', async () => {
    const data = [
      { label: 'English', subtitles: [{ text: 'hi' }, { text: 'yo', startOffset: -500, durationMs: MAX_CUE_MS, settings: 'line:90%' }] },
      { label: 'Korean', subtitles: [{ text: '안녕', startOffset: null, durationMs: null, settings: null }] },
    ];
    expect(await post({ format: 'WEBVTT', data })).toEqual(done);
    expect(desk()?.counters).toEqual({ carried: 3, refused: 0 });
  });

  const member = (name: string, what: string) => error(400, `Invalid [data.subtitles.${name}] parameter: it must be ${what}`);
  const offset = member('startOffset', `a whole number from -${MAX_CUE_MS} to ${MAX_CUE_MS}`);
  const duration = member('durationMs', `a whole number from 1 to ${MAX_CUE_MS}`);
  const settings = member('settings', `cue settings of WebVTT of at most ${MAX_CUE_SETTINGS} characters, such as line:90%`);
  const text = { text: 'x' };
  test.each([
    [{ ...text, startOffset: MAX_CUE_MS + 1 }, offset],
    [{ ...text, durationMs: MAX_CUE_MS + 1 }, duration],
    [{ ...text, durationMs: 0 }, member('durationMs', 'a whole number from 1 on')],
    [{ ...text, durationMs: '1000' }, member('durationMs', 'a whole number from 1 on')],
    [{ ...text, settings: 'line:1 --> 00:00:01.000' }, settings],
    [{ ...text, settings: `line:${'1'.repeat(MAX_CUE_SETTINGS)}` }, settings],
    [{ ...text, settings: 5 }, member('settings', 'a text')],
    [{ text: 'x'.repeat(MAX_CUE_TEXT + 1) }, member('text', `a text of at most ${MAX_CUE_TEXT} characters`)],
    [{ ...text, durationMS: 5 }, error(400, 'Unknown parameter [data.subtitles.durationMS]: did you mean [data.subtitles.durationMs]?')],
    [{ text: 5 }, error(400, 'text(string) is required in subtitles')],
    ['x', error(400, 'text(string) is required in subtitles')],
  ])('%j is refused', async (cue, answer) => {
    expect(await send(text, cue)).toEqual(answer);
    expect(desk()?.counters.carried).toBe(0);
  });

  test.each([
    [{}, 'format(string) and data(array) are required'],
    [{ format: 'webvtt', data: [] }, 'format(string) and data(array) are required'],
    [{ format: 'webvtt', data: {} }, 'format(string) and data(array) are required'],
    [{ format: 'srt', data: [{}] }, 'format is not supported: [srt]'],
    [{ format: 'webvtt', data: [{ label: 'English' }] }, 'label(string) and subtitles(array) are required'],
    [{ format: 'webvtt', data: [{ label: 'English', subtitles: [] }] }, 'label(string) and subtitles(array) are required'],
    [{ format: 'webvtt', data: ['English'] }, 'label(string) and subtitles(array) are required'],
  ])('%j is refused', async (body, words) => {
    expect(await post(body)).toEqual(error(400, words));
  });

  test('limits the cues of a request and of a second', async () => {
    const many = Array.from({ length: 1001 }, () => text);
    expect(await send(...many)).toEqual(error(400, 'Invalid [data] parameter: it must be of at most 1000 subtitles'));
    expect(await send(...many.slice(1))).toEqual(done);
    expect(await send(text)).toEqual(error(500, 'Could not send WebVTT frame: [default/subs/s]'));
    api.clock.advance(20);
    expect(await send(text)).toEqual(done);
  });

  test('shows no cue of a refused request', async () => {
    const data = ['English', 'Klingon'].map((label) => ({ label, subtitles: [text] }));
    expect(await post({ format: 'webvtt', data })).toEqual(error(500, 'Could not send WebVTT frame: [default/subs/s]'));
    expect(desk()?.counters.carried).toBe(0);
    expect(await send(text)).toEqual(done);
    expect(await send(...Array.from({ length: 1000 }, () => text))).toEqual(error(500, 'Could not send WebVTT frame: [default/subs/s]'));
    expect(desk()?.counters.carried).toBe(1);
    // A refused cue leaves its budget unused.
    expect(await send(...Array.from({ length: 999 }, () => text))).toEqual(done);
  });

  test('shows no cue of a request when its last language exceeds the limit', async () => {
    const data = ['English', 'Korean'].map((label) => ({ label, subtitles: Array.from({ length: 500 }, () => text) }));
    expect(await send(text)).toEqual(done);
    expect(await post({ format: 'webvtt', data })).toEqual(error(500, 'Could not send WebVTT frame: [default/subs/s]'));
    expect(desk()?.counters.carried).toBe(1);
  });

  test('returns an error without media, without a rendition and without a stream', async () => {
    const request = { streamName: 'silent', provider: 'rtmp', sourceType: 'Rtmp', sourceUrl: 'TCP://127.0.0.1:1' } as const;
    const ingest = api.orchestrator.openIngest({ host: 'x', app: 'subs' }, { ...request, onClose: () => undefined });
    ingest.setTracks([videoTrack(), audioTrack()]);
    const silent = '/v1/vhosts/default/apps/subs/streams/silent:sendSubtitles';
    const body = { format: 'webvtt', data: [{ label: 'English', subtitles: [text] }] };
    expect(await call('POST', silent, body)).toEqual(error(500, 'Could not get current timestamp: [default/subs/silent]'));
    expect(await post({ ...body, data: [{ label: 'english', subtitles: [text] }] })).toEqual(
      error(500, 'Could not send WebVTT frame: [default/subs/s]'),
    );
    expect((await call('POST', '/v1/vhosts/default/apps/subs/streams/nope:sendSubtitles', body)).status).toBe(404);
  });
});

test('stream information lists subtitle tracks of the input and the output', async () => {
  const { json } = await call('GET', STREAM);
  const told = (tracks: readonly { id: number; name: string; type: string }[]) => tracks.filter(({ type }) => type === 'Subtitle');
  const subtitle = { name: 'subtitle', type: 'Subtitle' };
  expect(told(json.response.input.tracks)).toEqual([
    { id: 3, ...subtitle },
    { id: 4, ...subtitle },
  ]);
  expect(told(json.response.outputs[0].tracks)).toEqual([
    { id: 3, ...subtitle },
    { id: 4, ...subtitle },
  ]);
});
