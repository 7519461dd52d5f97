import { spawn } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import net from 'node:net';
import { networkInterfaces } from 'node:os';
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { requireProgram } from '../../../scripts/ensure-tools.ts';
import { FakeIngestGate } from '../../../test/fakes/fake-ingest-gate.ts';
import { ManualClock } from '../../../test/fakes/manual-clock.ts';
import { RecordingLogger } from '../../../test/fakes/recording-logger.ts';
import { until } from '../../../test/harness/poll.ts';
import type { IngestRequest } from '../../core/ingest.ts';
import { TransportFeed } from '../../ingest/transport-feed.ts';
import { AddressSet } from '../../util/address-set.ts';
import { systemClock } from '../../util/clock.ts';
import { ConnectionLimiter } from '../../util/connection-limiter.ts';
import { MAX_LATE_LINES } from '../../util/line-budget.ts';
import { RefusalLog } from '../../util/refusal-log.ts';
import { MpegtsProvider, type MpegtsProviderOptions } from './mpegts-provider.ts';
import { DEFAULT_MPEGTS_TIMEOUTS, PortSource } from './port-source.ts';

const INPUTS = ['-re', '-f', 'lavfi', '-i', 'testsrc2=s=320x180:r=25', '-f', 'lavfi', '-i', 'sine=r=48000'];
const CODECS = ['-c:v', 'libx264', '-preset', 'ultrafast', '-g', '12', '-pix_fmt', 'yuv420p', '-c:a', 'aac'];

const providers: MpegtsProvider[] = [];
afterEach(async () => {
  for (const provider of providers.splice(0)) await provider.stop();
});

async function listen(
  gate: FakeIngestGate,
  options: Partial<MpegtsProviderOptions> = {},
): Promise<{ port: number; provider: MpegtsProvider; logger: RecordingLogger }> {
  const logger = new RecordingLogger();
  const provider = new MpegtsProvider({
    logger,
    clock: systemClock,
    host: '127.0.0.1',
    protocol: 'udp',
    ports: [0],
    route: (port) => ({
      streamName: `stream_${port}`,
      audioLabels: [],
      open: (request) => gate.openIngest({ host: 'default', app: 'app' }, request),
    }),
    ...options,
  });
  providers.push(provider);
  await provider.start();
  return { port: [...provider.sources.keys()][0]!, provider, logger };
}

function send(url: string): { stop: () => void } {
  const child = spawn(requireProgram('ffmpeg'), ['-v', 'error', '-nostdin', ...INPUTS, ...CODECS, '-f', 'mpegts', url], {
    stdio: 'ignore',
  });
  const stop = (): void => {
    child.kill('SIGKILL');
  };
  onTestFinished(stop);
  return { stop };
}

it('receives a stream of ffmpeg over UDP', async () => {
  const gate = new FakeIngestGate();
  const { port } = await listen(gate);
  send(`udp://127.0.0.1:${port}?pkt_size=1316`);
  const stream = await gate.stream();
  await stream.until(({ packets }) => packets.length > 60);
  expect(stream.request).toMatchObject({ streamName: `stream_${port}`, provider: 'mpegts', sourceType: 'MPEGTS' });
  expect(stream.request.sourceUrl).toMatch(/^UDP:\/\/127\.0\.0\.1:\d+$/);
  expect(stream.tracks).toMatchObject([
    { type: 'video', codec: 'H264', width: 320 },
    { type: 'audio', codec: 'AAC', sampleRate: 48_000 },
  ]);
  expect(stream.bytes).toBeGreaterThan(10_000);
});

it.each(['127.0.0.1', '0.0.0.0', '::'])('receives a multicast group on the loopback interface, bound to %s', async (host) => {
  const gate = new FakeIngestGate();
  const { port } = await listen(gate, { host, multicast: [{ group: '239.255.77.7', interface: '127.0.0.1' }] });
  send(`udp://239.255.77.7:${port}?pkt_size=1316&localaddr=127.0.0.1`);
  const stream = await gate.stream();
  await stream.until(({ packets }) => packets.length > 30);
  expect(stream.tracks).toHaveLength(2);
});

/** A socket that sends datagrams which look like a transport stream from an address, to groups on an interface. */
async function sender(type: 'udp4' | 'udp6', address: string, local: string): Promise<(port: number, group: string) => void> {
  const socket = createSocket(type);
  onTestFinished(() => {
    socket.close();
  });
  socket.bind({ address });
  await once(socket, 'listening');
  socket.setMulticastInterface(local);
  return (port, group) => socket.send(Buffer.alloc(188, 0x47), port, group);
}

