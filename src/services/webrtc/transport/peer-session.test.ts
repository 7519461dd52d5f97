import { beforeEach, expect, test } from 'vitest';
import { tcp, udp } from '../../../../test/fakes/peer-paths.ts';
import type { SrtpKeys } from '../../../wire/srtp/profile.ts';
import { parseStun } from '../../../wire/stun/stun-message.ts';
import type { DtlsListener, Fanout, ViewerCounters } from './fanout/fanout.ts';
import type { PeerPath } from './peer-paths.ts';
import { PeerPlaces } from './peer-places.ts';
import { type PeerOwner, PeerSession } from './peer-session.ts';
import { StrangerLog } from './stranger-log.ts';

const WIFI = udp('192.0.2.1');
const CABLE = udp('192.0.2.2');
/** Bytes of a check and of the answer to it. */
const SIZES = { received: 100, answered: 64 };
const PLAIN = { nominated: false, priority: 0, ...SIZES };
const NOMINATED = { nominated: true, priority: 0, ...SIZES };
const REMOTE = { ufrag: 'peer', password: 'passwordpasswordpassword' };
const TERMS = { plan: { cname: 'c', slots: [] }, fingerprint: 'sha-256 AB', role: 'server', remote: REMOTE } as const;

let now: number;
let place: string;
let heard: string[] = [];
let ends: string[];
let strangers: StrangerLog;
let session: PeerSession;
let handshake: DtlsListener;
let owner: PeerOwner;
/** Hosts that do not answer our checks. */
let dead: Set<string>;
/** Datagrams that the session sent by UDP, by host. */
let sent: Map<string, Buffer[]>;

/** The network traffic: a living host answers checks of ours at once. */
function deliver(_socket: number, to: { host: string; port: number }, datagram: Buffer): boolean {
  sent.set(to.host, [...(sent.get(to.host) ?? []), datagram]);
  if ((datagram[0] ?? 0xff) <= 3 && !dead.has(to.host)) answer(udp(to.host), datagram);
  return true;
}

function answer(path: PeerPath, check: Buffer): boolean | undefined {
  const { transaction } = parseStun(check);
  return owner.awaited.get(transaction.toString('latin1'))?.answered(path, transaction);
}

/** The handshake with the right certificate comes to its end. */
function connect(): void {
  session.handshake(Buffer.of(22));
  const [localKey, localSalt] = [Buffer.alloc(16), Buffer.alloc(12)];
  handshake.connected({ profile: 7, localKey, localSalt, remoteKey: localKey, remoteSalt: localSalt }, Buffer.of(0xab));
}

