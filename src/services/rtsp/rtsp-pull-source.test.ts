import { setTimeout as delay } from 'node:timers/promises';
import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { BlackHole } from '../../../test/fakes/black-hole.ts';
import { FakeRtspServer, type RtspScript } from '../../../test/fakes/fake-rtsp-server.ts';
import { ManualClock } from '../../../test/fakes/manual-clock.ts';
import { RecordingSink } from '../../../test/fakes/pull-sink.ts';
import { RecordingLogger } from '../../../test/fakes/recording-logger.ts';
import type { PullSession } from '../../core/pull.ts';
import { RtspPullSource } from './rtsp-pull-source.ts';

const servers: FakeRtspServer[] = [];
const sessions: PullSession[] = [];
afterEach(async () => {
  for (const session of sessions.splice(0)) session.close();
  for (const server of servers.splice(0)) await server.stop();
});

async function serve(script: RtspScript = {}): Promise<FakeRtspServer> {
  const server = new FakeRtspServer(script);
  servers.push(server);
  await server.start();
  return server;
}

async function open(url: string, options: { clock?: ManualClock; limitMs?: number; ignore?: boolean } = {}): Promise<RecordingSink> {
  const sink = new RecordingSink();
  const signal = AbortSignal.timeout(options.limitMs ?? 10_000);
  const target = { url, settings: {}, ignoreSenderReports: options.ignore ?? true, sink, signal, logger: new RecordingLogger() };
  sessions.push(await new RtspPullSource(options.clock ?? new ManualClock()).open(target));
  return sink;
}

