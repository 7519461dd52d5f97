import { afterEach, describe, expect, test } from 'vitest';
import { FakeStream } from '../../../test/fakes/fake-stream.ts';
import { RecordingLogger } from '../../../test/fakes/recording-logger.ts';
import { numbered, SimulatedLink } from '../../../test/fakes/srt-link.ts';
import { audioTrack, constantFrames, dataTrack, videoPackets, videoTrack } from '../../../test/fakes/synthetic-media.ts';
import { until } from '../../../test/harness/poll.ts';
import { demuxTs } from '../../../test/support/ts-demuxer.ts';
import { Urgency } from '../../core/urgency.ts';
import type { Packet } from '../../media/packet.ts';
import type { Track } from '../../media/track.ts';
import { readListenerOptions } from '../../transport/srt/socket-options.ts';
import { SrtUdpPort } from '../../transport/srt/udp-port.ts';
import { systemClock } from '../../util/clock.ts';
import { RejectionCode } from '../../wire/srt/rejection.ts';
import { type SrtEgressOptions, SrtPublisher } from './srt-publisher.ts';
import type { SrtStream } from './srt-stream.ts';
import { SrtViewer } from './srt-viewer.ts';

const VIDEO = videoTrack();
const TRACKS: readonly Track[] = [VIDEO, audioTrack(), dataTrack(2)];
const closings: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const close of closings.splice(0).reverse()) await close();
});

interface Setting {
  readonly publisher: SrtPublisher;
  readonly stream: FakeStream;
  readonly served: SrtStream;
  readonly port: number;
  readonly logger: RecordingLogger;
}

async function serve(tracks: readonly Track[] = TRACKS, options: Partial<SrtEgressOptions> = {}): Promise<Setting> {
  const logger = new RecordingLogger();
  const publisher = new SrtPublisher({ logger, clock: systemClock });
  const stream = new FakeStream();
  const served = publisher.attach(stream);
  stream.tracks = tracks;
  stream.playlists = [publisher.defaultPlaylist(tracks)].filter((playlist) => playlist !== null);
  served.onTracks(tracks);
  await publisher.listen({
    host: '127.0.0.1',
    ports: [0],
    settings: readListenerOptions([]),
    streamMap: [],
    streamPassphrases: [],
    virtualHostFor: (name) => (name === 'default' || name === 'media.example' ? 'default' : null),
    ...options,
  });
  closings.push(() => publisher.stop());
  return { publisher, stream, served, port: publisher.ports[0] ?? 0, logger };
}

interface Player {
  readonly payloads: Uint8Array[];
  readonly closed: Promise<string>;
  leave(): void;
  /** Resolves when this many bytes have come. */
  received(bytes: number): Promise<void>;
}

async function play(port: number, streamId: string): Promise<Player> {
  const local = await SrtUdpPort.open({ clock: systemClock, host: '127.0.0.1', port: 0, policy: null, onError: () => undefined });
  closings.push(() => local.close('the test has ended'));
  const payloads: Uint8Array[] = [];
  let bytes = 0;
  let onChange: () => void = () => undefined;
  let onClosed: (code: string) => void = () => undefined;
  const closed = new Promise<string>((resolve) => {
    onClosed = resolve;
  });
  const connection = await local.connect(
    { address: '127.0.0.1', port },
    { streamId, passphrase: null, keyLength: null, latency: { receive: 20, peer: 20 }, timeout: 10_000_000 },
    {
      onData: (payload) => {
        payloads.push(payload);
        bytes += payload.length;
        onChange();
      },
      onClosed: ({ code }) => onClosed(code),
    },
  );
  return {
    payloads,
    closed,
    leave: () => connection.close('enough', local.now()),
    received: (wanted) =>
      new Promise((resolve) => {
        onChange = () => {
          if (bytes >= wanted) resolve();
        };
        onChange();
      }),
  };
}

/** Frames at 30 Hz with a keyframe every half second, each one NAL unit. */
function pictures(from: number): Packet[] {
  return videoPackets(VIDEO, constantFrames({ rate: 30, gop: 15, seconds: 1, from })).map((packet) => {
    const data = packet.data.slice();
    new DataView(data.buffer).setUint32(0, data.length - 4);
    data[4] = packet.keyframe ? 0x65 : 0x41;
    return { ...packet, data };
  });
}

/** Hands over a second of frames from `from` on, in turns of one frame. */
function feed(served: SrtStream, from: number): void {
  for (const packet of pictures(from)) {
    served.onPacket(packet);
    served.onDrained();
  }
}