it.each(['127.0.0.1', '0.0.0.0'])('accepts a multicast group only from the sources that the setting names, bound to %s', async (host) => {
  const gate = new FakeIngestGate();
  const group = '232.77.7.7';
  const multicast = ['127.0.0.2', '127.0.0.3'].map((source) => ({ group, source, interface: '127.0.0.1' }));
  const { port, provider } = await listen(gate, { host, multicast });
  for (const address of ['127.0.0.1', '127.0.0.2', '127.0.0.3']) (await sender('udp4', address, '127.0.0.1'))(port, group);
  const { counters } = provider.sources.get(port)!;
  await expect.poll(() => counters).toMatchObject({ datagrams: 2, foreign: 1 });
  expect(gate.streams.map(({ request }) => request.sourceUrl)).toEqual([expect.stringContaining('UDP://127.0.0.2:')]);
});

/** The loopback interface has no IPv6 multicast; a group of the scope of a node (ff11) leaves none by whatever interface it is joined on. */
const link = Object.entries(networkInterfaces())
  .flatMap(([name, addresses = []]) => addresses.map((entry) => ({ ...entry, name })))
  .find(({ family, internal, scopeid = 0 }) => family === 'IPv6' && !internal && scopeid > 0);

describe.skipIf(link === undefined)('a multicast group of IPv6', () => {
  const { name = '', address = '' } = link ?? {};
  it.each([
    ['127.0.0.1', 'anybody'],
    ['::', 'anybody'],
    ['127.0.0.1', 'one source'],
    ['::', 'one source'],
  ])('is received, bound to %s, from %s', async (host, from) => {
    const gate = new FakeIngestGate();
    const group = `ff11::7777%${name}`;
    const source = `${address}%${name}`;
    const { port } = await listen(gate, { host, multicast: [{ group, interface: `::%${name}`, ...(from !== 'anybody' && { source }) }] });
    (await sender('udp6', '::', `::%${name}`))(port, group);
    expect((await gate.stream()).request.sourceUrl).toContain(`UDP://[${source}]:`);
  });
});

it('names a group that cannot be joined', async () => {
  const multicast = [{ group: '232.77.7.7', source: '127.0.0.2', interface: '203.0.113.1' }];
  await expect(listen(new FakeIngestGate(), { multicast })).rejects.toThrow(/cannot join group 232\.77\.7\.7 from 127\.0\.0\.2: /);
});

it.each(['udp', 'tcp'] as const)('listens on all addresses of IPv4 and of IPv6 over %s, each for itself', async (protocol) => {
  const { port } = await listen(new FakeIngestGate(), { host: '0.0.0.0', protocol });
  await listen(new FakeIngestGate(), { host: '::', protocol, ports: [port] });
});

it('receives RTP-wrapped transport streams', async () => {
  const gate = new FakeIngestGate();
  const { port } = await listen(gate);
  const child = spawn(
    requireProgram('ffmpeg'),
    ['-v', 'error', '-nostdin', ...INPUTS, ...CODECS, '-f', 'rtp_mpegts', `rtp://127.0.0.1:${port}`],
    { stdio: 'ignore' },
  );
  onTestFinished(() => {
    child.kill('SIGKILL');
  });
  const stream = await gate.stream();
  await stream.until(({ packets }) => packets.length > 30);
  expect(stream.tracks).toHaveLength(2);
});

it('receives over a TCP connection and ends the stream with it', async () => {
  const gate = new FakeIngestGate();
  const { port } = await listen(gate, { protocol: 'tcp' });
  const sender = send(`tcp://127.0.0.1:${port}`);
  const stream = await gate.stream();
  await stream.until(({ packets }) => packets.length > 30);
  const second = net.connect(port, '127.0.0.1');
  await once(second, 'close');
  sender.stop();
  await stream.until(({ closed }) => closed);
  expect(stream.closeReason).toMatchObject({ code: 'peer-left' });
});

it.each([
  ['HTTP', 'GET /live HTTP/1.1\r\nHost: a\r\n\r\n'],
  ['TLS', '\u0016\u0003\u0001\u0001\u0000\u0001'],
])('closes a TCP connection that speaks %s at once, and the log names it', async (spoken, text) => {
  const gate = new FakeIngestGate();
  const logger = new RecordingLogger();
  const refusals = new RefusalLog(logger);
  onTestFinished(() => refusals.close());
  const limiter = new ConnectionLimiter({ what: 'MPEG-TS connections', refusals });
  const { port } = await listen(gate, { protocol: 'tcp', limiter, refusals });
  const stranger = net.connect(port, '127.0.0.1');
  stranger.end(text, 'latin1');
  await once(stranger, 'close');
  expect(gate.streams).toEqual([]);
  const why = `${spoken} was spoken to port ${port}, which speaks MPEG-TS: players, the API and the console have other ports`;
  expect(logger.lines).toMatchObject([{ level: 'warn', message: `MPEG-TS connections closed: ${why}`, fields: { peer: '127.0.0.1' } }]);
});

