import { afterEach, describe, expect, test, vi } from 'vitest';
import { DENIED, FakeGatekeeper, FakeLease } from '../../../test/fakes/fake-gatekeeper.ts';
import { FakeIngestGate } from '../../../test/fakes/fake-ingest-gate.ts';
import { FakeStream } from '../../../test/fakes/fake-stream.ts';
import { RecordingLogger } from '../../../test/fakes/recording-logger.ts';
import { audioPackets, audioTrack, interleave, videoTrack } from '../../../test/fakes/synthetic-media.ts';
import { until } from '../../../test/harness/poll.ts';
import { TsBuffer } from '../../containers/mpegts/ts-buffer.ts';
import { TsMuxer } from '../../containers/mpegts/ts-muxer.ts';
import { readListenerOptions } from '../../transport/srt/socket-options.ts';
import { SrtUdpPort } from '../../transport/srt/udp-port.ts';
import { systemClock } from '../../util/clock.ts';
import type { SrtConnection } from '../../wire/srt/connection.ts';
import { RejectionCode } from '../../wire/srt/rejection.ts';
import { admitCaller, type LimitedSession } from './srt-admission.ts';
import { SrtProvider } from './srt-provider.ts';
import { SrtPublisher } from './srt-publisher.ts';

const DEADLINE = { deadlineMs: 20_000 };
const LISTENING = {
  host: '127.0.0.1',
  ports: [0],
  settings: readListenerOptions([]),
  streamMap: [],
  streamPassphrases: [],
  virtualHostFor: () => 'default',
};
const STREAM_ID = 'default/app/live?policy=p&signature=s';
const closings: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const close of closings.splice(0).reverse()) await close();
});

async function provide(access: FakeGatekeeper) {
  const gate = new FakeIngestGate();
  const logger = new RecordingLogger();
  const provider = new SrtProvider({ gate, access, logger, clock: systemClock, ...LISTENING });
  await provider.start();
  closings.push(() => provider.stop());
  return { gate, logger, provider, port: provider.ports[0] ?? 0 };
}

async function serve(access: FakeGatekeeper) {
  const logger = new RecordingLogger();
  const find = vi.fn(() => null);
  const isUnknown = vi.fn(() => false);
  const finder = { find, isUnknown, draining: false };
  const publisher = new SrtPublisher({ logger, clock: systemClock, access, finder });
  const stream = new FakeStream();
  const served = publisher.attach(stream);
  stream.tracks = [videoTrack()];
  stream.playlists = [publisher.defaultPlaylist(stream.tracks)].filter((playlist) => playlist !== null);
  served.onTracks(stream.tracks);
  await publisher.listen(LISTENING);
  closings.push(() => publisher.stop());
  const streamId = `${stream.vhost}/${stream.app}/${stream.name}?policy=p`;
  return { logger, find, finder, isUnknown, served, publisher, streamId, port: publisher.ports[0] ?? 0 };
}