describe('viewers', () => {
  test('all get the same bytes, muxed once: tables, then a keyframe, in payloads of whole packets', async () => {
    const { served, stream, port } = await serve();
    const players = await Promise.all([play(port, 'default/app/stream'), play(port, 'srt://media.example:1/app/stream/playlist')]);
    expect([served.viewers, stream.viewers]).toEqual([2, 2]);
    feed(served, 0);
    const sent = stream.bytes / 2;
    await Promise.all(players.map((player) => player.received(sent)));
    const [first, second] = players.map(({ payloads }) => Buffer.concat(payloads));
    expect(first?.equals(second ?? Buffer.alloc(0))).toBe(true);
    expect(first?.length).toBe(sent);
    for (const { payloads } of players) expect(payloads.every(({ length }) => length % 188 === 0 && length <= 1316)).toBe(true);
    const { streams } = demuxTs(new Uint8Array(first ?? []));
    expect(streams.map(({ pes }) => pes.length)).toEqual([30, 0, 0]);
    expect([(first?.[1] ?? 0) & 0x1f, first?.[2]]).toEqual([0, 0]);
  });

  test('that join in mid-stream start at the next keyframe', async () => {
    const { served, stream, port } = await serve();
    const early = await play(port, 'default/app/stream');
    const frames = pictures(0);
    for (const packet of frames.slice(0, 7)) served.onPacket(packet);
    served.onDrained();
    const late = await play(port, 'default/app/stream');
    for (const packet of frames.slice(7)) served.onPacket(packet);
    served.onDrained();
    feed(served, 1);
    const bytes = stream.bytes;
    await early.received(1);
    await late.received(1);
    served.close({ code: 'deleted', detail: 'by the test' });
    await Promise.all([early.closed, late.closed]);
    const counts = [early, late].map(({ payloads }) => demuxTs(new Uint8Array(Buffer.concat(payloads))).streams[0]?.pes.length);
    expect(counts).toEqual([60, 45]);
    expect(bytes).toBe([early, late].flatMap(({ payloads }) => payloads).reduce((sum, { length }) => sum + length, 0));
  });

  test('that leave are counted out, and without viewers nothing is muxed', async () => {
    const { served, stream, port, logger } = await serve();
    expect(served.urgency).toBe(Urgency.NONE);
    const player = await play(port, 'default/app/stream');
    expect(served.urgency).toBe(Urgency.REAL_TIME);
    player.leave();
    await logger.line('SRT viewer left');
    expect([served.viewers, stream.viewers, served.urgency]).toEqual([0, 0, Urgency.NONE]);
    feed(served, 0);
    expect(stream.bytes).toBe(0);
  });

  test.each(['default/app/absent', 'default/nowhere/stream', 'elsewhere/app/stream', 'default/app/stream/no-such-playlist'])(
    '%s is not there',
    async (streamId) => {
      const { port, publisher, logger } = await serve();
      await expect(play(port, streamId)).rejects.toMatchObject({ code: RejectionCode.NOT_FOUND });
      expect(publisher.refused).toBe(1);
      expect(logger.lines.filter(({ message }) => /^viewer refused: /.test(message))).toMatchObject([{ level: 'info' }]);
    },
  );

  test.each(['publish', 'bidirectional'])('with the mode %s are refused', async (mode) => {
    const { port, publisher } = await serve();
    await expect(play(port, `#!::u=default/app/stream,m=${mode}`)).rejects.toMatchObject({ code: RejectionCode.BAD_MODE });
    expect(publisher.refused).toBe(1);
    await play(port, '#!::h=media.example,r=app/stream,m=request');
  });

  test('have figures while they watch', async () => {
    const { served, publisher, port, logger } = await serve();
    expect(publisher.statistics()).toEqual([]);
    const player = await play(port, 'media.example/app/stream');
    feed(served, 0);
    await player.received(10_000);
    const [figures] = publisher.statistics();
    expect(figures).toMatchObject({ vhost: 'default', app: 'app', stream: 'stream', session: '1' });
    expect(figures?.peer).toMatch(/^127\.0\.0\.1:\d+$/);
    expect(figures?.sender.bytesSent).toBeGreaterThanOrEqual(10_000);
    served.close({ code: 'deleted', detail: 'by the test' });
    expect(publisher.statistics()).toEqual([]);
    const { fields } = await logger.line('SRT viewer left');
    expect(fields).toMatchObject({ stream: 'stream', code: 'closed', rttMs: expect.any(Number), dropped: 0, packetsDroppedLate: 0 });
    expect(fields['bytesSent']).toBeGreaterThanOrEqual(10_000);
    for (const name of ['packetsReportedLost', 'packetsRetransmitted']) expect(fields[name]).toEqual(expect.any(Number));
  });

  test('the passphrase of a stream is required at all of its addresses', async () => {
    const { port } = await serve(TRACKS, { streamPassphrases: [{ streamPath: 'default/app/stream', passphrase: 'of-the-stream' }] });
    for (const host of ['default', 'media.example']) {
      await expect(play(port, `${host}/app/stream`)).rejects.toMatchObject({ code: RejectionCode.UNSECURE });
    }
  });

  test('are sessions with an id and a byte count, and can be disconnected', async () => {
    const { served, stream, port } = await serve();
    const [first, second] = [await play(port, 'default/app/stream'), await play(port, 'default/app/stream')];
    feed(served, 0);
    const [one, two] = stream.sessions;
    expect([one?.request.kind, two?.request.kind, one?.request.id === two?.request.id]).toEqual(['srt', 'srt', false]);
    expect([one?.bytes, two?.bytes]).toEqual([stream.bytes / 2, stream.bytes / 2]);
    one?.request.onTerminate('the test wants it');
    expect(await first?.closed).toBe('peer-left');
    expect([stream.viewers, stream.sessions[0], stream.ends]).toEqual([1, two, ['the test wants it']]);
    const before = stream.bytes;
    feed(served, 1);
    expect(two?.bytes).toBe(before / 2 + stream.bytes - before);
    await second?.received(two?.bytes ?? 0);
  });

  test('beyond the limit of the application are refused in the handshake, or disconnected when the limit was reached meanwhile', async () => {
    const { served, stream, port, logger } = await serve();
    stream.maxViewers = 1;
    const first = await play(port, 'default/app/stream');
    await expect(play(port, 'default/app/stream')).rejects.toMatchObject({ code: RejectionCode.RESOURCE });
    expect(logger.lines.filter(({ fields }) => fields['code'] === 'full')).toHaveLength(1);
    expect(stream.sessions).toHaveLength(1);
    first.leave();
    await until('the end of the first publication', () => stream.sessions.length === 0);
    // There is room at the call and none after the handshake.
    const room = [true, false];
    stream.hasRoom = () => room.shift() ?? false;
    const late = await play(port, 'default/app/stream');
    expect(await late.closed).toBe('peer-left');
    expect([stream.sessions.length, served.viewers, served.urgency]).toEqual([0, 0, Urgency.NONE]);
  });

  test('are disconnected when their stream ends', async () => {
    const { served, port, stream } = await serve();
    const player = await play(port, 'default/app/stream');
    served.close({ code: 'deleted', detail: 'by the test' });
    served.close({ code: 'deleted', detail: 'by the test' });
    expect(await player.closed).toBe('peer-left');
    expect(stream.viewers).toBe(0);
    await expect(play(port, 'default/app/stream')).rejects.toMatchObject({ code: RejectionCode.NOT_FOUND });
  });
});

