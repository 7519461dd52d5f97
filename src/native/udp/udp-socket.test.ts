import { type SpawnSyncReturns, spawnSync } from 'node:child_process';
import { afterEach, describe, expect, test } from 'vitest';
import { until } from '../../../test/harness/poll.ts';
import { loadAddon, type NativeAddon } from '../addon.ts';
import { NativeUdpSocket } from './native-udp-socket.ts';
import { NodeUdpSocket } from './node-udp-socket.ts';
import type { SocketAddress, UdpSocket, UdpSocketOptions } from './udp-socket.ts';

const { addon } = loadAddon();
const WAIT = { deadlineMs: 30_000, everyMs: 5 };
const BUFFER = 1_000_000;
const sockets: UdpSocket[] = [];

afterEach(async () => {
  for (const socket of sockets.splice(0)) await socket.close();
});

interface Heard {
  readonly socket: UdpSocket;
  readonly datagrams: { readonly bytes: Uint8Array; readonly from: SocketAddress }[];
  turns: number;
  alarms: number;
}

const KINDS: [string, (options: UdpSocketOptions) => Promise<UdpSocket>][] = [['Node', (options) => NodeUdpSocket.open(options)]];
if (addon !== null) KINDS.push(['the addon', (options) => Promise.resolve(new NativeUdpSocket(addon, options))]);

describe.each(KINDS)('a UDP socket of %s', (_name, open) => {
  async function listen(host = '127.0.0.1', port = 0): Promise<Heard> {
    const heard: Omit<Heard, 'socket'> = { datagrams: [], turns: 0, alarms: 0 };
    const options: UdpSocketOptions = {
      ...{ host, port, bufferBytes: BUFFER },
      onDatagram: (bytes, from) => heard.datagrams.push({ bytes, from }),
      onTurn: () => {
        heard.turns += 1;
      },
      onAlarm: () => {
        heard.alarms += 1;
      },
      onError: (error) => {
        throw error;
      },
    };
    const socket = await Promise.resolve().then(() => open(options));
    sockets.push(socket);
    return Object.assign(heard, { socket });
  }

  test.each(['127.0.0.1', '::1'])('receives datagrams over %s whole, in order, with their sender', async (host) => {
    const [here, there] = [await listen(host), await listen(host)];
    const to = { address: host, port: there.socket.port };
    for (let index = 0; index < 150; index += 1) {
      // All lengths, so that some go as segments of one message and some do not.
      here.socket.send(to, Uint8Array.of(index, 1, 2, 3), index % 3 === 0 ? null : new Uint8Array(10 + (index % 40)).fill(index));
    }
    await until('all datagrams', () => there.datagrams.length === 150, WAIT);
    for (const [index, { bytes, from }] of there.datagrams.entries()) {
      expect(bytes[0]).toBe(index);
      expect(bytes.length).toBe(index % 3 === 0 ? 4 : 14 + (index % 40));
      expect(bytes.subarray(4).every((byte) => byte === index)).toBe(true);
      expect(from).toMatchObject({ address: host, port: here.socket.port });
    }
    expect(there.turns).toBeGreaterThan(0);
    // The source address of a datagram can be answered.
    const first = there.datagrams[0]?.from;
    if (first !== undefined) there.socket.send(first, Uint8Array.of(7), null);
    await until('the answer', () => here.datagrams.length === 1, WAIT);
    expect(here.socket.counters).toMatchObject({ datagramsSent: 150, sendErrors: 0, dropped: 0, datagramsReceived: 1 });
  });

  test('keeps earlier datagrams intact while later ones arrive', async () => {
    const [here, there] = [await listen(), await listen()];
    const to = { address: '127.0.0.1', port: there.socket.port };
    for (let round = 0; round < 40; round += 1) {
      here.socket.send(to, new Uint8Array(1332).fill(round), null);
      here.socket.flush();
      await until(`round ${round}`, () => there.datagrams.length === round + 1, WAIT);
    }
    for (const [round, { bytes }] of there.datagrams.entries()) expect(bytes.every((byte) => byte === round)).toBe(true);
  });

  test('counts a datagram that cannot be sent, and continues', async () => {
    const [here, there] = [await listen(), await listen()];
    here.socket.send({ address: 'nowhere', port: 1000 }, Uint8Array.of(1), null);
    here.socket.send({ address: '127.0.0.1', port: there.socket.port }, Uint8Array.of(2), null);
    await until('the datagram to a valid address', () => there.datagrams.length === 1, WAIT);
    await until('the error', () => here.socket.counters.sendErrors === 1, WAIT);
  });

  test('an alarm fires once, at the time that was set last', async () => {
    const heard = await listen();
    heard.socket.alarm(1);
    heard.socket.alarm(60_000);
    const other = await listen();
    other.socket.alarm(5);
    await until('the alarm', () => other.alarms === 1, WAIT);
    expect(heard.alarms).toBe(0);
  });

  test('releases its port, makes no further callbacks and can be closed twice', async () => {
    const [here, there] = [await listen(), await listen()];
    const { port } = there.socket;
    there.socket.alarm(1);
    here.socket.send({ address: '127.0.0.1', port }, Uint8Array.of(1), null);
    here.socket.flush();
    await there.socket.close();
    await there.socket.close();
    there.socket.send({ address: '127.0.0.1', port: here.socket.port }, Uint8Array.of(1), null);
    there.socket.flush();
    there.socket.alarm(1);
    const next = await listen('127.0.0.1', port);
    here.socket.send({ address: '127.0.0.1', port }, Uint8Array.of(2), null);
    await until('a datagram for the next owner', () => next.datagrams.length === 1, WAIT);
    expect(there).toMatchObject({ datagrams: [], alarms: 0 });
    expect(here.datagrams).toEqual([]);
  });

  test('makes no further callback after it is closed in one, not even for the end of the turn', async () => {
    const told: string[] = [];
    const closing = await open({
      ...{ host: '127.0.0.1', port: 0, bufferBytes: BUFFER },
      onDatagram: () => {
        told.push('datagram');
        void closing.close();
      },
      onTurn: () => told.push('turn'),
      onAlarm: () => told.push('alarm'),
      onError: () => told.push('error'),
    });
    sockets.push(closing);
    const here = await listen();
    const to = { address: '127.0.0.1', port: closing.port };
    for (let index = 0; index < 2; index += 1) here.socket.send(to, Uint8Array.of(index), null);
    await until('the datagram', () => told.length > 0, WAIT);
    await closing.close();
    expect(told).toEqual(['datagram']);
  });

  test('IPv4 and IPv6 have a port each for themselves', async () => {
    const { socket } = await listen('0.0.0.0');
    const six = await listen('::', socket.port);
    const four = await listen();
    four.socket.send({ address: '127.0.0.1', port: socket.port }, Uint8Array.of(4), null);
    (await listen('::1')).socket.send({ address: '::1', port: socket.port }, Uint8Array.of(6), null);
    await until('the datagram over IPv6', () => six.datagrams.length > 0, WAIT);
    expect(six.datagrams.map(({ bytes }) => bytes[0])).toEqual([6]);
  });

  test('rejects an occupied port', async () => {
    const { socket } = await listen();
    await expect(listen('127.0.0.1', socket.port)).rejects.toThrow(/EADDRINUSE/);
  });
});