describe('RtspPullSource', () => {
  it('plays over the connection: announces the track and passes on frames', async () => {
    const server = await serve();
    const sink = await open(server.url('/cam'));
    expect(server.methods).toEqual(['DESCRIBE', 'SETUP', 'PLAY']);
    server.sendFrame(0);
    server.sendFrame(3600);
    await sink.until(({ packets }) => packets.length === 2);
    expect(sink.tracks).toMatchObject([[{ id: 0, type: 'video', codec: 'H264' }]]);
    expect(sink.packets.map(({ pts }) => pts)).toEqual([0, 3600]);
    expect(sink.bytes).toBeGreaterThan(0);
    sessions.splice(0)[0]!.close();
    await server.until(({ methods }) => methods.at(-1) === 'TEARDOWN');
  });

  it.each([
    ['DESCRIBE', 404, 'Not Found'],
    ['DESCRIBE', 401, 'Unauthorized'],
    ['SETUP', 459, 'Aggregate Operation Not Allowed'],
    ['PLAY', 454, 'Session Not Found'],
  ])('fails with the answer to %s: %i', async (method, status, reason) => {
    const server = await serve({ statuses: { [method]: `${status} ${reason}` } });
    await expect(open(server.url('/cam'))).rejects.toThrow(`${method} was answered with ${status} ${reason}`);
  });

  it('follows five redirects, and fails beyond that', async () => {
    const target = await serve();
    const first = await serve({ statuses: { DESCRIBE: '302 Moved' }, location: target.url('/cam') });
    await open(first.url('/old'));
    expect(target.methods).toContain('PLAY');
    const loop = await serve({ statuses: { DESCRIBE: '302 Moved' }, location: '/again' });
    await expect(open(loop.url('/x'))).rejects.toThrow(/more than 5 times/);
  });

  it('does not send the password to another host', async () => {
    const target = await serve();
    const first = await serve({ statuses: { DESCRIBE: '301 Moved' }, location: target.url('/cam').replace('127.0.0.1', 'localhost') });
    await open(first.url('/old').replace('://', '://user:secret@'));
    expect(target.log).not.toMatch(/authorization/i);
  });

  it('uses UDP when the server refuses media over the connection', async () => {
    const server = await serve({ datagramsOnly: true });
    const sink = await open(server.url('/cam'));
    server.sendFrame(0);
    await sink.until(({ packets }) => packets.length === 1);
    expect(server.methods).toEqual(['DESCRIBE', 'SETUP', 'SETUP', 'PLAY']);
  });

  it.each([
    ['over the connection', false],
    ['by datagrams', true],
  ])('an internal fault on media received %s ends the session, not the server', async (_how, datagramsOnly) => {
    const server = await serve({ datagramsOnly });
    const sink = await open(server.url('/cam'));
    sink.push = () => {
      throw new TypeError('made up');
    };
    server.sendFrame(0);
    server.sendFrame(3600);
    await sink.until(({ reason }) => reason !== null);
    expect(sink.reason).toEqual({ code: 'peer-error', detail: 'internal error' });
  });

  it('refuses an invalid port, and works without the RTCP port after port 65535', async () => {
    const beyond = await serve({ datagramsOnly: true, serverPort: '6000-70000' });
    await expect(open(beyond.url('/cam'))).rejects.toThrow(/port beyond 65535/);
    const clock = new ManualClock();
    const last = await serve({ datagramsOnly: true, serverPort: '65535' });
    const sink = await open(last.url('/cam'), { clock });
    last.sendFrame(0);
    await sink.until(({ bytes }) => bytes > 0);
    const sent = last.methods.length;
    // Reports are sent with the keep-alive, in one turn.
    clock.advance(60_000);
    await last.until(({ methods }) => methods.length > sent);
  });

  it.each([
    ['TEARDOWN', 'TEARDOWN rtsp://h/cam RTSP/1.0\r\nCSeq: 9\r\n\r\n'],
    ['a goodbye', '$\x01\0\x08\x81\xcb\0\x01\0\0\0\x01'],
    ['garbage', 'HTTP/1.1 400 Bad Request\r\n\r\n'],
  ])('fails to open when %s arrives together with the answer to PLAY', async (_what, afterPlay) => {
    const server = await serve({ afterPlay });
    await expect(open(server.url('/cam'))).rejects.toThrow(/ended the session as soon as it played/);
  });

  it('ends when the server resets the connection, or sends TEARDOWN, REDIRECT or a BYE', async () => {
    const reset = await serve();
    const first = await open(reset.url('/cam'));
    reset.reset();
    await first.until(({ reason }) => reason !== null);
    expect(first.reason).toMatchObject({ code: 'peer-left' });

    for (const method of ['TEARDOWN', 'REDIRECT']) {
      const polite = await serve();
      const second = await open(polite.url('/cam'));
      polite.write(`${method} rtsp://h/cam RTSP/1.0\r\nCSeq: 9\r\nLocation: rtsp://h/other\r\n\r\n`);
      await second.until(({ reason }) => reason !== null);
      expect(second.reason).toEqual({ code: 'peer-left', detail: `the server sent ${method}` });
    }

    const bye = await serve();
    const third = await open(bye.url('/cam'));
    bye.sendGoodbye();
    await third.until(({ reason }) => reason !== null);
    expect(third.reason?.detail).toContain('goodbye');
  });

  it('reads nothing while it is paused, without loss', async () => {
    const server = await serve();
    const sink = await open(server.url('/cam'));
    const [session] = sessions;
    session!.pause!();
    server.sendFrame(0);
    // A whole other session opens meanwhile.
    const other = await serve();
    await open(other.url('/cam'));
    expect(sink.bytes).toBe(0);
    session!.resume!();
    await sink.until(({ packets }) => packets.length === 1);
  });

  it('keeps the session alive within its timeout by a method that the server supports', async () => {
    const clock = new ManualClock();
    const server = await serve({ statuses: { GET_PARAMETER: '501 Not Implemented' }, timeoutS: 20 });
    const sink = await open(server.url('/cam'), { clock });
    clock.advance(10_000);
    await server.until(({ methods }) => methods.at(-1) === 'GET_PARAMETER');
    // The answer must have come before the next request is due; this comes after it.
    server.sendFrame(0);
    await sink.until(({ packets }) => packets.length === 1);
    clock.advance(10_000);
    await server.until(({ methods }) => methods.at(-1) === 'OPTIONS');
  });

  it('ends when the server has forgotten the session', async () => {
    const clock = new ManualClock();
    const server = await serve({ statuses: { GET_PARAMETER: '454 Session Not Found' } });
    const sink = await open(server.url('/cam'), { clock });
    clock.advance(30_000);
    await sink.until(({ reason }) => reason !== null);
    expect(sink.reason).toMatchObject({ code: 'peer-error', detail: 'the server has forgotten the session' });
  });

  it('gives up within its limit when the server does not answer', async () => {
    const server = await serve({ silent: true });
    await expect(open(server.url('/cam'), { limitMs: 1500 })).rejects.toThrow(/not answered in time/);
  });

  it('refuses a server of another protocol, and a server without a usable track', async () => {
    const http = await serve({ garbage: 'HTTP/1.1 400 Bad Request\r\n\r\n' });
    await expect(open(http.url('/cam'))).rejects.toThrow(/no RTSP message/);
    const mute = await serve({ description: 'v=0\r\nm=video 0 RTP/AVP 26\r\n' });
    await expect(open(mute.url('/cam'))).rejects.toThrow(/no track of a supported codec: video jpeg/);
    const timeless = await serve({ description: 'v=0\r\nm=audio 0 RTP/AVP 98\r\na=rtpmap:98 PCMU/1e-320\r\n' });
    await expect(open(timeless.url('/cam'))).rejects.toThrow(/no track of a supported codec: audio pcmu/);
  });

  it('waits for sender reports of all tracks, then places audio and video on one timeline', async () => {
    const server = await serve({ withAudio: true });
    const sink = await open(server.url('/cam'), { ignore: false });
    server.sendFrame(90_000);
    server.sendReport('video', { seconds: 1001, rtp: 90_000 });
    server.sendAudio(5000);
    await sink.until(({ signs }) => signs >= 2);
    expect(sink.packets).toEqual([]);
    server.sendReport('audio', { seconds: 1002, rtp: 53_000 });
    await sink.until(({ packets }) => packets.length === 2);
    // The audio was sampled at 1002 - 48000/48000 = 1001 s, as the frame.
    for (const { pts } of sink.packets) expect(Math.abs(pts)).toBeLessThan(1);
  });

  it('treats unreadable payloads as silence', async () => {
    const server = await serve();
    const sink = await open(server.url('/cam'));
    server.sendUnreadable(0);
    await sink.until(({ bytes }) => bytes > 0);
    expect(sink.signs).toBe(0);
    server.sendFrame(3600);
    await sink.until(({ packets }) => packets.length === 1);
    expect(sink.signs).toBeGreaterThan(0);
  });

  it('ends the session of a server that asks without reading the answers', async () => {
    const server = await serve();
    const sink = await open(server.url('/cam'));
    server.stopReading();
    server.write(`OPTIONS * RTSP/1.0\r\nCSeq: ${'9'.repeat(2000)}\r\n\r\n`.repeat(8000));
    await sink.until(({ reason }) => reason !== null);
    expect(sink.reason?.detail).toContain('does not read');
  });

  it.each([
    ['goes by the start that the server announced', { video: 90_000, audio: 48_000 }, 0],
    ['does not trust a start far from what is sent', { video: 90_000, audio: 4_000_000_000 }, null],
  ] as const)('%s when reports are not waited for', async (_name, starts, distance) => {
    const clock = new ManualClock();
    const server = await serve({ withAudio: true, starts });
    const sink = await open(server.url('/cam'), { clock });
    server.sendFrame(93_600);
    await sink.until(({ bytes }) => bytes > 0);
    clock.advance(60);
    // By its timestamp the audio belongs to the frame; by its arrival it is later.
    server.sendAudio(48_000 + 1920);
    await sink.until(({ packets }) => packets.length === 2);
    const [video, audio] = sink.packets;
    if (distance === null) expect(sink.packets.every(({ pts }) => Math.abs(pts) < 10 * 90_000)).toBe(true);
    else expect(Math.round(audio!.pts - video!.pts)).toBe(distance);
  });

  it('continues without sender reports after five seconds', async () => {
    const clock = new ManualClock();
    const server = await serve({ withAudio: true });
    const sink = await open(server.url('/cam'), { ignore: false, clock });
    server.sendFrame(90_000);
    await sink.until(({ bytes }) => bytes > 0);
    clock.advance(5001);
    await sink.until(({ packets }) => packets.length === 1);
  });

  it('uses UDP when the server answers with UDP to a request for interleaved media', async () => {
    const server = await serve({ setUpHeaders: [['Session: 42', 'Transport: RTP/AVP;unicast;destination=127.0.0.1']] });
    const sink = await open(server.url('/cam'));
    expect(server.methods).toEqual(['DESCRIBE', 'SETUP', 'SETUP', 'PLAY']);
    expect(server.log).toMatch(/Transport: RTP\/AVP;unicast;client_port=\d+-\d+\r\nSession: 42/);
    server.sendFrame(0);
    await sink.until(({ packets }) => packets.length === 1);
  });

  it('uses the channels that the server chooses', async () => {
    const server = await serve({ setUpHeaders: [['Session: 42', 'Transport: RTP/AVP/TCP;unicast;interleaved=0']] });
    const sink = await open(server.url('/cam'));
    server.sendFrame(0);
    await sink.until(({ packets }) => packets.length === 1);
    server.sendGoodbye();
    await sink.until(({ reason }) => reason !== null);
  });

  it.each([
    ['interleaved=256-257', 'beyond 255'],
    ['interleaved=255', 'beyond 255'],
    ['interleaved=10000000000-1', 'beyond 255'],
    ['interleaved=4-4', 'channel twice'],
  ])('refuses a server that answers with %s', async (channels, message) => {
    const server = await serve({ setUpHeaders: [['Session: 42', `Transport: RTP/AVP/TCP;unicast;${channels}`]] });
    await expect(open(server.url('/cam'))).rejects.toThrow(message);
  });

  it('refuses a server that assigns one channel to two tracks', async () => {
    const headers = ['Session: 42', 'Transport: RTP/AVP/TCP;unicast;interleaved=0-1'];
    const server = await serve({ withAudio: true, setUpHeaders: [headers, headers] });
    await expect(open(server.url('/cam'))).rejects.toThrow('channel twice');
  });

  it('gives up on a host that never answers', async () => {
    const hole = await BlackHole.start();
    const begun = performance.now();
    await expect(open(`rtsp://127.0.0.1:${hole.port}/cam`, { limitMs: 300 })).rejects.toThrow('the connection was given up');
    expect(performance.now() - begun).toBeGreaterThanOrEqual(299);
    await hole.stop();
  });
});

