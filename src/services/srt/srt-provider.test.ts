import { afterEach, describe, expect, test, vi } from 'vitest';
import { FakeIngestGate } from '../../../test/fakes/fake-ingest-gate.ts';
import { RecordingLogger } from '../../../test/fakes/recording-logger.ts';
import { audioPackets, audioTrack, interleave } from '../../../test/fakes/synthetic-media.ts';
import { until } from '../../../test/harness/poll.ts';
import { TsBuffer } from '../../containers/mpegts/ts-buffer.ts';
import { TsMuxer } from '../../containers/mpegts/ts-muxer.ts';
import type { IngestRefused } from '../../core/ingest.ts';
import { TransportFeed } from '../../ingest/transport-feed.ts';
import { readListenerOptions } from '../../transport/srt/socket-options.ts';
import { SrtUdpPort } from '../../transport/srt/udp-port.ts';
import { AddressShares } from '../../util/address-shares.ts';
import { systemClock } from '../../util/clock.ts';
import { RefusalLog } from '../../util/refusal-log.ts';
import type { SrtConnection } from '../../wire/srt/connection.ts';
import { RejectionCode } from '../../wire/srt/rejection.ts';
import { SrtProvider, type SrtProviderOptions } from './srt-provider.ts';

/** End of refusals that a player may get, too. */
const PLAY_HINT = '; to play it, call the port of Bind/Publishers/SRT';

const closings: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const close of closings.splice(0).reverse()) await close();
});

async function listen(options: Partial<SrtProviderOptions> = {}): Promise<{
  gate: FakeIngestGate;
  logger: RecordingLogger;
  provider: SrtProvider;
  port: number;
}> {
  const gate = new FakeIngestGate();
  const logger = new RecordingLogger();
  const provider = new SrtProvider({
    gate,
    logger,
    clock: systemClock,
    host: '127.0.0.1',
    ports: [0],
    settings: readListenerOptions([]),
    streamMap: [],
    streamPassphrases: [],
    virtualHostFor: () => 'default',
    ...options,
  });
  await provider.start();
  closings.push(() => provider.stop());
  return { gate, logger, provider, port: provider.ports[0] ?? 0 };
}

interface Encoder {
  readonly connection: SrtConnection;
  readonly closed: Promise<string>;
  send(payload: Uint8Array): void;
}

async function call(port: number, streamId: string, passphrase: string | null = null, host = '127.0.0.1'): Promise<Encoder> {
  const local = await SrtUdpPort.open({ clock: systemClock, host, port: 0, policy: null, onError: () => undefined });
  closings.push(() => local.close('the test has ended'));
  let onClosed: (code: string) => void = () => undefined;
  const closed = new Promise<string>((resolve) => {
    onClosed = resolve;
  });
  const connection = await local.connect(
    { address: '127.0.0.1', port },
    { streamId, passphrase, keyLength: null, latency: { receive: 20, peer: 20 }, timeout: 10_000_000 },
    { onData: () => undefined, onClosed: ({ code }) => onClosed(code) },
  );
  return { connection, closed, send: (payload) => connection.send(payload, local.now()) };
}

/** A second of audio as a transport stream. */
function sound(): Uint8Array {
  const track = audioTrack({ id: 5 });
  const muxer = new TsMuxer([track]);
  const output = new TsBuffer();
  muxer.writeTables(output);
  for (const packet of interleave(audioPackets(track, 1))) muxer.writePacket(packet, output);
  return output.view().slice();
}

