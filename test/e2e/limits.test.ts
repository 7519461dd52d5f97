/** Limits per client at the real server, and client addresses behind proxies. */
import { readdirSync } from 'node:fs';
import { request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { WebSocket } from 'ws';
import { RtmpPublisher } from '../fakes/rtmp-publisher.ts';
import { apiPath, type StreamInformation } from '../harness/api-client.ts';
import { startNginxProxy } from '../harness/nginx-proxy.ts';
import { until } from '../harness/poll.ts';
import { freePorts } from '../harness/ports.ts';
import { publish } from '../harness/publisher.ts';
import { type StartOptions, startServer, type TestServer } from '../harness/server.ts';

const DESCRIPTORS = 200;

async function start(options: StartOptions): Promise<TestServer> {
  const server = await startServer(options);
  onTestFinished(() => server.close());
  return server;
}

/** Silent connections that reconnect whenever they are closed, until the end of the test. */
function besiege(port: number, count: number, from: string): void {
  const sockets = new Set<Socket>();
  let over = false;
  const open = (): void => {
    if (over) return;
    const socket = connect({ port, host: '127.0.0.1', localAddress: from });
    sockets.add(socket);
    socket.on('error', () => undefined).resume();
    socket.once('close', () => {
      sockets.delete(socket);
      setTimeout(open, 200);
    });
  };
  for (let n = 0; n < count; n += 1) open();
  onTestFinished(() => {
    over = true;
    for (const socket of sockets) socket.destroy();
  });
}

test(`with ${DESCRIPTORS} descriptors, many viewers and many connections of one address leave room for the API and encoders`, async () => {
  const [ovtPort = 0] = await freePorts(1);
  const server = await start({ segmentDuration: 1, descriptors: DESCRIPTORS, webrtc: {}, ovtPort });
  for (const port of [server.ports.http, server.ports.relay, ovtPort]) besiege(port, 100, '127.0.0.3');
  besiege(server.ports.rtmp, 60, '127.0.0.4');
  await until('viewers to be refused', () => /HTTP connections refused/.test(server.log));
  await until('encoders to be refused', () => /RTMP connections refused/.test(server.log));
  const encoder = publish({ url: server.rtmp('live'), width: 320, height: 180, videoKbps: 300 });
  onTestFinished(async () => void (await encoder.stop()));
  await encoder.sent(60);
  const { input } = await server.api.get<StreamInformation>(apiPath.stream('live'));
  expect(input.sourceType).toBe('Rtmp');
  expect(readdirSync(`/proc/${server.pid}/fd`).length).toBeLessThan(DESCRIPTORS - 8);
  expect(server.log).toContain(`the process may open ${DESCRIPTORS} files (ulimit -n)`);
  // A line for each kind of refusal, however many there were.
  expect(server.log.match(/ refused: /g)?.length).toBeLessThan(12);
  expect(server.log).not.toContain('no file descriptors are left');
});

test('behind nginx the address of a viewer is taken from X-Forwarded-For, over HTTP and WebSockets, and only from a trusted proxy', async () => {
  const proxies = '<TrustedProxies><Address>127.0.0.1</Address><ProxyProtocol><RTMP>true</RTMP></ProxyProtocol></TrustedProxies>';
  const server = await start({ segmentDuration: 1, webrtc: {}, head: proxies });
  const nginx = await startNginxProxy(server.folder, server.ports.http);
  onTestFinished(async () => void (await nginx.child.stop()));
  const publisher = await RtmpPublisher.publish(server.ports.rtmp, {
    tcUrl: `rtmp://127.0.0.1:${server.ports.rtmp}/app`,
    key: 'told',
    prelude: Buffer.from('PROXY TCP4 192.0.2.44 127.0.0.1 5000 1935\r\n'),
  });
  publisher.close();
  await until('the publisher to be logged', () => server.log.includes('192.0.2.44:5000'));
  // The client's address is not that of a proxy.
  const encoder = await RtmpPublisher.publish(server.ports.rtmp, {
    tcUrl: `rtmp://127.0.0.1:${server.ports.rtmp}/app`,
    key: 'live',
    from: '127.0.0.9',
  });
  onTestFinished(() => encoder.close());
  encoder.metadata({ audiocodecid: 10 });
  encoder.audio(0, 'af001190');
  const feed = setInterval(() => encoder.audio(Math.round(performance.now()), 'af0121aa'), 21);
  onTestFinished(() => clearInterval(feed));
  const playlist = (port: number, localAddress: string): Promise<number> =>
    new Promise((resolve, reject) => {
      const headers = { 'X-Forwarded-For': '203.0.113.66' };
      const asking = request({ host: '127.0.0.1', port, localAddress, path: '/app/live/llhls.m3u8', headers }, (response) => {
        response.resume();
        resolve(response.statusCode ?? 0);
      });
      asking.on('error', reject).end();
    });
  await until('the playlist', async () => (await playlist(nginx.port, '127.0.0.5')) === 200);
  await until('the session to be logged', () => /viewer session opened.*127\.0\.0\.5|127\.0\.0\.5.*viewer session opened/.test(server.log));
  expect(await playlist(server.ports.http, '127.0.0.6')).toBe(200);
  await until('the other session to be logged', () =>
    /viewer session opened.*127\.0\.0\.6|127\.0\.0\.6.*viewer session opened/.test(server.log),
  );
  const socket = new WebSocket(`ws://127.0.0.1:${nginx.port}/app/nothing`, { localAddress: '127.0.0.7' });
  onTestFinished(() => socket.terminate());
  socket.on('open', () => socket.send('{"command":"request_offer"}'));
  await until('the refusal to be logged', () => /127\.0\.0\.7/.test(server.log));
  expect(server.log).not.toContain('203.0.113.66');
});
