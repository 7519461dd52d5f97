import { expect, test } from 'vitest';
import { metricsText } from '../../test/fakes/metrics-text.ts';
import { RefusalCounts } from './refusal-counts.ts';

const RTMP = { direction: 'incoming', protocol: 'rtmp' } as const;
const LLHLS = { direction: 'outgoing', protocol: 'llhls' } as const;

test('refusals are counted by direction, protocol and reason', () => {
  const counts = new RefusalCounts();
  for (const code of ['key-wrong', 'key-missing', 'key-wrong']) counts.note(RTMP, { code });
  counts.note(LLHLS, { code: 'key-wrong' });
  const lines = metricsText(counts).split('\n');
  expect(lines.filter((line) => !line.startsWith('#'))).toEqual([
    'millrace_access_refused_total{direction="incoming",protocol="rtmp",reason="key-wrong"} 2',
    'millrace_access_refused_total{direction="incoming",protocol="rtmp",reason="key-missing"} 1',
    'millrace_access_refused_total{direction="outgoing",protocol="llhls",reason="key-wrong"} 1',
    '',
  ]);
  expect(lines.slice(0, 2)).toEqual([expect.stringMatching(/^# HELP millrace_/), '# TYPE millrace_access_refused_total counter']);
  expect(counts.total).toBe(4);
});

test('counts of a thread are added to the main counts once', () => {
  const [thread, main] = [new RefusalCounts(), new RefusalCounts()];
  main.note(LLHLS, { code: 'key-wrong' });
  for (const _ of [1, 2]) {
    thread.note(LLHLS, { code: 'key-wrong' });
    main.add(thread.take());
  }
  main.add(thread.take());
  expect([main.total, thread.total]).toEqual([3, 2]);
  expect(metricsText(main)).toContain('reason="key-wrong"} 3\n');
});