test('a slow viewer loses whole groups of frames, which are counted', () => {
  const viewers: SrtViewer[] = [];
  const link = new SimulatedLink({
    faults: { loss: 0, delay: 20_000, jitter: 0 },
    seed: 1,
    // Less than a payload every ten milliseconds, so that the buffer of 32 packets fills up.
    listener: { connectionLimits: { sendBuffer: 32, bandwidth: { maximum: 100_000, input: 0, overhead: 25 } } },
    policy: {
      open: (call) => {
        const viewer = new SrtViewer({
          labels: { session: '1', peer: '', vhost: 'default', app: 'app', stream: 'stream' },
          call,
          logger: new RecordingLogger(),
          now: () => link.now,
          onJoined: (joined) => viewers.push(joined),
          onLeft: () => undefined,
        });
        return viewer;
      },
    },
  });
  link.call();
  link.run(500_000);
  const [viewer] = viewers;
  expect(viewer?.send(numbered(0))).toBe(0);
  viewer?.enter();
  let accepted = 0;
  for (let index = 0; index < 100; index += 1) accepted += (viewer?.send(numbered(index)) ?? 0) > 0 ? 1 : 0;
  expect(accepted).toBeGreaterThanOrEqual(32);
  expect(viewer?.dropped).toBe(100 - accepted);
  link.run(2_000_000);
  expect(viewer?.send(numbered(100))).toBe(0);
  viewer?.enter();
  expect(viewer?.send(numbered(101))).toBe(1316);
});

test('a stream without supported tracks has no playlist', () => {
  const publisher = new SrtPublisher({ logger: new RecordingLogger(), clock: systemClock });
  expect(publisher.defaultPlaylist([videoTrack({ codec: 'AV1' })])).toBeNull();
  expect(publisher.defaultPlaylist(TRACKS)).toMatchObject({ name: 'srt_default', fileName: 'playlist' });
});