describe('data of encoders', () => {
  test('becomes tracks and packets of the stream they name', async () => {
    const { gate, logger, port } = await listen({ audioLabels: () => [{ name: 'Commentary', language: 'en' }] });
    const encoder = await call(port, 'media.example/app/live?token=secret');
    const bytes = sound();
    for (let at = 0; at < bytes.length; at += 1316) encoder.send(bytes.subarray(at, at + 1316));
    const stream = await gate.stream();
    await stream.until(({ packets }) => packets.length > 40);
    expect(stream.target).toEqual({ vhost: 'media.example', host: 'media.example', app: 'app' });
    expect(stream.request).toMatchObject({ streamName: 'live', provider: 'srt', sourceType: 'SRT' });
    expect(stream.request.sourceUrl).toMatch(/^SRT:\/\/127\.0\.0\.1:\d+$/);
    expect(stream.tracks).toMatchObject([{ type: 'audio', codec: 'AAC', publicName: 'Commentary', language: 'en' }]);
    expect(stream.bytes).toBe(bytes.length);
    expect(JSON.stringify(logger.lines)).not.toContain('secret');
    encoder.connection.close('done', performance.now() * 1000);
    await stream.until(({ closed }) => closed);
    expect(stream.closeReason?.code).toBe('peer-left');
    expect((await logger.line('SRT connection closed')).fields).toMatchObject({
      ...{ code: 'peer-left', stream: 'live', rttMs: expect.any(Number), packetsDelivered: Math.ceil(bytes.length / 1316) },
      ...{ packetsLost: 0, packetsRetransmitted: expect.any(Number), packetsDroppedLate: 0 },
    });
  });

  test('is counted in statistics while it arrives', async () => {
    const { provider, port } = await listen();
    const encoder = await call(port, 'default/app/live');
    for (let index = 0; index < 20; index += 1) encoder.send(new Uint8Array(1316).fill(0x47));
    await until('all packets', () => provider.statistics()[0]?.receiver.packetsDelivered === 20, { deadlineMs: 30_000 });
    expect(provider.statistics()).toMatchObject([
      {
        session: '1',
        vhost: 'default',
        app: 'app',
        stream: 'live',
        receiver: { packetsReceived: 20, bytesDelivered: 20 * 1316, packetsLost: 0 },
      },
    ]);
    encoder.connection.close('done', performance.now() * 1000);
    await until('the end of the connection', () => provider.statistics().length === 0, { deadlineMs: 30_000 });
  });

  test.each(['push', 'checkStart', 'end'] as const)('an internal fault in %s closes only the connection that caused it', async (method) => {
    const { gate, logger, provider, port } = await listen();
    const before = await call(port, 'default/app/before');
    const fault = new TypeError('made up');
    const failing = vi.spyOn(TransportFeed.prototype, method).mockImplementationOnce(() => {
      throw fault;
    });
    const encoder = method === 'checkStart' ? before : await call(port, 'default/app/live');
    if (method === 'push') encoder.send(sound().subarray(0, 1316));
    if (method === 'end') encoder.connection.close('done', performance.now() * 1000);
    const stream = await gate.stream(encoder === before ? 0 : 1);
    await stream.until(({ closed }) => closed);
    failing.mockRestore();
    expect(stream.closeReason).toEqual({ code: 'peer-error', detail: 'internal error' });
    expect(logger.matching('SRT connection failed inside the server').map(({ fields }) => fields['err'])).toEqual([fault]);
    const after = encoder === before ? await call(port, 'default/app/after') : before;
    const bytes = sound();
    for (let at = 0; at < bytes.length; at += 1316) after.send(bytes.subarray(at, at + 1316));
    await (await gate.stream(encoder === before ? 1 : 0)).until(({ packets }) => packets.length > 40);
    expect(provider.connections).toBe(1);
  });

  test('selects the requested program, which must be a number', async () => {
    const { gate, port } = await listen({ timeouts: { firstTrack: 300 } });
    for (const program of ['0', 'two', '65536', '-1', '']) {
      await expect(call(port, `default/app/live?program=${program}`)).rejects.toMatchObject({ code: RejectionCode.BAD_REQUEST });
    }
    const bytes = sound();
    for (const program of [1, 2]) {
      const encoder = await call(port, `default/app/live?program=${program}`);
      for (let at = 0; at < bytes.length; at += 1316) encoder.send(bytes.subarray(at, at + 1316));
      const stream = await gate.stream(program - 1);
      await stream.until(({ packets, closed }) => packets.length > 40 || closed);
      expect(stream.closeReason?.detail ?? 'it runs').toMatch(program === 1 ? /^it runs$/ : /there is no program 2 among 1$/);
    }
  });

  test('silence before any track is known ends the connection', async () => {
    const { gate, port } = await listen({ timeouts: { unpublishedSilence: 150 } });
    const encoder = await call(port, 'default/app/live');
    expect(await encoder.closed).toBe('peer-left');
    expect((await gate.stream()).closeReason).toEqual({
      code: 'timeout',
      detail: `silent for 150 ms before any track was known${PLAY_HINT}`,
    });
  });

  test('may arrive as late as the latency allows', async () => {
    const { gate, port } = await listen({
      // Less than the latency, and enough for a machine that stands still meanwhile.
      timeouts: { unpublishedSilence: 900, firstTrack: 900 },
      settings: readListenerOptions([{ key: 'RCVLATENCY', value: '1200' }]),
    });
    const encoder = await call(port, 'default/app/live');
    const bytes = sound();
    for (let at = 0; at < bytes.length; at += 1316) encoder.send(bytes.subarray(at, at + 1316));
    const stream = await gate.stream();
    await stream.until(({ packets, closed }) => packets.length > 40 || closed);
    expect(stream.closeReason).toBeNull();
  });

  test('without a usable track ends the connection with that reason', async () => {
    const { gate, port } = await listen({ timeouts: { firstTrack: 200 } });
    const encoder = await call(port, 'default/app/live');
    encoder.send(new Uint8Array(1316).fill(0xaa));
    await encoder.closed;
    expect((await gate.stream()).closeReason?.detail).toMatch(/no usable track within 200 ms/);
  });
});

