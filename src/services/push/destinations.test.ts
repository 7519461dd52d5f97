/** Connections to well-behaved and to faulty receivers. */
import { createSocket } from 'node:dgram';
import net, { type AddressInfo } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { FakeIngestGate, type FakeIngestStream } from '../../../test/fakes/fake-ingest-gate.ts';
import { RecordingLogger } from '../../../test/fakes/recording-logger.ts';
import { accept, RtmpServer, type ServerScript } from '../../../test/fakes/rtmp-server.ts';
import { selfSigned } from '../../../test/fakes/self-signed.ts';
import {
  audioPackets,
  audioTrack,
  constantFrames,
  dataTrack,
  interleave,
  videoPackets,
  videoTrack,
} from '../../../test/fakes/synthetic-media.ts';
import { AVCC, HVCC } from '../../../test/fixtures/bitstreams.ts';
import { demuxTs } from '../../../test/support/ts-demuxer.ts';
import type { Packet } from '../../media/packet.ts';
import type { EventFormat } from '../../media/timed-event.ts';
import type { Track } from '../../media/track.ts';
import { LinkReporter } from '../../transport/srt/link-reporter.ts';
import { systemClock } from '../../util/clock.ts';
import { AmfObject } from '../../wire/rtmp/amf.ts';
import { serializeAmf0 } from '../../wire/rtmp/amf0.ts';
import { userControlMessage } from '../../wire/rtmp/control.ts';
import { MessageType, UserControlEvent } from '../../wire/rtmp/message.ts';
import type { RtmpProviderOptions } from '../rtmp/rtmp-options.ts';
import { RtmpProvider } from '../rtmp/rtmp-provider.ts';
import type { Destination } from './destination.ts';
import { openDestination } from './open-destination.ts';
import type { PushFailure } from './push-failure.ts';
import type { PushRequest } from './push-request.ts';

const VIDEO = videoTrack();
const AUDIO = audioTrack();
const HEVC = videoTrack({ codec: 'H265', config: Object.values(HVCC)[0] ?? null, codecString: 'hvc1.1.6.L93.B0' });

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** A connection with what happened to it. */
class Attempt {
  readonly destination: Destination;
  readonly opened = Promise.withResolvers<void>();
  readonly failed = Promise.withResolvers<PushFailure>();
  writable = 0;

  constructor(request: Partial<PushRequest>, tracks: readonly Track[] = [VIDEO, AUDIO], timeouts = { connection: 5000, send: 2000 }) {
    const all = {
      id: 'id',
      streamName: 's',
      trackIds: [],
      variantNames: [],
      protocol: 'rtmp',
      url: '',
      streamKey: 'key',
      isConfig: false,
    } as const;
    const owner = { vhost: 'default', app: 'app' };
    const logger = new RecordingLogger();
    this.destination = openDestination(
      {
        ...{ request: { ...all, ...request }, owner, logger, tracks, timeouts, clock: systemClock },
        events: {
          onOpen: () => this.opened.resolve(),
          onWritable: () => {
            this.writable += 1;
          },
          onFailed: (failure) => this.failed.resolve(failure),
        },
      },
      new LinkReporter({ clock: systemClock, logger }),
    );
    cleanups.push(() => this.destination.close());
  }

  send(packets: readonly Packet[]): void {
    for (const packet of packets) this.destination.write(packet);
    this.destination.flush();
  }
}

async function provider(options: Partial<RtmpProviderOptions> = {}) {
  const gate = new FakeIngestGate();
  const made = new RtmpProvider({ gate, logger: new RecordingLogger(), clock: systemClock, host: '127.0.0.1', port: 0, ...options });
  await made.start();
  cleanups.push(() => made.stop());
  return { gate, url: `rtmp://127.0.0.1:${made.port}/app` };
}

