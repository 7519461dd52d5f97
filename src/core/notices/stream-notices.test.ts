import { beforeEach, expect, test } from 'vitest';
import { ManualClock } from '../../../test/fakes/manual-clock.ts';
import type { Notice } from './notice.ts';
import { StreamNotices } from './stream-notices.ts';

const FIRST = { sourceType: 'Rtmp', sourceUrl: 'TCP://198.51.100.7:1' };
const SECOND = { sourceType: 'Rtmp', sourceUrl: 'TCP://198.51.100.7:2' };

let told: Notice[];
let stream: StreamNotices;
const types = () => told.splice(0).map(({ type }) => type);

beforeEach(() => {
  told = [];
  stream = new StreamNotices({ post: (notice) => told.push(notice) }, { vhost: 'v', app: 'a', stream: 's' }, new ManualClock());
});

test('posts the start of the stream once, and of each output, across changes of tracks', () => {
  for (let n = 0; n < 2; n += 1) {
    stream.listed(FIRST);
    for (const output of ['one', 'two']) stream.ready(output);
  }
  expect(types()).toEqual(['stream.created', 'stream.ready', 'stream.ready']);
});

test('posts another source, and the same source only after its loss', () => {
  stream.sourceCame(FIRST);
  stream.listed(FIRST);
  stream.sourceCame(FIRST);
  expect(types()).toEqual(['stream.created']);
  stream.sourceCame(SECOND);
  stream.sourceLost({ code: 'peer-left', detail: 'it left' });
  stream.sourceCame(SECOND);
  stream.sourceCame(SECOND);
  expect(types()).toEqual(['stream.sourceChanged', 'stream.sourceLost', 'stream.sourceChanged']);
});

test('a stream that was never listed posts no end', () => {
  stream.sourceLost({ code: 'peer-left', detail: 'it left' });
  stream.ended({ code: 'peer-left', detail: 'it left' });
  expect(types()).toEqual([]);
});