describe('admission of callers', () => {
  test.each([
    ['no-virtual-host', RejectionCode.NOT_FOUND],
    ['no-application', RejectionCode.NOT_FOUND],
    ['provider-disabled', RejectionCode.FORBIDDEN],
    ['duplicate-name', RejectionCode.CONFLICT],
    ['invalid-name', RejectionCode.BAD_REQUEST],
    ['full', RejectionCode.OVERLOAD],
    ['shutting-down', RejectionCode.UNAVAILABLE],
  ] as const)('%s is refused with its code', async (refusal: IngestRefused['code'], code) => {
    const { gate, logger, provider, port } = await listen();
    gate.refusal = refusal;
    await expect(call(port, 'default/app/live')).rejects.toMatchObject({ code });
    expect(provider).toMatchObject({ refused: 1, connections: 0 });
    const line = await logger.line(`publisher refused: refused by the test: ${refusal}${refusal === 'duplicate-name' ? PLAY_HINT : ''}`);
    expect(line).toMatchObject({ level: 'warn', fields: { code: refusal, app: 'app', stream: 'live' } });
    expect(line.fields['detail']).toContain(refusal);
  });

  test('a caller without a stream id gets the stream of its port, and is refused at an unmapped port', async () => {
    const first = await listen();
    await expect(call(first.port, '')).rejects.toMatchObject({ code: RejectionCode.BAD_REQUEST });
    await expect(call(first.port, 'nonsense\u0085?key=secret')).rejects.toMatchObject({ code: RejectionCode.BAD_REQUEST });
    expect(first.logger.lines.filter(({ level }) => level === 'warn').map(({ message }) => message)).toEqual([
      'publisher refused: the stream id is missing, and the port has no stream of its own (StreamMap): want streamid=VHOST/APP/STREAM, e.g. default/app/live',
      'publisher refused: the stream id "nonsense\\u0085?…" names no stream: want streamid=VHOST/APP/STREAM, e.g. default/app/live',
    ]);
    await first.provider.stop();
    const { gate, port } = await listen({ ports: [first.port], streamMap: [{ port: first.port, streamPath: 'default/app/mapped' }] });
    await call(port, '');
    expect((await gate.stream()).name).toBe('mapped');
  });

  test.each([
    ['#!::s=a-secret-key,r=live,m=publish', '"#!::s=…,r=live,m=publish" names no stream'],
    ['#!::h=default,r=live,s=a-secret-key', '"#!::h=default,r=live,s=…" names no stream'],
    ['default%2Fapp%3Fkey%3Da-secret-key', '"default/app?…" names no stream'],
    ['%ff/app%3Fkey%3Da-secret-key', '"…" names no stream'],
    ['#!::h=default,r=app/live,m=publish?key=a-secret-key', 'asks for something else'],
  ])('a refusal of the stream id %s is logged without its key', async (streamId, told) => {
    const { port, logger } = await listen();
    await expect(call(port, streamId)).rejects.toThrow();
    const lines = JSON.stringify(logger.lines);
    expect(lines).toContain(JSON.stringify(told).slice(1, -1));
    expect(lines).not.toContain('secret');
  });

  test('every port of a listener accepts callers, and has its own stream for callers without a stream id', async () => {
    const first = await listen({ ports: [0, 0] });
    const { ports } = first.provider;
    await first.provider.stop();
    const { gate, provider } = await listen({
      ports,
      streamMap: ports.map((port, index) => ({ port, streamPath: `default/app/mapped${index}` })),
    });
    for (const port of ports) await call(port, '');
    for (const port of ports) await call(port, `default/app/named${port}`);
    expect([new Set(ports).size, provider.connections]).toEqual([2, 4]);
    expect(gate.streams.map(({ name }) => name)).toEqual(['mapped0', 'mapped1', ...ports.map((port) => `named${port}`)]);
  });

  test('a caller with the mode of a player is refused; a caller without a mode, or with "publish", is admitted', async () => {
    const { provider, port, logger } = await listen();
    await expect(call(port, '#!::u=default/app/live,m=request')).rejects.toMatchObject({ code: RejectionCode.BAD_MODE });
    await expect(call(port, '#!::u=default/app/live,m=bidirectional')).rejects.toMatchObject({ code: RejectionCode.BAD_MODE });
    expect(provider).toMatchObject({ refused: 2, connections: 0 });
    const line = await logger.line(
      'publisher refused: the stream id asks to play, this port takes publishers: players call that of Bind/Publishers/SRT',
    );
    expect(line.fields['detail']).toContain('bad mode (1405)');
    await call(port, '#!::h=default,r=app/live,m=publish');
    expect(provider.connections).toBe(1);
  });

  test('an address has a share of connections, which frees up when one closes; refusals are logged once', async () => {
    const logger = new RecordingLogger();
    const refusals = new RefusalLog(logger);
    closings.push(async () => refusals.close());
    const { port, provider } = await listen({ shares: new AddressShares({ perAddress: 2 }), refusals });
    const first = await call(port, 'default/app/a');
    await call(port, 'default/app/b');
    for (const name of ['c', 'd']) await expect(call(port, `default/app/${name}`)).rejects.toMatchObject({ code: RejectionCode.OVERLOAD });
    await call(port, 'default/app/e', null, '127.0.0.2');
    expect(provider.connections).toBe(3);
    expect(logger.lines.map(({ message, fields }) => [message, fields['count']])).toEqual([
      ['SRT callers refused: their address has its share of connections', 1],
    ]);
    first.connection.close('enough', systemClock.monotonic() * 1000);
    await until('two connections', () => provider.connections === 2);
    await call(port, 'default/app/f');
  });

  test('the passphrase of a stream counts instead of that of the port', async () => {
    const { port, logger, provider } = await listen({
      settings: readListenerOptions([{ key: 'PASSPHRASE', value: 'of-the-port' }]),
      streamPassphrases: [{ streamPath: 'default/app/own', passphrase: 'of-the-stream' }],
    });
    await call(port, 'default/app/any', 'of-the-port');
    await call(port, 'default/app/own?a=b', 'of-the-stream');
    await expect(call(port, 'default/app/own', 'of-the-port')).rejects.toMatchObject({ code: RejectionCode.BAD_SECRET });
    await expect(call(port, 'default/app/any')).rejects.toMatchObject({ code: RejectionCode.UNSECURE });
    // Another of its addresses.
    await expect(call(port, 'media.example/app/own', 'of-the-port')).rejects.toMatchObject({ code: RejectionCode.BAD_SECRET });
    expect(provider.refused).toBe(3);
    const refusals = logger.lines.filter(({ message }) => message.startsWith('publisher refused: '));
    expect(refusals.map(({ fields }) => fields['detail'])).toEqual(['bad secret (10)', 'unsecure (11)', 'bad secret (10)']);
  });
});

describe('the end', () => {
  test('the connection closes when the core ends its stream', async () => {
    const { gate, port } = await listen();
    const encoder = await call(port, 'default/app/live');
    (await gate.stream()).request.onClose({ code: 'deleted', detail: 'by the test' });
    expect(await encoder.closed).toBe('peer-left');
  });

  test('stopping ends every stream and gives the port back', async () => {
    const { gate, provider, port } = await listen();
    const encoder = await call(port, 'default/app/live');
    await provider.stop();
    await provider.stop();
    expect(await encoder.closed).toBe('peer-left');
    expect((await gate.stream()).closeReason?.code).toBe('shutdown');
    expect(provider.connections).toBe(0);
    await listen({ ports: [port] });
  });

  test('an occupied port rejects', async () => {
    const { port } = await listen();
    await expect(listen({ ports: [port] })).rejects.toThrow(/EADDRINUSE/);
  });
});