/** Runs a command in its own network namespace, whose only interface carries packets that are shorter than a datagram of media. */
const inNarrowNetwork = (...command: string[]): SpawnSyncReturns<string> =>
  spawnSync('unshare', ['-rn', 'sh', '-c', 'ip link set lo mtu 1280 up && exec "$@"', 'sh', ...command], {
    encoding: 'utf8',
    env: process.env,
  });

/** Two blocks of ten datagrams for each of two ports; tells the counters after each block. */
const TWO_BLOCKS = `
  const [udpSocket, loader] = process.argv.slice(1);
  const { NativeUdpSocket } = await import(udpSocket);
  const { addon } = (await import(loader)).loadAddon();
  const nothing = () => undefined;
  const options = { host: '127.0.0.1', port: 0, bufferBytes: 1e6, onDatagram: nothing, onTurn: nothing, onAlarm: nothing, onError: nothing };
  const socket = new NativeUdpSocket(addon, options);
  const told = [];
  for (const port of [9001, 9002]) {
    for (let block = 0; block < 2; block += 1) {
      for (let n = 0; n < 10; n += 1) socket.send({ address: '127.0.0.1', port }, new Uint8Array(1332), null);
      socket.flush();
      told.push(socket.counters);
    }
  }
  await socket.close();
  console.log(JSON.stringify(told.map(({ datagramsSent, sendCalls, sendErrors }) => [datagramsSent, sendCalls, sendErrors])));
`;

