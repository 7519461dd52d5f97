/** Events beyond the recorded requests: limits, types, and times of refusal. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { videoTrack } from '../fakes/source.ts';
import { error } from './checked-calls.ts';
import { type ApiHarness, startApi } from './harness.ts';

const STREAM = '/v1/vhosts/default/apps/app/streams/s';
const ID3 = { eventFormat: 'id3v2', events: [{ frameType: 'TXXX', info: 'a', data: 'b' }] };

let api: ApiHarness;
beforeAll(async () => {
  api = await startApi();
  await api.publish('default', 'app', 's');
  const request = { streamName: 'empty', provider: 'rtmp', sourceType: 'Rtmp', sourceUrl: 'TCP://x', onClose: () => undefined } as const;
  api.orchestrator.application('default', 'app')?.openIngest(request).setTracks([videoTrack()]);
  await api.feed('default', 'app', 's', 60);
});
afterAll(() => api.close());

const splice = (members: object) => ({ eventFormat: 'scte35', events: [{ id: 1, type: 'out', ...members }] });

test.each([
  [{ ...ID3, eventType: 'subtitle' }, 'eventType is not supported: [subtitle]'],
  [{ ...ID3, urgent: 'yes' }, 'Invalid [urgent] parameter: it must be true or false'],
  [{ ...ID3, Urgent: true }, 'Unknown parameter [Urgent]: did you mean [urgent]?'],
  [{ ...ID3, events: [] }, 'eventFormat(string) and events(array) are required'],
  [{ ...ID3, events: [7] }, 'frameType is required in events'],
  [{ ...ID3, events: [{ frameType: 'TXXX', data: 7 }] }, 'Invalid [events.data] parameter: it must be a text'],
  [{ ...ID3, events: [{ frameType: 'TXXX', data: 'x'.repeat(60_001) }] }, 'Could not make events data'],
  [{ ...ID3, events: [{ frameType: 'Tö12' }] }, 'frameType is not supported: [Tö12]'],
  [{ eventFormat: 'sei', events: [{}] }, 'eventFormat is not supported: [sei]'],
  [
    { eventFormat: 'cue', events: [{ cueType: 'out', duration: 2 ** 32 }] },
    'Invalid [events.duration] parameter: it must be a whole number from 0 to 4294967295',
  ],
  [
    { eventFormat: 'cue', events: [{ cueType: 'out', duration: 1.5 }] },
    'Invalid [events.duration] parameter: it must be a whole number from 0 on',
  ],
  [splice({ id: -1 }), 'Invalid [events.id] parameter: it must be a whole number from 0 to 4294967295'],
  [splice({ duration: 95_443_718 }), 'Invalid [events.duration] parameter: it must be a whole number from 0 to 95443717'],
  [splice({ type: 'up' }), "type must be 'out' or 'in'"],
  [splice({ autoReturn: 'no' }), 'Invalid [events.autoReturn] parameter: it must be true or false'],
])('%j is refused', async (body, text) => {
  expect(await api.call('POST', `${STREAM}:sendEvent`, body)).toEqual(error(400, text));
});

test('a stream without media refuses events and a conclusion with an error', async () => {
  const empty = STREAM.replace(/s$/, 'empty');
  const words = 'Internal Server Error - Could not inject';
  expect(await api.call('POST', `${empty}:sendEvent`, ID3)).toEqual(error(500, `${words} event: [default/app/empty]`));
  expect(await api.call('POST', `${empty}:concludeHlsLive`, {})).toEqual(error(500, `${words} ConcludeLive event: [default/app/empty]`));
});

test('floods are refused one by one', async () => {
  api.clock.advance(10_000);
  const { status, json } = await api.call(
    'POST',
    `${STREAM}:sendEvents`,
    Array.from({ length: 101 }, () => ID3),
  );
  expect(status).toBe(207);
  const codes = (json as { statusCode: number }[]).map(({ statusCode }) => statusCode);
  expect([codes.filter((code) => code === 200).length, codes.at(-1)]).toEqual([100, 500]);
});

test.each([[{ urgent: 1 }, 'Invalid [urgent] parameter: it must be true or false']])(
  'a conclusion with %j is refused',
  async (body, text) => {
    expect(await api.call('POST', `${STREAM}:concludeHlsLive`, body)).toEqual(error(400, text));
  },
);
