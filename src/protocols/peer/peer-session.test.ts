import { beforeEach, expect, test } from 'vitest';
import type { Fanout, ViewerCounters } from '../fanout/fanout.ts';
import type { PeerPath } from './peer-paths.ts';
import type { PeerPipe } from './peer-pipe.ts';
import { PeerSession } from './peer-session.ts';

const WIFI = udp('192.0.2.1');
const CABLE = udp('192.0.2.2');
const TERMS = { plan: { cname: 'c', slots: [] }, fingerprint: '', role: 'server' } as const;

let now: number;
let place: string;
let heard: string[] = [];
let ends: string[];
let session: PeerSession;

class TestPipe implements PeerPipe {
  readonly place: string;
  readonly backlog = 0;
  ended = 0;

  constructor(place: string) {
    this.place = place;
  }

  send(): void {}

  sendFrames(): void {}

  end(): void {
    this.ended += 1;
  }
}

function udp(host: string): PeerPath {
  return { kind: 'udp', socket: 0, to: { host, port: 1000 } };
}

function tcp(name: string): { kind: 'tcp'; pipe: TestPipe } {
  return { kind: 'tcp', pipe: new TestPipe(name) };
}

beforeEach(() => {
  now = 0;
  place = '';
  heard = [];
  ends = [];
  let open = false;
  const fanout = {
    openViewer: () => {
      open = true;
      return 1;
    },
    closeViewer: () => {
      open = false;
    },
    connect: (_viewer, _socket, { host }) => {
      place = host;
    },
    hear: (_viewer, _socket, { host }) => {
      heard.push(host);
    },
    connectTcp: () => {
      place = 'tcp';
    },
    viewerCounters: () => (open ? ({ bytes: 1234, refused: 5 } as ViewerCounters) : null),
  } satisfies Partial<Fanout>;
  const owner = { fanout: fanout as unknown as Fanout, now: () => now, started: () => undefined, forget: () => undefined };
  const listener = { connected: () => undefined, rtcp: () => undefined, closed: (reason: string) => ends.push(reason) };
  session = new PeerSession(owner, listener, 30_000);
  session.start(TERMS);
});

test('the first path is used until the peer nominates another', () => {
  session.reached(WIFI, false);
  session.reached(CABLE, false);
  expect(place).toBe('192.0.2.1');
  session.reached(CABLE, true);
  expect(place).toBe('192.0.2.2');
});

test('media is heard on every path that works, whichever is sent by', () => {
  session.reached(WIFI, true);
  session.reached(CABLE, true);
  session.reached(tcp('a'), true);
  expect([heard, place]).toEqual([['192.0.2.1', '192.0.2.2'], '192.0.2.1']);
});

test('a path that works is not left for the next that is nominated', () => {
  session.reached(WIFI, true);
  session.reached(CABLE, true);
  session.reached(tcp('a'), true);
  expect([place, session.place]).toEqual(['192.0.2.1', 'udp 192.0.2.1:1000']);
});

test('a path that is silent is left for one that is nominated', () => {
  session.reached(WIFI, true);
  now = 3001;
  session.reached(CABLE, false);
  expect(place).toBe('192.0.2.1');
  session.reached(CABLE, true);
  expect(place).toBe('192.0.2.2');
});

test('TCP is left for UDP at once', () => {
  session.reached(tcp('a'), true);
  session.reached(WIFI, true);
  expect(place).toBe('192.0.2.1');
});

test('a session whose TCP connection ends goes on by a path that was heard lately, and ends without one', () => {
  const [first, second] = [tcp('a'), tcp('b')];
  session.reached(WIFI, false);
  now = 40_000;
  session.reached(first, true);
  session.reached(second, true);
  expect(session.place).toBe('a');
  session.lost(first.pipe);
  expect([session.place, ends]).toEqual(['b', []]);
  session.lost(second.pipe);
  expect(ends).toEqual(['the TCP connection ended']);
});

test('a session that ends closes every TCP connection of its peer', () => {
  const paths = Array.from({ length: 20 }, (_, n) => tcp(`${n}`));
  for (const path of paths) session.reached(path, true);
  session.close();
  expect(paths.map(({ pipe }) => pipe.ended)).toEqual(paths.map(() => 1));
});

test('the last figures of a session outlive it', () => {
  expect(session.counters?.bytes).toBe(1234);
  session.close();
  expect(session.counters).toMatchObject({ bytes: 1234, refused: 5 });
});