async function call(port: number, streamId: string) {
  const local = await SrtUdpPort.open({ clock: systemClock, host: '127.0.0.1', port: 0, policy: null, onError: () => undefined });
  closings.push(() => local.close('the test has ended'));
  const { promise: closed, resolve } = Promise.withResolvers<string>();
  const connection = await local.connect(
    { address: '127.0.0.1', port },
    { streamId, passphrase: null, keyLength: null, latency: { receive: 20, peer: 20 }, timeout: 10_000_000 },
    { onData: () => undefined, onClosed: ({ code }) => resolve(code) },
  );
  return { closed, send: (payload: Uint8Array) => connection.send(payload, local.now()), leave: () => connection.close('', local.now()) };
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

describe('encoders', () => {
  test('are judged by their stream id as a URL, and admitted', async () => {
    const stay = new FakeLease();
    const access = new FakeGatekeeper(() => stay);
    const { gate, port } = await provide(access);
    const encoder = await call(port, STREAM_ID);
    const stream = await gate.stream();
    expect(access.asked).toMatchObject([
      {
        place: { host: 'default', vhost: 'default' },
        request: {
          direction: 'incoming',
          protocol: 'srt',
          url: `srt://${STREAM_ID}`,
          client: { address: '127.0.0.1', realIp: '127.0.0.1' },
        },
      },
    ]);
    encoder.leave();
    await stream.until(({ closed }) => closed);
    await until('the end of the stay', () => stay.closes === 1, DEADLINE);
  });

  test('pass the key of their stream id separately from the URL', async () => {
    const access = new FakeGatekeeper(() => new FakeLease());
    const { gate, port } = await provide(access);
    await call(port, '#!::h=default,r=app/live,m=publish,s=the-key-of-the-studio');
    await gate.stream();
    expect(access.asked).toMatchObject([
      {
        place: { host: 'default', vhost: 'default', app: 'app', stream: 'live' },
        request: { url: 'srt://default/app/live', client: { authorization: 'Bearer the-key-of-the-studio' } },
      },
    ]);
  });

  test('are refused in the handshake, without a stream', async () => {
    const { gate, provider, port } = await provide(new FakeGatekeeper(() => DENIED));
    await expect(call(port, STREAM_ID)).rejects.toMatchObject({ code: RejectionCode.UNAUTHORIZED });
    expect([gate.streams.length, provider.refused]).toEqual([0, 1]);
  });

  test('with a late verdict lose none of their data', async () => {
    const { access, answer } = FakeGatekeeper.waiting();
    const { gate, port } = await provide(access);
    const encoder = await call(port, STREAM_ID);
    const bytes = sound();
    for (let at = 0; at < bytes.length; at += 1316) encoder.send(bytes.subarray(at, at + 1316));
    // Another client is served meanwhile, so earlier data has arrived.
    await call(port, STREAM_ID);
    expect(gate.streams).toHaveLength(0);
    answer(new FakeLease());
    const stream = await gate.stream();
    await stream.until((told) => told.bytes === bytes.length);
    expect(stream.packets.length).toBeGreaterThan(40);
  });

  test('that are refused later, or leave before their verdict, have no stream', async () => {
    const first = FakeGatekeeper.waiting();
    const refusing = await provide(first.access);
    const encoder = await call(refusing.port, STREAM_ID);
    first.answer(DENIED);
    expect(await encoder.closed).toBe('peer-left');
    const second = FakeGatekeeper.waiting();
    const leaving = await provide(second.access);
    (await call(leaving.port, STREAM_ID)).leave();
    await leaving.provider.stop();
    const stay = new FakeLease();
    second.answer(stay);
    await until('the end of the stay', () => stay.closes === 1, DEADLINE);
    expect([refusing.gate.streams.length, leaving.gate.streams.length]).toEqual([0, 0]);
  });

  test('publish the stream that a control server redirects them to, at once or later', async () => {
    const to = (): FakeLease => FakeLease.to('srt://other.example:9999/elsewhere/renamed?x=1');
    const waiting = FakeGatekeeper.waiting();
    for (const access of [new FakeGatekeeper(to), waiting.access]) {
      const { gate, port } = await provide(access);
      await call(port, STREAM_ID);
      if (access === waiting.access) waiting.answer(to());
      const stream = await gate.stream();
      expect(stream).toMatchObject({ target: { host: 'other.example', app: 'elsewhere' }, request: { streamName: 'renamed' } });
    }
  });

  test('end with the reason when their lease expires; without an application the lease ends at once', async () => {
    const stay = new FakeLease();
    const { gate, logger, port } = await provide(new FakeGatekeeper(() => stay));
    const encoder = await call(port, STREAM_ID);
    const stream = await gate.stream();
    await until('the beginning of the stay', () => stay.expire !== null, DEADLINE);
    stay.expire?.('its time is over');
    expect(await encoder.closed).toBe('peer-left');
    expect(stream.closeReason).toEqual({ code: 'expired', detail: 'its time is over' });
    expect((await logger.line('SRT connection closed')).fields).toMatchObject({ code: 'expired', detail: 'its time is over' });
    gate.refusal = 'no-application';
    await expect(call(port, STREAM_ID)).rejects.toMatchObject({ code: RejectionCode.NOT_FOUND });
    expect(stay.closes).toBe(2);
  });
});

describe('data of a caller before its verdict', () => {
  function waiting(open: () => LimitedSession | RejectionCode) {
    const { access, answer } = FakeGatekeeper.waiting();
    const ends: string[] = [];
    const target = { host: 'default', app: 'app', stream: 'live', playlist: null, url: 'srt://default/app/live' };
    const call = { streamId: '', peer: { address: '::ffff:192.0.2.7', port: 9 }, encrypted: false };
    const session = admitCaller(access, {
      direction: 'incoming',
      call,
      target,
      now: () => 0,
      open,
      onFault: (error) => ends.push(String(error)),
    });
    if (typeof session === 'number') throw new Error('it was refused');
    session.onOpen({ close: (detail: string) => ends.push(detail) } as unknown as SrtConnection);
    return { access, answer, session, ends };
  }

  function recording(): LimitedSession & { readonly heard: string[] } {
    const heard: string[] = [];
    return {
      heard,
      onOpen: () => heard.push('open'),
      onData: (payload) => heard.push(`${payload[0]} of ${payload.length}`),
      onClosed: () => heard.push('closed'),
      expire: (reason) => heard.push(reason),
    };
  }

  const settled = (): Promise<void> => new Promise(setImmediate);

  test('reaches its session in order, after the opening', async () => {
    const inner = recording();
    const { access, answer, session } = waiting(() => inner);
    for (const first of [1, 2]) session.onData(Uint8Array.of(first));
    const stay = new FakeLease();
    answer(stay);
    await settled();
    session.onData(Uint8Array.of(3));
    expect(inner.heard).toEqual(['open', '1 of 1', '2 of 1', '3 of 1']);
    expect(access.asked[0]?.request.client.address).toBe('192.0.2.7');
    session.onClosed({ code: 'peer-left', detail: '' });
    expect([inner.heard.at(-1), stay.closes]).toEqual(['closed', 1]);
  });

  test('is bounded: on overflow only the newest data is kept', async () => {
    const inner = recording();
    const { answer, session } = waiting(() => inner);
    for (let n = 0; n < 5; n += 1) session.onData(new Uint8Array(200 * 1024).fill(n));
    answer(new FakeLease());
    await settled();
    expect(inner.heard).toEqual(['open', '4 of 204800']);
  });

  test('is dropped when the session cannot be opened: the connection and the lease end', async () => {
    const { answer, session, ends } = waiting(() => RejectionCode.CONFLICT);
    session.onData(Uint8Array.of(1));
    const stay = new FakeLease();
    answer(stay);
    await settled();
    expect([ends, stay.closes]).toEqual([['conflict (1409)'], 1]);
    const broken = waiting(() => {
      throw new Error('broken');
    });
    const lost = new FakeLease();
    broken.answer(lost);
    await settled();
    expect(lost.closes).toBe(1);
    expect(broken.ends).toEqual(['Error: broken', 'internal error']);
  });
});

describe('players', () => {
  test('are refused while the server is drained', async () => {
    const { finder, port, streamId } = await serve(new FakeGatekeeper(() => new FakeLease()));
    finder.draining = true;
    await expect(call(port, streamId)).rejects.toMatchObject({ code: RejectionCode.UNAVAILABLE });
    finder.draining = false;
    (await call(port, streamId)).leave();
  });

  test('are answered "unavailable" while another server may have the stream, "not found" otherwise', async () => {
    const { isUnknown, port, publisher } = await serve(new FakeGatekeeper(() => new FakeLease()));
    await expect(call(port, 'default/app/other')).rejects.toMatchObject({ code: RejectionCode.NOT_FOUND });
    isUnknown.mockReturnValue(true);
    await expect(call(port, 'default/app/other')).rejects.toMatchObject({ code: RejectionCode.UNAVAILABLE });
    expect(publisher.refused).toBe(2);
  });

  test('are refused in the handshake, and cause no pull', async () => {
    const access = new FakeGatekeeper(() => DENIED);
    const { publisher, find, port } = await serve(access);
    await expect(call(port, 'default/app/elsewhere?policy=p')).rejects.toMatchObject({ code: RejectionCode.UNAUTHORIZED });
    expect(access.asked).toMatchObject([
      { request: { direction: 'outgoing', protocol: 'srt', url: 'srt://default/app/elsewhere?policy=p' } },
    ]);
    expect([publisher.refused, find.mock.calls.length]).toEqual([1, 0]);
  });

  test('play the stream that a control server redirects them to', async () => {
    const { served, streamId, port } = await serve(new FakeGatekeeper(() => FakeLease.to(`srt://${streamId}`)));
    await call(port, 'default/app/elsewhere?policy=p');
    await until('the player', () => served.viewers === 1, DEADLINE);
  });

  test('play after their verdict, and are disconnected when their lease expires', async () => {
    const { access, answer } = FakeGatekeeper.waiting();
    const { logger, served, streamId, port } = await serve(access);
    const player = await call(port, streamId);
    expect(served.viewers).toBe(0);
    const stay = new FakeLease();
    answer(stay);
    await until('the player', () => served.viewers === 1, DEADLINE);
    stay.expire?.('its time is over');
    expect(await player.closed).toBe('peer-left');
    expect((await logger.line('SRT viewer left')).fields).toMatchObject({ detail: 'its time is over' });
    expect([served.viewers, stay.closes]).toEqual([0, 1]);
  });
});