it('closes a TCP connection that brings nothing, and the log says so', async () => {
  const { port, logger } = await listen(new FakeIngestGate(), { protocol: 'tcp', timeouts: { firstTrack: 200 } });
  await once(net.connect(port, '127.0.0.1'), 'close');
  expect(logger.lines.at(-1)?.message).toMatch(/^MPEG-TS connection closed: (nothing came for|no usable stream in) 200 ms$/);
});

it('tells of a TCP connection to a port that has one', async () => {
  const logger = new RecordingLogger();
  const refusals = new RefusalLog(logger);
  onTestFinished(() => refusals.close());
  const { port } = await listen(new FakeIngestGate(), { protocol: 'tcp', refusals });
  const first = net.connect(port, '127.0.0.1');
  await once(first, 'connect');
  const second = net.connect(port, '127.0.0.1');
  const peer = await once(second, 'connect').then(() => `127.0.0.1:${second.localPort}`);
  await once(second, 'close');
  expect(logger.lines).toMatchObject([{ message: 'MPEG-TS connections refused: their port has one', fields: { port, peer } }]);
});

it('ignores a second sender while the first sends', async () => {
  const gate = new FakeIngestGate();
  const { port, provider } = await listen(gate);
  send(`udp://127.0.0.1:${port}?pkt_size=1316`);
  const stream = await gate.stream();
  await stream.until(({ packets }) => packets.length > 10);
  const other = createSocket('udp4');
  onTestFinished(() => {
    other.close();
  });
  const garbage = Buffer.alloc(1316, 0x47);
  const source = provider.sources.get(port)!;
  await until('five are refused', () => {
    other.send(garbage, port, '127.0.0.1');
    return source.counters.foreign >= 5;
  });
  expect(gate.streams).toHaveLength(1);
});

it.each(['udp', 'tcp'] as const)('writes an address of IPv6 in brackets over %s', async (protocol) => {
  const gate = new FakeIngestGate();
  const { port } = await listen(gate, { host: '::1', protocol });
  send(`${protocol}://[::1]:${port}`);
  const { request } = await gate.stream();
  expect(request.sourceUrl).toMatch(new RegExp(`^${protocol.toUpperCase()}://\\[::1\\]:\\d+$`));
  expect(request.client).toBe('::1');
});

it('continues the stream of a restarted encoder after a second, and of another address later with a warning', () => {
  const gate = new FakeIngestGate();
  const logger = new RecordingLogger();
  const clock = new ManualClock();
  const open = (request: IngestRequest) => gate.openIngest({ host: 'default', app: 'app' }, request);
  const route = () => ({ streamName: 'tv', audioLabels: [], open });
  const source = new PortSource({ port: 4000, scheme: 'UDP', route, logger, clock, timeouts: DEFAULT_MPEGTS_TIMEOUTS });
  const packet = Buffer.alloc(188, 0x47);
  const hears = (sender: string): boolean => {
    const before = source.counters.foreign;
    source.push(packet, sender);
    return source.counters.foreign === before;
  };
  expect(hears('192.0.2.1:5000')).toBe(true);
  clock.advance(999);
  expect([hears('192.0.2.1:6000'), hears('192.0.2.2:5000')]).toEqual([false, false]);
  clock.advance(1);
  expect([hears('192.0.2.2:5000'), hears('192.0.2.1:6000')]).toEqual([false, true]);
  clock.advance(4999);
  expect(hears('192.0.2.2:5000')).toBe(false);
  clock.advance(1);
  expect(hears('192.0.2.2:5000')).toBe(true);
  const lines = logger.matching("another sender goes on with stream 'tv'");
  expect(lines.map(({ level, fields }) => [level, fields['peer']])).toEqual([
    ['info', '192.0.2.1:6000'],
    ['warn', '192.0.2.2:5000'],
  ]);
});

