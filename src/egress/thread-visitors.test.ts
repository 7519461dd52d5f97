import { beforeEach, describe, expect, test } from 'vitest';
import { ThreadVisitors } from './thread-visitors.ts';

let now = 0;
let visitors: ThreadVisitors;
const make = (limit = 10): ThreadVisitors => new ThreadVisitors({ clock: { now: () => now, monotonic: () => now }, limit });
const visit = (remoteAddress: string, agent = 'vlc', outlet = 1): void => visitors.seen({ outlet, remoteAddress, agent, ttl: 1000 });
const events = (): string[] => visitors.takeEvents().map(({ sighting, ended }) => `${sighting.remoteAddress} ${ended ?? 'came'}`);

beforeEach(() => {
  now = 0;
  visitors = make();
});

describe('visitors of a thread', () => {
  test('an address with one player is one visitor while requests come', () => {
    for (now = 0; now < 5000; now += 900) {
      visit('10.0.0.1');
      visitors.sweep();
    }
    expect(events()).toEqual(['10.0.0.1 came']);
    now += 1000;
    visitors.sweep();
    expect(events()).toEqual(['10.0.0.1 idle']);
    expect(visitors.size).toBe(0);
  });

  test('other addresses, players and outlets are other visitors', () => {
    visit('10.0.0.1');
    visit('10.0.0.1', 'hls.js');
    visit('10.0.0.2');
    visit('10.0.0.1', 'vlc', 2);
    expect(visitors.size).toBe(4);
    visitors.closeOutlet(1);
    expect(visitors.size).toBe(1);
    expect(events().slice(4)).toEqual(['10.0.0.1 the stream ended', '10.0.0.1 the stream ended', '10.0.0.2 the stream ended']);
  });

  test('a visitor has the same id in every thread', () => {
    visit('10.0.0.1');
    const [first] = visitors.takeEvents();
    visitors = make();
    visit('10.0.0.1');
    expect(visitors.takeEvents()[0]?.sighting.session).toBe(first?.sighting.session);
    expect(first?.sighting.session).toMatch(/^[\w-]{16}$/);
  });

  test('the oldest is forgotten when there are too many', () => {
    visitors = make(2);
    for (const address of ['10.0.0.1', '10.0.0.2', '10.0.0.3']) visit(address);
    expect(visitors.size).toBe(2);
    expect(events().at(-1)).toBe('10.0.0.1 too many sessions');
  });
});