/** A TCP server that treats its connections as the test says. */
async function listen(onConnection: (socket: net.Socket) => void): Promise<number> {
  const sockets = new Set<net.Socket>();
  const server = net.createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    onConnection(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanups.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

/** A scripted RTMP server; returns its received messages. */
async function scripted(script: ServerScript, onAccepted?: (socket: net.Socket) => void) {
  let heard: RtmpServer | null = null;
  const port = await listen((socket) => {
    const server = new RtmpServer(
      (bytes) => socket.write(bytes),
      (command, self) => {
        script(command, self);
        if (command.name === 'publish') onAccepted?.(socket);
      },
    );
    heard = server;
    socket.on('data', (data: Buffer) => server.receive(data));
  });
  return { url: `rtmp://127.0.0.1:${port}/live`, heard: () => heard };
}

function media(seconds: number, video = VIDEO): Packet[] {
  const frames = constantFrames({ rate: 30, gop: 30, seconds, from: 10, bFrames: true });
  const [first, ...rest] = videoPackets(video, frames);
  // Every connection begins with a keyframe.
  return [...(first === undefined ? [] : [first]), ...interleave(rest, audioPackets(AUDIO, seconds, 9.95))];
}

/** One NAL unit that fills `data`. */
function lengthPrefixed(data: Uint8Array): Uint8Array {
  const unit = Buffer.from(data);
  unit.writeUInt32BE(unit.length - 4, 0);
  unit.writeUInt8(0x65, 4);
  return unit;
}

function byTrack(stream: FakeIngestStream, type: string) {
  const id = stream.tracks.find((track) => track.type === type)?.id;
  return stream.packets.filter(({ trackId }) => trackId === id);
}

describe('RTMP', () => {
  test('sends every packet with its times, which start at 0 with the first frame', async () => {
    const { gate, url } = await provider();
    const attempt = new Attempt({ url });
    await attempt.opened.promise;
    const packets = media(2);
    attempt.send(packets);
    const stream = await gate.stream();
    await stream.until(() => byTrack(stream, 'video').length === 60);
    expect(stream.tracks).toMatchObject([
      { type: 'video', codec: 'H264', width: 1280 },
      { type: 'audio', codec: 'AAC', sampleRate: 48_000 },
    ]);
    const sent = packets.filter(({ track }) => track === VIDEO);
    const milliseconds = (ticks: number): number => Math.round(ticks / 90 - 10_000);
    expect(byTrack(stream, 'video').map(({ dts, pts, keyframe }) => [dts, pts, keyframe])).toEqual(
      sent.map(({ dts, pts, keyframe }) => [milliseconds(dts), milliseconds(pts), keyframe]),
    );
    expect(byTrack(stream, 'video').every(({ data }, index) => Buffer.compare(data, sent[index]?.data ?? Buffer.alloc(0)) === 0)).toBe(
      true,
    );
    await attempt.destination.close();
    await stream.until(({ closed }) => closed);
    // Packets before the first frame are left out.
    expect(byTrack(stream, 'audio')).toHaveLength(packets.filter(({ track, dts }) => track === AUDIO && dts / 48 >= 9999.5).length);
    expect(attempt.destination.sentBytes).toBeGreaterThan(stream.packets.reduce((sum, { data }) => sum + data.length, 0));
  });

  test('sends AMF events as script data, to which a receiver applies its event rules', async () => {
    const { gate, url } = await provider();
    const hLSID3v2 = { eventType: 'audio', frameType: 'TXXX', info: 'text', data: '${TriggerValue}!' };
    gate.settings = { eventGenerator: { event: [{ trigger: 'AMFDataMessage.onTextData.text', hLSID3v2 }] } };
    const data = dataTrack(2);
    const attempt = new Attempt({ url }, [VIDEO, AUDIO, data]);
    await attempt.opened.promise;
    const event = (seconds: number, format: EventFormat, bytes: Uint8Array): Packet => ({
      ...{ track: data, pts: seconds * 90_000, dts: seconds * 90_000, duration: 0, keyframe: true, data: bytes },
      event: { format, target: 'all' },
    });
    const amf = (text: string) => serializeAmf0(['onTextData', AmfObject.of({ text })]);
    // Before the first frame there is no time to tell.
    attempt.send([event(10, 'amf', amf('early')), ...media(1), event(11, 'amf', amf('hello')), event(11, 'id3v2', amf('tag'))]);
    attempt.send([event(11, 'amf', serializeAmf0(['onElse', null])), event(11.5, 'amf', amf('last'))]);
    const stream = await gate.stream();
    await stream.until(({ events }) => events.length === 2);
    expect(stream.events.map(({ format, target, at }) => [format, target, at])).toEqual([
      ['id3v2', 'audio', 1],
      ['id3v2', 'audio', 1.5],
    ]);
    expect(Buffer.from(stream.events[0]?.data ?? []).toString('latin1')).toContain('text\0hello!\0');
  });

  test('sends new parameters before the packets that need them', async () => {
    const { heard, url } = await scripted(accept);
    const attempt = new Attempt({ url }, [VIDEO]);
    await attempt.opened.promise;
    const changed = videoTrack({ config: Object.values(AVCC)[1] ?? null });
    const [first, second] = [VIDEO, changed].map((track, index) => videoPackets(track, [{ seconds: index, keyframe: true }], 5)[0]);
    if (first === undefined || second === undefined) throw new Error('no packets');
    attempt.send([first, second, { ...second, track: { ...changed } }]);
    await attempt.destination.close();
    const tags = heard()
      ?.messages.filter(({ typeId }) => typeId === MessageType.VIDEO)
      .map(({ payload, timestamp }) => `${payload[1]}@${timestamp}`);
    expect(tags).toEqual(['0@0', '1@0', '0@1000', '1@1000', '1@1000']);
  });

  test('sends H.265 and Opus to a receiver that announces support for them', async () => {
    const { gate, url } = await provider();
    const opus = audioTrack({ codec: 'OPUS', config: null });
    const attempt = new Attempt({ url }, [HEVC, opus]);
    await attempt.opened.promise;
    attempt.send(
      interleave(
        media(1, HEVC).filter(({ track }) => track === HEVC),
        audioPackets(opus, 1, 10),
      ),
    );
    const stream = await gate.stream();
    await stream.until(() => byTrack(stream, 'video').length === 30);
    expect(stream.tracks).toMatchObject([
      { type: 'video', codec: 'H265' },
      { type: 'audio', codec: 'OPUS' },
    ]);
  });

  test('names the codec that a receiver does not support', async () => {
    const { url } = await scripted(accept);
    const failure = await new Attempt({ url }, [HEVC, AUDIO]).failed.promise;
    expect(failure).toMatchObject({ code: 'unsuitable', message: expect.stringMatching(/takes no H265 \(Enhanced RTMP hvc1\)/) });
  });

  test.each([
    ['rtmp://127.0.0.1/app', '', /streamKey is missing/],
    ['rtmp://127.0.0.1', 'key', /<application>/],
    ['rtmp://127.0.0.1:99999/app', 'key', /<application>/],
  ])('refuses at once %s', (url, streamKey, message) => {
    expect(() => new Attempt({ url, streamKey })).toThrow(message);
  });

  test('reports a duplicate stream name', async () => {
    const { gate, url } = await provider();
    gate.refusal = 'duplicate-name';
    expect(await new Attempt({ url }).failed.promise).toMatchObject({ code: expect.stringMatching(/refused|lost/) });
  });

  test('refuses a self-signed certificate', async () => {
    const { gate, url } = await provider({ tls: [{ hostNames: ['localhost'], ...selfSigned('localhost') }] });
    const failure = await new Attempt({ url: url.replace('rtmp://127.0.0.1', 'rtmps://localhost') }).failed.promise;
    expect(failure).toMatchObject({ code: 'unreachable', message: expect.stringMatching(/self.signed/) });
    expect(gate.streams).toEqual([]);
  });
});

describe('a receiver that', () => {
  test('does not listen', async () => {
    const port = await listen(() => undefined);
    for (const cleanup of cleanups.splice(0)) await cleanup();
    const failure = await new Attempt({ url: `rtmp://127.0.0.1:${port}/live` }).failed.promise;
    expect(failure).toMatchObject({ code: 'unreachable', message: expect.stringMatching(/ECONNREFUSED/) });
  });

  test('does not answer', async () => {
    const port = await listen(() => undefined);
    const failure = await new Attempt({ url: `rtmp://127.0.0.1:${port}/live` }, [VIDEO], { connection: 100, send: 2000 }).failed.promise;
    expect(failure).toMatchObject({ code: 'timeout', message: 'the receiver took no stream within 100 ms' });
  });

  test('speaks another protocol', async () => {
    const port = await listen((socket) => socket.write('HTTP/1.1 400 Bad Request\r\n\r\n'));
    expect(await new Attempt({ url: `rtmp://127.0.0.1:${port}/live` }).failed.promise).toMatchObject({ code: 'protocol' });
  });

  test('starts messages and finishes none', async () => {
    // A video message of 60000 bytes is announced, and 128 of them come.
    const unfinished = Buffer.concat([Buffer.from([4, 0, 0, 0, 0, 0xea, 0x60, MessageType.VIDEO, 1, 0, 0, 0]), Buffer.alloc(128)]);
    const { url } = await scripted(accept, (socket) => {
      for (let n = 0; n < 100; n += 1) socket.write(unfinished);
    });
    const failure = await new Attempt({ url }).failed.promise;
    expect(failure).toMatchObject({ code: 'protocol', message: expect.stringMatching(/RTMP_DISCARDED.*more than 16 messages a second/) });
  });

  test('resets the connection', async () => {
    const { url } = await scripted(accept, (socket) => setImmediate(() => socket.resetAndDestroy()));
    expect(await new Attempt({ url }).failed.promise).toMatchObject({ code: 'lost' });
  });

  test('stops reading', async () => {
    const { url } = await scripted(accept, (socket) => socket.pause());
    const attempt = new Attempt({ url }, [VIDEO], { connection: 5000, send: 150 });
    await attempt.opened.promise;
    const frames = videoPackets(VIDEO, constantFrames({ rate: 30, gop: 30, seconds: 2 }), 500_000);
    attempt.send(frames);
    expect(attempt.destination.write(frames[0]!)).toBe(false);
    expect(await attempt.failed.promise).toMatchObject({ code: 'stalled', message: 'the receiver read nothing for 150 ms' });
  });

  test('asks without reading the answers, is cut off', async () => {
    const ping = userControlMessage(UserControlEvent.PING_REQUEST, 1).payload;
    const pings = Buffer.concat(
      Array.from({ length: 5000 }, () => [Buffer.from([2, 0, 0, 0, 0, 0, ping.length, MessageType.USER_CONTROL, 0, 0, 0, 0]), ping]).flat(),
    );
    const { url } = await scripted(accept, (socket) => {
      socket.pause();
      const flood = (): void => {
        socket.write(pings);
        if (!socket.destroyed && socket.writableLength < 8 * 1024 * 1024) setImmediate(flood);
      };
      flood();
    });
    const attempt = new Attempt({ url }, [VIDEO], { connection: 5000, send: 300 });
    expect(await attempt.failed.promise).toMatchObject({ code: 'stalled', message: 'the receiver read nothing for 300 ms' });
  });

  test('reads slowly gets every packet, and the destination reports when it can send more', async () => {
    let socketOfReceiver: net.Socket | null = null;
    const { url, heard } = await scripted(accept, (socket) => {
      socket.pause();
      socketOfReceiver = socket;
    });
    const attempt = new Attempt({ url }, [VIDEO], { connection: 5000, send: 10_000 });
    await attempt.opened.promise;
    attempt.send(videoPackets(VIDEO, constantFrames({ rate: 30, gop: 30, seconds: 1 }), 300_000));
    (socketOfReceiver as net.Socket | null)?.resume();
    await expect.poll(() => attempt.writable).toBeGreaterThan(0);
    await attempt.destination.close();
    await expect.poll(() => heard()?.messages.filter(({ typeId }) => typeId === MessageType.VIDEO).length).toBe(31);
  });

  test('is connected to a destination closed twice sees one end', async () => {
    const { gate, url } = await provider();
    const attempt = new Attempt({ url });
    await attempt.opened.promise;
    const stream = await gate.stream();
    await Promise.all([attempt.destination.close(), attempt.destination.close()]);
    await stream.until(({ closed }) => closed);
  });
});

describe('MPEG-TS', () => {
  test.each([
    ['mpegts', 'udp://127.0.0.1:0', /port/],
    ['mpegts', 'tcp://127.0.0.1:0', /port/],
    ['srt', 'srt://127.0.0.1:1?latency=fast', /latency of the URL/],
    ['srt', 'srt://127.0.0.1:1?passphrase=short', /PASSPHRASE has 5 bytes/],
    ['srt', 'srt://127.0.0.1:1?pbkeylen=7', /pbkeylen/],
  ] as const)('%s: refuses at once %s', (protocol, url, message) => {
    expect(() => new Attempt({ protocol, url })).toThrow(message);
  });

  test.each(['udp', 'tcp', 'srt'] as const)('%s: a host name that does not resolve fails with a reason', async (scheme) => {
    const protocol = scheme === 'srt' ? 'srt' : 'mpegts';
    // Too long for a name, so no resolver is asked.
    const host = 'a'.repeat(300);
    const failure = await new Attempt({ protocol, url: `${scheme}://${host}:5000` }).failed.promise;
    expect(failure).toMatchObject({ code: 'unreachable', message: expect.stringContaining(host) });
  });

  test('UDP: frames larger than any socket buffer arrive whole, in bursts', async () => {
    const receiver = createSocket('udp4');
    cleanups.push(() => receiver.close());
    let bytes = 0;
    receiver.on('message', (datagram) => {
      bytes += datagram.length;
    });
    await new Promise<void>((resolve) => receiver.bind(0, '127.0.0.1', resolve));
    const attempt = new Attempt({ protocol: 'mpegts', url: `udp://127.0.0.1:${receiver.address().port}` }, [VIDEO]);
    await attempt.opened.promise;
    const pictures = videoPackets(
      VIDEO,
      [0, 1, 2].map((seconds) => ({ seconds, keyframe: true })),
      250_000,
    ).map((packet) => ({ ...packet, data: lengthPrefixed(packet.data) }));
    for (const picture of pictures) attempt.send([picture]);
    expect(attempt.destination.write({ ...pictures[0]!, track: audioTrack({ id: 9 }) })).toBe(false);
    await expect.poll(() => attempt.writable).toBe(1);
    await attempt.destination.close();
    await expect.poll(() => bytes).toBe(attempt.destination.sentBytes);
    expect(bytes).toBeGreaterThan(3_000_000);
  });

  test('starts at time 0 for any timestamps of the stream, with audio and video aligned', async () => {
    const received: Buffer[] = [];
    const port = await listen((socket) => socket.on('data', (data: Buffer) => received.push(data)));
    const attempt = new Attempt({ protocol: 'mpegts', url: `tcp://127.0.0.1:${port}` });
    await attempt.opened.promise;
    const packets = media(2).map((packet) => (packet.track === VIDEO ? { ...packet, data: lengthPrefixed(packet.data) } : packet));
    attempt.send(packets);
    await attempt.destination.close();
    await expect.poll(() => Buffer.concat(received).length).toBe(attempt.destination.sentBytes);
    const { streams, faults } = demuxTs(Buffer.concat(received));
    expect(faults).toEqual([]);
    const sent = packets.filter(({ track }) => track === VIDEO);
    const base = sent[0]?.dts ?? 0;
    const [video, audio] = streams;
    // Every transport stream of ours begins this late, so that the clock may be ahead of the first frame.
    const offset = video?.pes[0]?.dts ?? 0;
    expect(offset).toBeLessThan(2 * 90_000);
    expect(video?.pes.map(({ pts, dts }) => [pts - offset, dts - offset])).toEqual(sent.map(({ pts, dts }) => [pts - base, dts - base]));
    const sound = packets.filter(({ track, dts }) => track === AUDIO && Math.round((dts * 90) / 48) >= base);
    expect(audio?.pes.map(({ pts }) => pts - offset)).toEqual(sound.map(({ pts }) => Math.round((pts * 90) / 48) - base));
  });

  test('SRT: an absent listener fails with a reason', async () => {
    const attempt = new Attempt({ protocol: 'srt', url: 'srt://127.0.0.1:9' }, [VIDEO], { connection: 300, send: 2000 });
    expect((await attempt.failed.promise).message).toMatch(/300 ms/);
  });

  test('can be closed while it connects', async () => {
    for (const url of ['udp://localhost:5000', 'tcp://127.0.0.1:9', 'srt://localhost:9']) {
      const attempt = new Attempt({ protocol: url.startsWith('srt') ? 'srt' : 'mpegts', url });
      await attempt.destination.close();
    }
  });
});
