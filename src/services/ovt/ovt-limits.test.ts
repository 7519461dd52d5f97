/** The cost of edges for an OVT publisher. */
import net from 'node:net';
import tls from 'node:tls';
import { describe, expect, test } from 'vitest';
import { closing, listen, media, origin, pull, RawEdge, serve, setUpOrigin, until, url } from '../../../test/fakes/ovt-publishing.ts';
import { AddressShares } from '../../util/address-shares.ts';
import { ConnectionLimiter } from '../../util/connection-limiter.ts';
import { RefusalLog } from '../../util/refusal-log.ts';

setUpOrigin();

describe('limits', () => {
  test('an edge that does not read loses packets, then its connection; other edges lose nothing', async () => {
    await listen();
    const { stream, served } = serve();
    const { sink } = await pull();
    const lazy = new RawEdge();
    lazy.ask('play', url());
    await lazy.answer(1);
    lazy.socket.pause();
    const sent = media(2, 400_000);
    for (const [index, packet] of sent.entries()) {
      served.onPacket(packet);
      await sink.until(({ packets }) => packets.length === index + 1);
    }
    expect(stream.viewers).toBe(2);
    origin.clock.advance(11_000);
    served.onPacket(sent[0]!);
    expect(stream.viewers).toBe(1);
    const [line] = origin.logger.matching('OVT edge plays no longer');
    expect(line?.fields['dropped']).toBeGreaterThan(0);
    await until(() => origin.publisher.connections === 1);
  });

  test('an edge that reads nothing is disconnected, even from a stream with a low bitrate', async () => {
    await listen();
    const { served } = serve();
    const lazy = new RawEdge();
    lazy.ask('play', url());
    await lazy.answer(1);
    lazy.socket.pause();
    // More than the system holds for a connection, less than the server does.
    for (const packet of media(1, 100_000)) served.onPacket(packet);
    const talk = setInterval(() => {
      origin.clock.advance(3000);
      // Requests show that the edge is alive.
      lazy.ask('describe', url('none'));
    }, 300);
    closing.push(() => clearInterval(talk));
    await until(() => origin.publisher.connections === 0);
    expect(origin.logger.matching('OVT edge plays no longer')[0]?.fields).toMatchObject({
      dropped: 0,
      detail: 'the edge took nothing for 10000 ms',
    });
  });

  test('a connection without a request is closed', async () => {
    await listen();
    serve();
    const idle = new RawEdge();
    const playing = new RawEdge();
    playing.ask('play', url());
    await playing.answer(1);
    await until(() => origin.publisher.connections === 2);
    origin.clock.advance(10_001);
    await until(() => idle.socket.closed);
    expect(origin.publisher.connections).toBe(1);
  });

  test('whoever speaks HTTP or TLS is closed at once, and the log names the port and the protocol', async () => {
    const refusals = new RefusalLog(origin.logger);
    closing.push(() => refusals.close());
    await listen({ limiter: new ConnectionLimiter({ what: 'OVT edges', refusals }) });
    const [port = 0] = origin.publisher.ports;
    const answer = await fetch(`http://127.0.0.1:${port}/app/live`);
    expect(await answer.text()).toBe('This port speaks OVT: other servers pull streams from it, and there is no page.\n');
    const shaking = tls.connect({ port, host: '127.0.0.1', rejectUnauthorized: false });
    closing.push(() => shaking.destroy());
    await new Promise((resolve) => shaking.once('error', resolve));
    expect(origin.publisher.connections).toBe(0);
    expect(origin.logger.lines.filter(({ level }) => level === 'warn')).toMatchObject([
      {
        message: `OVT edges closed: HTTP was spoken to port ${port}, which speaks OVT: players, the API and the console have other ports`,
        fields: { peer: '127.0.0.1' },
      },
      {
        message: `OVT edges closed: TLS was spoken to port ${port}, which speaks plain OVT: use ovt://, or the port of TLSPort, which needs a certificate`,
      },
    ]);
  });

  test('more edges than allowed are refused and counted', async () => {
    await listen({ maxConnections: 1 });
    serve();
    await pull();
    await expect(pull()).rejects.toThrow();
    expect(origin.publisher.refused).toBe(1);
  });

  test('an edge beyond MaxConnection is refused with the reason, and admitted after another edge leaves', async () => {
    await listen();
    const { stream, served } = serve();
    stream.maxViewers = 1;
    const first = await pull();
    await expect(pull()).rejects.toThrow('MaxConnection');
    expect(served.sessions).toBe(1);
    first.close();
    await until(() => served.sessions === 0);
    await pull();
  });

  test('an address at its share of connections is refused, other addresses are admitted', async () => {
    const refusals = new RefusalLog(origin.logger);
    closing.push(() => refusals.close());
    await listen({ limiter: new ConnectionLimiter({ what: 'OVT edges', shares: new AddressShares({ perAddress: 1 }), refusals }) });
    serve();
    const edge = await pull();
    await expect(pull()).rejects.toThrow();
    await expect(pull()).rejects.toThrow();
    expect(origin.publisher.refused).toBe(2);
    const sentence = 'OVT edges refused: their address has its share';
    expect(origin.logger.matching(sentence).map(({ fields }) => fields)).toEqual([{ peer: '127.0.0.1', share: 1, count: 1 }]);
    const other = net.connect({ port: origin.publisher.ports[0] ?? 0, host: '127.0.0.1', localAddress: '127.0.0.2' });
    closing.push(() => other.destroy());
    await until(() => origin.publisher.connections === 2);
    edge.close();
    await until(() => origin.publisher.connections === 1);
    await pull();
  });

  test('a stop ends the streams of edges, and can be repeated', async () => {
    await listen();
    serve();
    const { sink } = await pull();
    await origin.publisher.stop();
    await origin.publisher.stop();
    await sink.until(({ reason }) => reason !== null);
    expect(sink.reason).toEqual({ code: 'peer-left', detail: 'the origin stopped: the server stops' });
  });
});