beforeEach(() => {
  now = 0;
  place = '';
  heard = [];
  ends = [];
  strangers = new StrangerLog();
  dead = new Set();
  sent = new Map();
  let open = false;
  const fanout = {
    openViewer: () => {
      open = true;
      return 1;
    },
    openDtls: (_role, listener) => {
      handshake = listener;
      return { receive: () => listener.send(Buffer.of(22)), tick: () => undefined, close: () => undefined };
    },
    send: (socket, to, datagram) => deliver(socket, to, Buffer.from(datagram)),
    setKeys: () => undefined,
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
  owner = {
    fanout: fanout as unknown as Fanout,
    strangers,
    places: new PeerPlaces(),
    awaited: new Map(),
    candidates: () => ['candidate:1 1 UDP 50 198.51.100.1 10000 typ host'],
    now: () => now,
    started: () => undefined,
    connected: () => undefined,
    forget: () => undefined,
  };
  const listener = { connected: () => undefined, rtcp: () => undefined, closed: (reason: string) => ends.push(reason) };
  session = new PeerSession(owner, listener, { use: 'play', client: '::ffff:192.0.2.9', timeout: 30_000 });
  session.start(TERMS);
});

test('the first path is used until the peer nominates another', () => {
  session.reached(WIFI, PLAIN);
  session.reached(CABLE, PLAIN);
  expect(place).toBe('192.0.2.1');
  session.reached(CABLE, NOMINATED);
  expect(place).toBe('192.0.2.2');
});

test('media is received on every working path, regardless of the path used for sending', () => {
  session.reached(WIFI, NOMINATED);
  session.reached(CABLE, NOMINATED);
  session.reached(tcp('a'), NOMINATED);
  expect([heard, place]).toEqual([['192.0.2.1', '192.0.2.2'], '192.0.2.1']);
});

test('a working path is kept when another path is nominated', () => {
  session.reached(WIFI, NOMINATED);
  session.reached(CABLE, NOMINATED);
  session.reached(tcp('a'), NOMINATED);
  expect([place, session.place]).toEqual(['192.0.2.1', 'udp 192.0.2.1:1000']);
});

test('a silent path is replaced by a newly nominated path', () => {
  session.reached(WIFI, NOMINATED);
  now = 3001;
  session.reached(CABLE, PLAIN);
  expect(place).toBe('192.0.2.1');
  session.reached(CABLE, NOMINATED);
  expect(place).toBe('192.0.2.2');
});

test('the nominated path of the highest priority is used, regardless of the order of nominations', () => {
  const aggressive = (): void => {
    session.reached(WIFI, { ...NOMINATED, priority: 100 });
    session.reached(tcp('a'), { ...NOMINATED, priority: 300 });
    session.reached(CABLE, { ...NOMINATED, priority: 200 });
  };
  aggressive();
  expect(place).toBe('192.0.2.2');
  place = 'nowhere new';
  for (now = 0; now < 10_000; now += 100) aggressive();
  expect(place).toBe('nowhere new');
  expect(session.place).toBe('udp 192.0.2.2:1000');
});

test('checks on another path do not renew consent for the path in use', () => {
  session.reached(WIFI, NOMINATED);
  connect();
  dead.add('192.0.2.1');
  for (now = 0; now <= 30_000; now += 500) {
    session.reached(CABLE, PLAIN);
    session.tick(now);
  }
  expect(place).toBe('192.0.2.1');
  session.reached(CABLE, PLAIN);
  session.tick(now);
  expect([place, ends]).toEqual(['192.0.2.2', []]);
  dead.add('192.0.2.2');
  now += 30_001;
  session.tick(now);
  expect(ends).toEqual(['no connectivity check was answered for 30000 ms']);
});

test('packets are sent only with consent, through any interruption of it', () => {
  const consents: boolean[] = [];
  const reports: Uint8Array[] = [];
  Object.assign(owner.fanout, { sendRtcp: (_viewer: number, packet: Uint8Array) => reports.push(packet) });
  const listener = {
    connected: () => undefined,
    rtcp: () => undefined,
    closed: (reason: string) => ends.push(reason),
    consented: (given: boolean) => consents.push(given),
  };
  for (const timeout of [0, 90_000]) {
    consents.length = 0;
    reports.length = 0;
    session = new PeerSession(owner, listener, { use: 'play', client: '192.0.2.9', timeout });
    session.start(TERMS);
    session.reached(WIFI, NOMINATED);
    connect();
    dead.add('192.0.2.1');
    const since = now;
    for (const after of [29_000, 30_001, 60_000, 89_000]) {
      now = since + after;
      session.tick(now);
      session.sendRtcp(Buffer.of(after & 0xff));
    }
    expect([consents, reports.length]).toEqual([[false], 1]);
    // Checks of the peer alone, which anyone may have sent, do not bring it back.
    session.reached(WIFI, PLAIN);
    session.tick(now);
    expect(consents).toEqual([false]);
    dead.clear();
    now += 500;
    session.reached(WIFI, PLAIN);
    session.tick(now);
    session.sendRtcp(Buffer.of(1));
    expect([consents, reports.length, ends]).toEqual([[false, true], 2, []]);
  }
  dead.add('192.0.2.1');
  now += 90_001;
  session.tick(now);
  expect(ends).toEqual(['no connectivity check was answered for 90000 ms']);
});

test('a path checked while consent for the other path ran out is used by the fanout', () => {
  session = new PeerSession(
    owner,
    { connected: () => undefined, rtcp: () => undefined, closed: (reason) => ends.push(reason) },
    { use: 'play', client: '192.0.2.9', timeout: 60_000 },
  );
  session.start(TERMS);
  session.reached(WIFI, NOMINATED);
  connect();
  dead.add('192.0.2.1');
  now = 40_000;
  session.reached(CABLE, PLAIN);
  now = 60_001;
  session.tick(now);
  expect([session.place, place, ends]).toEqual(['udp 192.0.2.2:1000', '192.0.2.2', []]);
});

test('checks alone do not keep a session that never connects', () => {
  session.handshake(Buffer.of(22));
  for (now = 0; now <= 30_500; now += 500) {
    session.reached(WIFI, NOMINATED);
    session.tick(now);
  }
  expect(ends).toEqual(['the handshake was not finished within 30000 ms (peer at udp 192.0.2.1:1000)']);
});

test('an unanswered offer ends after its timeout, and an answer starts a new timeout', () => {
  const offered = (timeout: number): PeerSession => {
    const listener = { connected: () => undefined, rtcp: () => undefined, closed: (reason: string) => ends.push(reason) };
    return new PeerSession(owner, listener, { use: 'play', client: '192.0.2.9', timeout });
  };
  const [asked, answered] = [offered(0), offered(600_000)];
  now = 29_000;
  answered.start(TERMS);
  for (; now <= 58_000; now += 500) {
    asked.tick(now);
    answered.tick(now);
  }
  expect(ends).toEqual(['the offer was not answered within 30000 ms']);
  answered.tick(59_500);
  expect(ends[1]).toMatch(/^no connectivity check arrived within 30000 ms/);
});

test('a session that does not connect lists its offered, announced, checked and refused candidates', () => {
  session.candidates();
  session.announced('a=candidate:1 1 udp 2122 192.0.2.1 1000 typ host\r\na=candidate:2 1 UDP 1 4f.local 5 typ host\r\nother\r\n');
  session.announced(
    'a=candidate:3 1 udp 1 2001:db8::1 7 typ srflx raddr :: rport 0\na=candidate:4 1 tcp 1 192.0.2.1 9 typ host tcptype active',
  );
  session.announced('a=candidate:4 2 udp 1 192.0.2.1 1001 typ host');
  const offered =
    '; offered udp 198.51.100.1:10000; announced by the peer udp 192.0.2.1:1000 (host, no check came from it), udp 4f.local:5 (host, hidden behind a name), ' +
    'udp [2001:db8::1]:7 (srflx, no check came from it), tcp 192.0.2.1:9 (host, it connects from another port); ';
  expect(session.attempts).toBe(`${offered}no connectivity check came`);
  session.refused(CABLE, 'wrong password');
  session.refused(CABLE, 'wrong password');
  expect(session.attempts).toBe(`${offered}connectivity checks from udp 192.0.2.2:1000 2 refused (wrong password)`);
  dead.add('192.0.2.1');
  session.reached(WIFI, NOMINATED);
  session.unanswered(WIFI);
  expect(session.attempts).toContain(
    'connectivity checks from udp 192.0.2.1:1000 1 good and 1 answers could not be sent, udp 192.0.2.2:1000 2 refused (wrong password); ' +
      '1 checks of ours went, none was answered; DTLS not begun: no datagram of it came',
  );
  dead.clear();
  now = 1000;
  session.tick(now);
  expect(session.attempts).toContain('(wrong password); DTLS not begun: no datagram of it came');
  expect(session.attempts).toContain('udp 192.0.2.1:1000 (host, checked)');
  session.handshake(Buffer.of(22));
  expect(session.attempts).toContain('DTLS begun and not finished: 1 datagrams came, 1 went');
  strangers.note('192.0.2.9', 'udp 192.0.2.9:5', 'a connectivity check with unknown USERNAME', now);
  expect(session.attempts).toMatch(
    /; 1 datagram from 192\.0\.2\.9 for no session, the last from udp 192\.0\.2\.9:5: a connectivity check with unknown USERNAME$/,
  );
  expect(session.attempts).not.toContain('\n');
  connect();
  expect(session.attempts).toBe('');
});

test('no peer can make the list of attempts grow', () => {
  session.announced(Array.from({ length: 5000 }, (_, n) => `a=candidate:1 1 udp 1 10.1.${n >> 8}.${n & 255} 5 typ host`).join('\n'));
  for (let n = 0; n < 5000; n += 1) session.refused(udp(`10.0.${n >> 8}.${n & 255}`), 'wrong password');
  expect(session.attempts.length).toBeLessThan(2000);
  expect(session.attempts).toContain(' and 8 more, other addresses 4984 refused (wrong password)');
  for (let n = 0; n < 5000; n += 1) strangers.note(`10.0.${n >> 8}.${n & 255}`, 'udp', 'x', n);
  expect(strangers.size).toBe(256);
  expect([strangers.tell('10.0.0.1', 0), strangers.tell('10.0.19.135', 0)]).toEqual([
    '',
    '1 datagram from 10.0.19.135 for no session, the last from udp: x',
  ]);
});

test('checks of further addresses are summed up, and a missing DTLS handshake is named', () => {
  for (let n = 0; n < 16; n += 1) session.refused(udp(`10.0.0.${n}`), 'wrong password');
  session.unanswered(WIFI);
  expect(session.attempts).toMatch(/ and 8 more, other addresses 1 answers could not be sent$/);
  session.reached(WIFI, NOMINATED);
  expect(session.attempts).toMatch(/, other addresses 1 good and 1 answers could not be sent; DTLS not begun: no datagram of it came$/);
});

test('an address with good checks is listed first among many refused ones', () => {
  for (let n = 0; n < 12; n += 1) session.refused(udp(`10.0.0.${n}`), 'wrong password');
  session.reached(WIFI, NOMINATED);
  expect(session.attempts).toContain('connectivity checks from udp 192.0.2.1:1000 1 good, udp 10.0.0.0:1000 1 refused');
});

test('keys are wiped once they are handed over, and when they are of no use', () => {
  const keys = () => [16, 12, 16, 12].map((length) => Buffer.alloc(length, 7)) as [Buffer, Buffer, Buffer, Buffer];
  const given: string[] = [];
  Object.assign(owner.fanout, { setKeys: (_viewer: number, { localKey }: SrtpKeys) => given.push(Buffer.from(localKey).toString('hex')) });
  session.reached(WIFI, NOMINATED);
  session.handshake(Buffer.of(22));
  for (const fingerprint of [Buffer.of(0xab), Buffer.of(0xcd)]) {
    const [localKey, localSalt, remoteKey, remoteSalt] = keys();
    handshake.connected({ profile: 7, localKey, localSalt, remoteKey, remoteSalt }, fingerprint);
    expect(Buffer.concat([localKey, localSalt, remoteKey, remoteSalt])).toEqual(Buffer.alloc(56));
  }
  expect([given, ends]).toEqual([['07'.repeat(16)], ['the certificate is not the one that was signalled']]);
});

test('TCP is left for UDP at once', () => {
  session.reached(tcp('a'), NOMINATED);
  session.reached(WIFI, NOMINATED);
  expect(place).toBe('192.0.2.1');
});

test('a session whose TCP connection ends continues on a recently used path, and ends without one', () => {
  const [first, second] = [tcp('a'), tcp('b')];
  session.reached(WIFI, PLAIN);
  now = 40_000;
  dead.add('192.0.2.1');
  session.reached(first, NOMINATED);
  session.reached(second, NOMINATED);
  expect(session.place).toBe('a');
  session.lost(first.pipe);
  expect([session.place, ends]).toEqual(['b', []]);
  session.lost(second.pipe);
  expect(ends).toEqual(['the TCP connection ended']);
});

test('a session that ends closes every TCP connection of its peer', () => {
  const paths = Array.from({ length: 20 }, (_, n) => tcp(`${n}`));
  for (const path of paths) session.reached(path, NOMINATED);
  session.close();
  expect(paths.map(({ pipe }) => pipe.ended)).toEqual(paths.map(() => 1));
});

test('the last figures of a session outlive it', () => {
  expect(session.counters?.bytes).toBe(1234);
  session.close();
  expect(session.counters).toMatchObject({ bytes: 1234, refused: 5 });
});

test('an unverified path carries no media, and the path in use stays', () => {
  const VICTIM = udp('203.0.113.1');
  dead.add('203.0.113.1');
  session.handshake(Buffer.of(22));
  session.reached(VICTIM, { ...NOMINATED, priority: 0x7fff_ffff });
  // The victim does not get the handshake either, which is longer than the attacker's datagrams.
  expect([place, session.place]).toEqual(['', '']);
  session.reached(WIFI, NOMINATED);
  connect();
  expect(place).toBe('192.0.2.1');
  for (; now <= 60_000; now += 250) {
    session.reached(VICTIM, { ...NOMINATED, priority: 0x7fff_ffff });
    session.tick(now);
  }
  expect([place, session.place, ends]).toEqual(['192.0.2.1', 'udp 192.0.2.1:1000', []]);
  expect(sent.get('203.0.113.1')?.every((datagram) => (datagram[0] ?? 0xff) <= 3)).toBe(true);
});

test('an unverified path gets at most three times the bytes received from it', () => {
  dead.add('192.0.2.1');
  const most = (): number => 3 * SIZES.received - SIZES.answered;
  const bytes = (): number => (sent.get('192.0.2.1') ?? []).reduce((sum, { length }) => sum + length, 0);
  session.reached(WIFI, NOMINATED);
  for (; now <= 25_000; now += 250) session.tick(now);
  expect(bytes()).toBeGreaterThan(0);
  expect(bytes()).toBeLessThanOrEqual(most());
  for (let n = 0; n < 50; n += 1) session.reached(WIFI, NOMINATED);
  for (; now <= 29_000; now += 250) session.tick(now);
  expect(bytes()).toBeLessThanOrEqual(51 * most());
});

test('an answer verifies the asked path, once, and only with its transaction', () => {
  dead.add('192.0.2.1');
  session.reached(WIFI, NOMINATED);
  const [check = Buffer.alloc(0)] = sent.get('192.0.2.1') ?? [];
  expect(session.answered(WIFI, Buffer.alloc(12, 1))).toBe(false);
  expect(answer(CABLE, check)).toBe(false);
  expect([place, answer(WIFI, check)]).toEqual(['', undefined]);
  now = 1000;
  session.tick(now);
  const again = sent.get('192.0.2.1')?.at(-1) ?? Buffer.alloc(0);
  expect([answer(WIFI, again), place, answer(WIFI, again)]).toEqual([true, '192.0.2.1', undefined]);
});

test('a nomination before the answer takes effect with the answer', () => {
  session.reached(WIFI, NOMINATED);
  dead.add('192.0.2.2');
  session.reached(CABLE, { ...NOMINATED, priority: 100 });
  expect(place).toBe('192.0.2.1');
  answer(CABLE, sent.get('192.0.2.2')?.[0] ?? Buffer.alloc(0));
  expect(place).toBe('192.0.2.2');
});

test('an address verified for one session is not moved by a check in the name of another', () => {
  const listener = { connected: () => undefined, rtcp: () => undefined, closed: () => undefined };
  const thief = new PeerSession(owner, listener, { use: 'play', client: '192.0.2.66', timeout: 30_000 });
  thief.start(TERMS);
  session.reached(WIFI, NOMINATED);
  dead.add('192.0.2.1');
  heard = [];
  thief.reached(WIFI, NOMINATED);
  expect([owner.places.of(0, { host: '192.0.2.1', port: 1000 }) === session, heard, thief.place]).toEqual([true, [], '']);
  // The first session has the address only until the owner answers.
  thief.reached(CABLE, NOMINATED);
  session.reached(CABLE, PLAIN);
  expect(owner.places.of(0, { host: '192.0.2.2', port: 1000 })).toBe(session);
});

test('the path in use is checked every few seconds, at times that differ', () => {
  session.reached(WIFI, NOMINATED);
  connect();
  const times: number[] = [];
  let count = sent.get('192.0.2.1')?.length ?? 0;
  for (; now <= 600_000; now += 250) {
    session.tick(now);
    const length = sent.get('192.0.2.1')?.length ?? 0;
    if (length > count) times.push(now);
    count = length;
  }
  const gaps = times.slice(1).map((time, n) => time - (times[n] ?? 0));
  expect([Math.min(...gaps) >= 4000, Math.max(...gaps) <= 6250, new Set(gaps).size > 1, ends]).toEqual([true, true, true, []]);
});

test('a short timeout has as many checks as a long timeout', () => {
  const listener = { connected: () => undefined, rtcp: () => undefined, closed: (reason: string) => ends.push(reason) };
  session = new PeerSession(owner, listener, { use: 'publish', client: '192.0.2.9', timeout: 6000 });
  session.start(TERMS);
  session.reached(WIFI, NOMINATED);
  connect();
  const before = sent.get('192.0.2.1')?.length ?? 0;
  for (; now <= 60_000; now += 100) session.tick(now);
  expect([(sent.get('192.0.2.1')?.length ?? 0) - before > 45, ends]).toEqual([true, []]);
  dead.add('192.0.2.1');
  for (; now <= 67_500; now += 100) session.tick(now);
  expect(ends).toEqual(['no connectivity check was answered for 6000 ms']);
});

test('unanswered checks are remembered up to a limit, and freed with the session', () => {
  dead.add('192.0.2.1');
  for (; now <= 29_000; now += 50) for (let n = 0; n < 40; n += 1) session.reached(udp(`192.0.2.${n}`), PLAIN);
  expect(owner.awaited.size).toBeLessThanOrEqual(32);
  session.close();
  expect(owner.awaited.size).toBe(0);
});

test('a silent peer is reported once while the session waits for it', () => {
  const told: string[] = [];
  const listener = {
    connected: () => undefined,
    rtcp: () => undefined,
    closed: () => undefined,
    unreached: (text: string) => told.push(text),
  };
  const open = (): PeerSession => new PeerSession(owner, listener, { use: 'play', client: '192.0.2.9', timeout: 30_000 });
  const [silent, asked, reached] = [open(), open(), open()];
  silent.start(TERMS);
  reached.start(TERMS);
  silent.candidates();
  reached.reached(WIFI, PLAIN);
  for (; now <= 20_000; now += 250) for (const each of [silent, asked, reached]) each.tick(now);
  expect(told).toEqual(['; offered udp 198.51.100.1:10000; the peer announced no address; no connectivity check came']);
});