it('accepts only the named senders, and accepts them without a waiting time', () => {
  const gate = new FakeIngestGate();
  const logger = new RecordingLogger();
  const refusals = new RefusalLog(logger);
  onTestFinished(() => refusals.close());
  const clock = new ManualClock();
  const open = (request: IngestRequest) => gate.openIngest({ host: 'default', app: 'app' }, request);
  const sources = new AddressSet(['192.0.2.1', '2001:db8::/32']);
  const route = () => ({ streamName: 'tv', audioLabels: [], sources, open });
  const source = new PortSource({ port: 4000, scheme: 'UDP', route, logger, clock, timeouts: DEFAULT_MPEGTS_TIMEOUTS, refusals });
  const packet = Buffer.alloc(188, 0x47);
  for (let n = 0; n < 100; n += 1) source.push(packet, `198.51.100.${n}:5000`);
  expect([gate.streams.length, source.counters.barred]).toEqual([0, 100]);
  source.push(packet, '[2001:db8::1]:5000');
  clock.advance(60_000);
  source.push(packet, '198.51.100.1:5000');
  expect([gate.streams.length, source.counters.barred]).toEqual([1, 101]);
  // Turns when many streams begin.
  expect(gate.streams[0]?.request.client).toBe('2001:db8::1');
  source.push(packet, '192.0.2.1:5000');
  expect(source.counters).toMatchObject({ barred: 101, foreign: 0 });
  // A line for each of the first addresses, and then none, however many there are.
  const told = logger.matching('MPEG-TS senders not heard: the stream map names others for their port');
  expect(told.map(({ fields }) => fields['peer'])).toEqual(Array.from({ length: 1 + MAX_LATE_LINES }, (_, n) => `198.51.100.${n}:5000`));
  expect([source.admits('192.0.2.1:1'), source.admits('192.0.2.2:1')]).toEqual([true, false]);
});

it('opens no stream for garbage, and closes a sender without usable packets', async () => {
  const gate = new FakeIngestGate();
  const { port, provider } = await listen(gate, { timeouts: { unpublishedSilence: 200 } });
  const sender = createSocket('udp4');
  onTestFinished(() => {
    sender.close();
  });
  const source = provider.sources.get(port)!;
  await until('three are refused', () => {
    sender.send(Buffer.alloc(500, 1), port, '127.0.0.1');
    return source.counters.foreignFormat >= 3;
  });
  expect(gate.streams).toHaveLength(0);
  sender.send(Buffer.alloc(188, 0x47), port, '127.0.0.1');
  const stream = await gate.stream();
  await stream.until(({ closed }) => closed);
  expect(stream.closeReason).toMatchObject({ code: 'timeout' });
  expect(source.publishing).toBe(false);
});

it.each(['checkStart', 'end'] as const)('an internal fault in %s ends the stream, and the port stays open', async (method) => {
  const gate = new FakeIngestGate();
  const { port, provider, logger } = await listen(gate, { timeouts: { unpublishedSilence: 100, retry: 0 } });
  const failing = vi.spyOn(TransportFeed.prototype, method).mockImplementationOnce(() => {
    throw new TypeError('made up');
  });
  const sender = createSocket('udp4');
  onTestFinished(() => {
    sender.close();
  });
  sender.send(Buffer.alloc(188, 0x47), port, '127.0.0.1');
  const stream = await gate.stream();
  await stream.until(({ closed }) => closed);
  failing.mockRestore();
  expect(stream.closeReason).toEqual({ code: 'peer-error', detail: 'internal error' });
  expect(logger.matching('transport stream failed inside the server')).toHaveLength(1);
  expect(provider.sources.get(port)?.publishing).toBe(false);
  sender.send(Buffer.alloc(188, 0x47), port, '127.0.0.1');
  await gate.stream(1);
});

it('ends the stream when a packet causes an internal fault, and accepts the next stream', async () => {
  const gate = new FakeIngestGate();
  gate.fault = new TypeError('made up');
  const { port, logger } = await listen(gate, { timeouts: { retry: 0 } });
  send(`udp://127.0.0.1:${port}?pkt_size=1316`);
  const stream = await gate.stream();
  await stream.until(({ closed }) => closed);
  expect(stream.closeReason).toEqual({ code: 'peer-error', detail: 'internal error' });
  expect((await logger.line('transport stream failed inside the server')).fields['err']).toBe(gate.fault);
  gate.fault = null;
  const next = await gate.stream(gate.streams.length);
  await next.until(({ packets }) => packets.length > 5);
});

it('warns once about a port that no stream is mapped to', async () => {
  const gate = new FakeIngestGate();
  const { port, provider, logger } = await listen(gate, { route: () => null, timeouts: { retry: 0 } });
  const sender = createSocket('udp4');
  onTestFinished(() => {
    sender.close();
  });
  await until('five datagrams without a stream', () => {
    sender.send(Buffer.alloc(188, 0x47), port, '127.0.0.1');
    return provider.sources.get(port)!.counters.unrouted >= 5;
  });
  expect(logger.lines.filter(({ level }) => level === 'warn')).toHaveLength(1);
});

it('rejects an occupied port', async () => {
  const gate = new FakeIngestGate();
  const { port } = await listen(gate);
  await expect(listen(gate, { ports: [port] })).rejects.toThrow(/EADDRINUSE/);
});
