/** A server that listens on all of IPv4 and IPv6 is reachable at every port over both. */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { connect, isIPv6 } from 'node:net';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { SrtUdpPort } from '../../src/transport/srt/udp-port.ts';
import { systemClock } from '../../src/util/clock.ts';
import { SrtCallFailed } from '../../src/wire/srt/caller.ts';
import { RejectionCode } from '../../src/wire/srt/rejection.ts';
import { StunType, serializeStun } from '../../src/wire/stun/stun-message.ts';
import { FakeWebrtcPublisher } from '../fakes/webrtc-publisher.ts';
import { until } from '../harness/poll.ts';
import { freePorts } from '../harness/ports.ts';
import { startServer, type TestServer } from '../harness/server.ts';

const STATIONS = ['127.0.0.1', '::1'];
const EVERYWHERE = [{ ips: ['*', '::'] }, { ips: ['::'] }];

/** Connects, sends `words` and resolves with the first bytes of the answer. */
async function answerOf(host: string, port: number, words: Buffer | string): Promise<Buffer> {
  const socket = connect({ host, port });
  onTestFinished(() => void socket.destroy());
  await once(socket, 'connect');
  socket.write(words);
  const [first] = (await once(socket, 'data')) as [Buffer];
  return first;
}

/** Result of an SRT call with `streamId`: `open`, or the code of the refusal. */
async function srtAnswer(host: string, port: number, streamId: string): Promise<'open' | number> {
  const local = await SrtUdpPort.open({ clock: systemClock, host, port: 0, policy: null, onError: () => undefined });
  onTestFinished(() => local.close('the test has ended'));
  const call = { streamId, passphrase: null, keyLength: null, latency: { receive: 20, peer: 20 }, timeout: 5_000_000 };
  try {
    await local.connect({ address: host, port }, call, { onData: () => undefined, onClosed: () => undefined });
    return 'open';
  } catch (error) {
    if (error instanceof SrtCallFailed) return error.code;
    throw error;
  }
}

describe.each(EVERYWHERE)('on $ips', ({ ips }) => {
  let server: TestServer;
  let [srtIn, srtOut, ovtPort, mpegtsPort] = [0, 0, 0, 0];

  beforeAll(async () => {
    [srtIn = 0, srtOut = 0, ovtPort = 0, mpegtsPort = 0] = await freePorts(4);
    server = await startServer({ ips, webrtc: {}, srt: { ingest: srtIn, egress: srtOut }, ovtPort, mpegtsPort });
    return () => server.close();
  });

  test.each(STATIONS)('all TCP ports answer over %s', async (host) => {
    const { rtmp, http, api, relay, ice } = server.ports;
    const place = isIPv6(host) ? `[${host}]` : host;
    expect((await fetch(`http://${place}:${http}/app/none/llhls.m3u8`)).status).toBe(404);
    expect((await fetch(`http://${place}:${api}/health`)).status).toBe(200);
    expect((await answerOf(host, rtmp, Buffer.concat([Buffer.of(3), Buffer.alloc(1536)])))[0]).toBe(3);
    const binding = serializeStun({ type: StunType.BINDING_REQUEST, transaction: Buffer.alloc(12, 7), attributes: [], password: null });
    expect((await answerOf(host, relay, binding)).readUInt16BE()).toBe(StunType.BINDING_SUCCESS);
    for (const port of [ice, ovtPort]) {
      const socket = connect({ host, port });
      await once(socket, 'connect');
      socket.destroy();
    }
  });

  test.each(STATIONS)('SRT and MPEG-TS are accepted over %s', async (host) => {
    expect(await srtAnswer(host, srtIn, `default/app/from-${isIPv6(host) ? 6 : 4}`)).toBe('open');
    const refusal = await srtAnswer(host, srtOut, 'default/app/none');
    expect(refusal).not.toBe('open');
    expect(refusal).not.toBe(RejectionCode.TIMEOUT);
    const sender = createSocket({ type: isIPv6(host) ? 'udp6' : 'udp4' });
    onTestFinished(() => void sender.close());
    sender.bind(0, host);
    await once(sender, 'listening');
    const name = isIPv6(host) ? `[${host}]:${sender.address().port}` : `${host}:${sender.address().port}`;
    await until(`a transport stream of ${name}`, () => {
      sender.send(Buffer.alloc(188, 0x47), mpegtsPort, host);
      return server.log.includes(name);
    });
  });

  test.each(STATIONS)('WebRTC media flows over %s, and candidates of both families are announced', async (host) => {
    const place = isIPv6(host) ? `[${host}]` : host;
    const publisher = new FakeWebrtcPublisher();
    onTestFinished(() => publisher.close());
    const url = `http://${place}:${server.ports.http}/app/web-${isIPv6(host) ? 6 : 4}?direction=whip`;
    const response = await fetch(url, { method: 'POST', body: publisher.offer(), headers: { 'Content-Type': 'application/sdp' } });
    expect(response.status).toBe(201);
    const description = await response.text();
    const told = [...description.matchAll(/ UDP \d+ (\S+) (\d+) /g)].map(([, address = '']) => isIPv6(address));
    expect(new Set(told)).toEqual(new Set([true, false]));
    await publisher.connect(description, [`candidate:1 1 UDP 1 ${host} ${server.ports.ice} typ host`]);
    await until('the handshake', () => publisher.connected);
  });
});
