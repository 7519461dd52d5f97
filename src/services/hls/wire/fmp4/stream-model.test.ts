import { expect, test } from 'vitest';
import { StreamModel } from './stream-model.ts';

test('a segment moved to a file keeps no references to its bytes in memory', () => {
  const model = new StreamModel();
  const [trackId, msn] = [1, 0];
  const spans = [{ block: 1, offset: 0, length: 100 }];
  model.apply({ type: 'track', trackId, mediaType: 'video' });
  model.apply({ type: 'segment-open', trackId, msn, startTime: 0, generation: 0, discontinuity: false, gap: false, tags: '' });
  model.apply({ type: 'part', trackId, msn, part: 0, duration: 1, independent: true, likelyLast: true, spans });
  model.apply({ type: 'segment-close', trackId, duration: 1 });
  const segment = model.tracks.get(trackId)?.segment(msn);
  // As after a request for the complete segment.
  if (segment != null) segment.spans = spans;
  model.apply({ type: 'archive', trackId, msn, path: 'file.m4s' });
  expect(segment).toMatchObject({ path: 'file.m4s', parts: [], spans: null });
});