describe.skipIf(addon === null)('the socket of the addon', () => {
  test.skipIf(inNarrowNetwork('true').status !== 0)('detects once that a path does not support segmentation', () => {
    const modules = [import.meta.resolve('./native-udp-socket.ts'), import.meta.resolve('../addon.ts')];
    const { stdout, stderr } = inNarrowNetwork(process.execPath, '--input-type=module', '--eval', TWO_BLOCKS, ...modules);
    // One call for the segments, ten for the datagrams; then one for each block.
    expect(JSON.parse(stdout || stderr)).toEqual([
      [10, 11, 0],
      [20, 12, 0],
      [30, 13, 0],
      [40, 14, 0],
    ]);
  });

  test('sends the datagrams of a turn to one peer with one system call, and reads them with few', async () => {
    let received = 0;
    const common = { host: '127.0.0.1', port: 0, bufferBytes: BUFFER, onTurn: () => undefined, onAlarm: () => undefined };
    const options = { ...common, onError: () => undefined, onDatagram: () => (received += 1) };
    if (addon === null) return;
    const [here, there] = [new NativeUdpSocket(addon, options), new NativeUdpSocket(addon, options)];
    sockets.push(here, there);
    const to = { address: '127.0.0.1', port: there.port };
    for (let index = 0; index < 30; index += 1) here.send(to, new Uint8Array(16), new Uint8Array(1316));
    await until('all datagrams', () => received === 30, WAIT);
    expect(here.counters).toMatchObject({ datagramsSent: 30, sendCalls: 1 });
    expect(there.counters.datagramsReceived).toBe(30);
    expect(there.counters.receiveCalls).toBeLessThan(10);
  });
});

describe('a system whose send buffer is full for a while', () => {
  /** An addon whose socket has room for this many datagrams. */
  class Narrow {
    room = 0;
    readonly sent: number[] = [];
    awaited = 0;
    tell: (event: number, first: number, second: number) => void = () => undefined;

    udpOpen(_host: string, _port: number, _buffer: number, _words: Uint32Array, told: Narrow['tell']): [object, number] {
      this.tell = told;
      return [{}, 1];
    }

    udpParse(): boolean {
      return true;
    }

    udpSend(_socket: object, bytes: Uint8Array, words: Uint32Array, from: number, count: number): number {
      let next = from;
      for (; next < count && this.room > 0; next += 1, this.room -= 1) this.sent.push(bytes[words[next * 8] ?? 0] ?? -1);
      return next;
    }

    udpAwaitRoom(): void {
      this.awaited += 1;
    }

    udpCounters(): object {
      return { datagramsSent: this.sent.length, sendCalls: 0, sendErrors: 0, datagramsReceived: 0, receiveCalls: 0 };
    }
  }

  function open(narrow: Narrow): NativeUdpSocket {
    const nothing = (): void => undefined;
    const handlers = { onDatagram: nothing, onTurn: nothing, onAlarm: nothing, onError: nothing };
    return new NativeUdpSocket(narrow as unknown as NativeAddon, { host: '127.0.0.1', port: 0, bufferBytes: 0, ...handlers });
  }

  const PEER = { address: '127.0.0.1', port: 9 };
  const WRITABLE = 1;

  test('gets the rest, in order, when it has room again', () => {
    const narrow = new Narrow();
    const socket = open(narrow);
    narrow.room = 10;
    for (let index = 0; index < 200; index += 1) socket.send(PEER, Uint8Array.of(index), null);
    socket.flush();
    expect(narrow.sent).toHaveLength(10);
    narrow.room = 100;
    narrow.tell(WRITABLE, 0, 0);
    expect(narrow.sent).toHaveLength(110);
    narrow.room = 1000;
    socket.send(PEER, Uint8Array.of(200), null);
    socket.flush();
    expect(narrow.sent).toHaveLength(110);
    narrow.tell(WRITABLE, 0, 0);
    expect(narrow.sent).toEqual(Array.from({ length: 201 }, (_unused, index) => index));
    expect(narrow.awaited).toBe(2);
    socket.send(PEER, Uint8Array.of(201), null);
    socket.flush();
    expect(narrow.sent).toHaveLength(202);
  });

  test('drops and counts datagrams beyond its queue', () => {
    const narrow = new Narrow();
    const socket = open(narrow);
    for (let index = 0; index < 64 * 130; index += 1) socket.send(PEER, Uint8Array.of(1), null);
    socket.flush();
    expect(socket.counters.dropped).toBe(64 * 2);
    narrow.room = Number.POSITIVE_INFINITY;
    narrow.tell(WRITABLE, 0, 0);
    expect(narrow.sent).toHaveLength(64 * 128);
  });
});
