import { describe, expect, test } from 'vitest';
import { History } from './history.ts';
import { bucketsOf, quantileSince, readMetrics, sumOf } from './metrics-text.ts';
import { NoteBook } from './notes.ts';
import { hashOf, pageAt } from './routes.ts';

describe('a history', () => {
  test('keeps the newest samples up to its size', () => {
    const history = new History(['in', 'out'], 3);
    for (let n = 1; n <= 10; n += 1) history.add(n * 1000, { in: n, out: n === 10 ? null : -n });
    expect([history.size, history.times(), history.column('in'), history.column('out')]).toEqual([
      3,
      [8, 9, 10],
      [8, 9, 10],
      [-8, -9, null],
    ]);
    expect([history.last('in'), history.last('out'), history.knows('out')]).toEqual([10, null, true]);
  });

  test('prepends earlier samples as far as it has room', () => {
    const history = new History(['in', 'cpu'], 4);
    history.add(9000, { in: 9, cpu: 1 });
    history.prepend([5000, 6000, 7000, 8000, 9000, 10_000].map((at) => ({ at, values: { in: at / 1000 } })));
    expect([history.times(), history.column('in'), history.column('cpu')]).toEqual([
      [6, 7, 8, 9],
      [6, 7, 8, 9],
      [null, null, null, 1],
    ]);
    history.add(10_000, { in: 10, cpu: 2 });
    expect([history.times(), history.last('in')]).toEqual([[7, 8, 9, 10], 10]);
  });

  test('does not know a series without values', () => {
    const history = new History(['cpu'], 2);
    history.add(1, { cpu: null });
    expect([history.knows('cpu'), history.last('cpu')]).toEqual([false, null]);
  });
});

describe('the text of /metrics', () => {
  test('is read with labels, escapes and infinities', () => {
    const text = '# HELP a b\n# TYPE a counter\na 1\na{x="1,2",y="a\\"b\\\\n\\n"} 2.5\nb{le="+Inf"} +Inf\nno line\n';
    expect(readMetrics(text)).toEqual([
      { name: 'a', labels: {}, value: 1 },
      { name: 'a', labels: { x: '1,2', y: 'a"b\\n\n' }, value: 2.5 },
      { name: 'b', labels: { le: '+Inf' }, value: Number.POSITIVE_INFINITY },
    ]);
    expect([sumOf(readMetrics(text), 'a'), sumOf(readMetrics(text), 'c')]).toEqual([3.5, null]);
  });
});

describe('a quantile of a histogram', () => {
  const text = (counts: readonly number[]) => ['0.01', '0.1', '+Inf'].map((le, n) => `d_bucket{le="${le}"} ${counts[n]}`).join('\n');
  const at = (counts: readonly number[]) => bucketsOf(readMetrics(text(counts)), 'd');

  test('covers the samples since the last look, interpolated between the bounds', () => {
    expect(quantileSince(at([1000, 1000, 1000]), at([900, 900, 900]), 0.99)).toBeCloseTo(0.0099);
    expect(quantileSince(at([100, 200, 200]), at([100, 100, 100]), 0.5)).toBeCloseTo(0.055);
    expect(quantileSince(at([0, 0, 5]), at([0, 0, 0]), 0.99)).toBe(0.1);
  });

  test('is null without new samples', () => {
    expect(quantileSince(at([5, 5, 5]), at([5, 5, 5]), 0.99)).toBeNull();
    expect(quantileSince(at([5, 5, 5]), null, 0.99)).toBeNull();
    expect(quantileSince([], [], 0.99)).toBeNull();
  });
});

describe('notes', () => {
  const refused = (value: number, reason = 'key-wrong') => ({
    name: 'millrace_access_refused_total',
    labels: { direction: 'incoming', protocol: 'rtmp', reason },
    value,
  });

  test('report growth since the last look, and nothing at the first look', () => {
    const notes = new NoteBook();
    notes.take(1, [refused(5)], []);
    expect(notes.all).toEqual([]);
    notes.take(2, [refused(7)], []);
    notes.take(3, [refused(7), refused(1, 'brand-new')], []);
    expect(notes.all.map(({ at, text }) => [at, text])).toEqual([
      [3, '1 publisher refused over RTMP: brand-new'],
      [2, '2 publishers refused over RTMP: the key or token is not one of this application'],
    ]);
  });

  test('report a health condition once, and its end', () => {
    const notes = new NoteBook();
    for (const at of [1, 2, 3]) notes.take(at, [], at < 3 ? ['a disk is full'] : []);
    expect(notes.all.map(({ at, text }) => [at, text])).toEqual([
      [3, 'Resolved: a disk is full'],
      [1, 'a disk is full'],
    ]);
  });

  test('take refusals from events while the server sends events, and count them once', () => {
    const notes = new NoteBook();
    notes.take(1, [refused(1)], [], true);
    notes.take(2, [refused(2)], [], true);
    expect(notes.all).toEqual([]);
    const time = '2026-11-23T10:00:00.000+00:00';
    notes.hear({
      type: 'refusal.counted',
      time,
      direction: 'incoming',
      protocol: 'rtmp',
      reason: 'duplicate-name',
      app: 'app',
      stream: '<b>',
      detail: 'taken',
    });
    notes.hear({ type: 'session.started', time, stream: 'x' });
    notes.hear({ type: 'task.changed', time, task: 'recording', id: 'r', state: 'error', stream: 'x', app: 'app', reason: 'disk full' });
    expect(notes.all.map(({ text }) => text)).toEqual([
      'recording r of app/x failed: disk full',
      '1 publisher of app/<b> refused over RTMP: taken',
    ]);
    expect(notes.all[0]?.at).toBe(Date.parse(time));
  });

  test('are bounded', () => {
    const notes = new NoteBook();
    for (let n = 0; n < 1000; n += 1) notes.take(n, [refused((n * (n + 1)) / 2)], []);
    expect([notes.all.length, notes.all[0]?.at]).toEqual([100, 999]);
  });
});

describe('addresses of pages', () => {
  test('hold any name', () => {
    for (const stream of ['live', '<img src=x onerror=y>', 'a/b?c#d%2f"', 'é']) {
      const place = { page: 'stream', vhost: 'default', app: 'app', stream } as const;
      expect(pageAt(hashOf(place))).toEqual(place);
    }
  });

  test('without a known page show the overview', () => {
    for (const hash of ['', '#', '#/nope', '#/streams/a', '#/streams/%ff/b/c/d']) {
      expect(['overview', 'stream']).toContain(pageAt(hash).page);
    }
    expect(pageAt('#/streams/a/b').page).toBe('overview');
  });
});
