/** `faults.test.ts` for WebRTC: signalling, media ports, publications and viewers. */
import { createSocket } from 'node:dgram';
import { EventEmitter, once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { afterEach, describe, expect, test, vi } from 'vitest';
import type { WebSocket } from 'ws';
import { WebrtcProvider } from '../../src/services/webrtc/ingest/webrtc-provider.ts';
import { WebrtcPublisher } from '../../src/services/webrtc/play/webrtc-publisher.ts';
import { DescriptionExchange, type ExchangeOptions } from '../../src/services/webrtc/signalling/description-exchange.ts';
import { SignallingSocket } from '../../src/services/webrtc/signalling/signalling-socket.ts';
import { PeerTransport } from '../../src/services/webrtc/transport/peer-transport.ts';
import { systemClock } from '../../src/util/clock.ts';
import { FakeIngestGate } from '../fakes/fake-ingest-gate.ts';
import { FakeStream } from '../fakes/fake-stream.ts';
import { RecordingLogger } from '../fakes/recording-logger.ts';
import { until } from '../harness/poll.ts';

const FAULT = new TypeError('made up');
const WAIT = { deadlineMs: 30_000, everyMs: 5 };
const fail = (): never => {
  throw FAULT;
};

const closings: (() => unknown)[] = [];
afterEach(async () => {
  vi.restoreAllMocks();
  vi.useRealTimers();
  for (const close of closings.splice(0).reverse()) await close();
});

/** Messages of log lines about faults. */
function told(logger: RecordingLogger): string[] {
  return logger.lines
    .filter(({ level, fields }) => level === 'error' && ('err' in fields || 'error' in fields))
    .map(({ message }) => message);
}

describe('signalling', () => {
  function exchange(options: Partial<ExchangeOptions>): { readonly logger: RecordingLogger; readonly exchange: DescriptionExchange } {
    const logger = new RecordingLogger();
    const given = {
      name: 'WHEP',
      peer: 'viewer',
      open: fail,
      crossOrigin: () => [],
      iceServersFor: () => null,
      logger,
      ...options,
    } as const;
    return { logger, exchange: new DescriptionExchange(given) };
  }

  /** Status of the answer to a request. */
  async function status(asked: DescriptionExchange, method: string): Promise<number> {
    const request = Object.assign(new EventEmitter(), { method, headers: {}, url: '/app/s?direction=whep' });
    const answered = Promise.withResolvers<number>();
    const response = Object.assign(new EventEmitter(), {
      ...{ statusCode: 200, headersSent: false, writableEnded: false, destroyed: false, setHeader: () => undefined },
      end(): void {
        answered.resolve(this.statusCode);
      },
    });
    const target = { vhost: 'v', app: 'app', stream: 's', playlist: '' };
    const place = {
      target,
      app: 'app',
      stream: 's',
      file: '',
      direction: 'whep',
      transport: '',
      url: '',
      asker: { address: '', port: 0, realIp: '' },
    };
    asked.handle(request as unknown as IncomingMessage, response as unknown as ServerResponse, place, '192.0.2.1');
    request.emit('end');
    return answered.promise;
  }

  test.each([
    ['headers for other origins', 'OPTIONS', { crossOrigin: fail }],
    ['the session', 'POST', {}],
    ['the preparation of the session', 'POST', { prepare: () => Promise.reject(FAULT) }],
  ] as const)('that fails on %s answers 500', async (_what, method, options) => {
    const { logger, exchange: asked } = exchange(options);
    expect(await status(asked, method)).toBe(500);
    expect(told(logger)).toEqual(['a WHEP request failed']);
  });

  test('closes its WebSocket when its session cannot be ended', async () => {
    const logger = new RecordingLogger();
    const socket = Object.assign(new EventEmitter(), {
      OPEN: 1,
      readyState: 1,
      bufferedAmount: 0,
      closed: 0,
      send: () => undefined,
      close: () => undefined,
    });
    const dialogue = { engaged: true, offer: fail, answer: fail, candidates: fail, other: fail, stop: fail };
    const signalling = new SignallingSocket({ socket: socket as unknown as WebSocket, client: '192.0.2.1', logger, dialogue });
    socket.emit('message', Buffer.from('{"command":"request_offer"}'), false);
    signalling.after(Promise.reject(FAULT), () => undefined);
    await until('lines about both faults', () => told(logger).length === 4, WAIT);
    socket.emit('close');
    expect(told(logger)).toEqual([
      ...['signalling failed', 'a signalling session could not be ended'],
      ...['signalling failed', 'a signalling session could not be ended', 'a signalling session could not be ended'],
    ]);
  });
});

describe('a media port', () => {
  async function transport(): Promise<{ readonly logger: RecordingLogger; readonly peers: PeerTransport; readonly ends: string[] }> {
    const logger = new RecordingLogger();
    const ports = [{ host: '127.0.0.1', port: 0, addresses: ['127.0.0.1'] }];
    // A free UDP port may be occupied for TCP.
    for (let attempt = 0; ; attempt += 1) {
      const peers = await PeerTransport.open({ ports, tcp: true, threads: 1, clock: systemClock, logger });
      closings.push(() => peers.close());
      if (peers.candidates().length === 2 || attempt === 10) return { logger, peers, ends: [] };
    }
  }

  test('ends only the session whose clock throws', async () => {
    const { logger, peers, ends } = await transport();
    const listener = (name: string) => ({
      connected: () => undefined,
      rtcp: () => undefined,
      closed: (why: string) => ends.push(`${name}: ${why}`),
    });
    const options = { use: 'play', client: '127.0.0.1', timeout: 30_000 } as const;
    const broken = peers.openSession(listener('broken'), options);
    peers.openSession(listener('sound'), options);
    broken.tick = fail;
    await until('the end of the session', () => ends.length > 0, WAIT);
    expect([ends, peers.sessions]).toEqual([['broken: internal error'], 1]);
    expect(told(logger)).toEqual(['a WebRTC session failed inside the server']);
  });

  test('survives a fault on a datagram, and closes a TCP connection that causes a fault', async () => {
    const { logger, peers } = await transport();
    const [udp = '', tcp = ''] = peers.candidates().map((candidate) => candidate.split(' ')[5] ?? '');
    vi.spyOn(peers.strangers, 'note').mockImplementation(fail);
    const socket = createSocket('udp4');
    closings.push(() => socket.close());
    // The beginning of a handshake without a prior connectivity check.
    const hello = Buffer.from([22, 254, 253, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    for (let n = 0; n < 2; n += 1) {
      socket.send(hello, Number(udp), '127.0.0.1');
      await until('the line about the fault', () => told(logger).length > n, WAIT);
    }
    expect(told(logger)).toEqual(['a handshake failed inside the server', 'a handshake failed inside the server']);
    vi.spyOn(peers, 'arrived').mockImplementation(fail);
    const stream = connect(Number(tcp), '127.0.0.1');
    stream.on('error', () => undefined).write(Buffer.concat([Buffer.from([0, hello.length]), hello]));
    await once(stream, 'close');
    expect(told(logger).at(-1)).toBe('a TCP connection for media failed inside the server');
  });
});

describe('WebRTC', () => {
  async function transport(logger: RecordingLogger): Promise<PeerTransport> {
    const ports = [{ host: '127.0.0.1', port: 0, addresses: ['127.0.0.1'] }];
    const opened = await PeerTransport.open({ ports, tcp: false, threads: 1, clock: systemClock, logger });
    closings.push(() => opened.close());
    return opened;
  }

  test('ends the publication that causes a fault, and serves the others', async () => {
    const logger = new RecordingLogger();
    const options = { transport: await transport(logger), clock: systemClock, logger, gate: new FakeIngestGate(), settingsOf: () => null };
    const provider = new WebrtcProvider(options);
    closings.push(() => provider.stop());
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    const target = { vhost: 'v', app: 'app', stream: 's', playlist: '' };
    const [broken, sound] = [1, 2].map(() => provider.openSession(target, { client: '192.0.2.1', onEnded: () => undefined }));
    let looks = 0;
    broken!.tick = fail;
    sound!.tick = () => {
      looks += 1;
    };
    for (const session of [broken, sound]) session!.connected();
    for (let n = 0; n < 3; n += 1) vi.advanceTimersToNextTimer();
    expect([looks, provider.sessions]).toEqual([3, 1]);
    expect(told(logger)).toEqual(['a WebRTC publication failed inside the server']);
  });

  test('counts the bytes of a stream even when counting another stream fails', async () => {
    const logger = new RecordingLogger();
    const peers = await transport(logger);
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    const publisher = new WebrtcPublisher({ transport: peers, clock: systemClock, logger });
    closings.push(() => publisher.stop());
    const settings = { rtx: true, bandwidthEstimation: 'REMB', ulpfec: false, jitterBuffer: false, createDefaultPlaylist: true } as const;
    const [broken, sound] = ['a', 'b'].map((name) =>
      publisher.attach(Object.assign(new FakeStream(), { name }), { ...settings, timeout: 30_000 }),
    );
    let counts = 0;
    broken!.countBytes = fail;
    sound!.countBytes = () => {
      counts += 1;
    };
    for (let n = 0; n < 2; n += 1) vi.advanceTimersToNextTimer();
    expect([counts, new Set(told(logger))]).toEqual([2, new Set(['the bytes of a stream could not be counted'])]);
  });
});