describe('a hostile server', () => {
  /** Header contents: the right words in the wrong places, and random text. */
  const words = [
    'interleaved=',
    'server_port=',
    'RTP/AVP/TCP',
    'RTP/AVP',
    'url=',
    'rtptime=',
    'timeout=',
    '0-1',
    '2-3',
    '65536',
    '99999999999',
  ];
  const noise = fc.oneof(fc.constantFrom(...words, ';', ',', '=', '-', ' ', '"', '\r'), fc.string({ maxLength: 8 }));
  const header = fc.array(noise, { maxLength: 12 }).map((parts) => parts.join('').replaceAll('\n', ''));
  const frame = fc
    .record({ channel: fc.nat(255), data: fc.uint8Array({ maxLength: 60 }), promised: fc.option(fc.nat(65_535), { nil: undefined }) })
    .map(({ channel, data, promised = data.length }) => Buffer.from([0x24, channel, promised >> 8, promised & 0xff, ...data]));
  const rtp = fc
    .record({
      channel: fc.nat(3),
      type: fc.constantFrom(96, 97, 224, 225),
      payload: fc.uint8Array({ maxLength: 40 }),
      rest: fc.uint8Array({ minLength: 10, maxLength: 10 }),
    })
    .map(({ channel, type, payload, rest }) => Buffer.from([0x24, channel, 0, 12 + payload.length, 0x80, type, ...rest, ...payload]));
  const message = fc
    .tuple(fc.constantFrom('OPTIONS * RTSP/1.0', 'RTSP/1.0 200 OK', 'RTSP/1.0 401 No', 'ANNOUNCE x RTSP/1.0'), header)
    .map(([line, value]) => Buffer.from(`${line}\r\nCSeq: ${value}\r\nSession: ${value}\r\n\r\n`, 'latin1'));
  const sent = fc.array(fc.oneof({ weight: 3, arbitrary: rtp }, frame, message, fc.uint8Array({ maxLength: 30 })), { maxLength: 12 });
  const line = fc.oneof(
    header,
    fc.constantFrom('a=control:\rX', 'a=rtpmap:96 H264/90000', 'a=fmtp:96 sprop-parameter-sets=,,=', 'm=audio 0 RTP/AVP 0', 'c=x'),
  );
  const script = fc.record({
    withAudio: fc.boolean(),
    description: fc.option(
      fc.array(line, { maxLength: 8 }).map((lines) => `v=0\r\nm=video 0 RTP/AVP 96\r\n${lines.join('\r\n')}`),
      { nil: undefined, freq: 3 },
    ),
    setUpHeaders: fc.array(
      fc.tuple(header, header).map(([session, transport]) => [`Session: ${session}`, `Transport: ${transport}`]),
      { maxLength: 3 },
    ),
    rtpInfo: header,
  });

  it('may end its own session only, and leaves no sockets open', async () => {
    const ports = (): number => process.getActiveResourcesInfo().filter((name) => name === 'UDPWrap').length;
    const known = ports();
    let played = 0;
    await fc.assert(
      fc.asyncProperty(script, sent, async ({ description, ...rest }, pieces) => {
        const server = await serve({ ...rest, ...(description !== undefined && { description }) });
        const opened = await open(server.url('/cam'), { limitMs: 400 }).catch((error: unknown) => error as Error);
        if (!(opened instanceof Error)) {
          played += 1;
          for (const piece of pieces) server.write(piece);
          // Sent data has been read when a later request is answered, unless the session has ended.
          server.write('\r\n\r\nOPTIONS * RTSP/1.0\r\nCSeq: 77777\r\n\r\n');
          const deadline = performance.now() + 100;
          while (opened.reason === null && !server.log.includes('CSeq: 77777') && performance.now() < deadline) await delay(2);
        }
        for (const session of sessions.splice(0)) session.close();
        await server.until(({ connections }) => connections === 0);
        servers.splice(servers.indexOf(server), 1);
        await server.stop();
      }),
      { numRuns: 120, interruptAfterTimeLimit: 15_000 },
    );
    await expect.poll(() => ports()).toBe(known);
    expect(played).toBeGreaterThan(30);
  }, 30_000);
});
