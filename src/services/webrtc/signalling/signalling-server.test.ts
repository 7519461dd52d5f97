import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { afterEach, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { foreignPeer } from '../../../../test/fakes/foreign-peer.ts';
import { HeldTurns } from '../../../../test/fakes/held-turns.ts';
import { RecordingLogger } from '../../../../test/fakes/recording-logger.ts';
import { AddressShares } from '../../../util/address-shares.ts';
import { NO_TURNS, type Turns } from '../../../util/newcomer-turns.ts';
import { RefusalLog } from '../../../util/refusal-log.ts';
import { SignallingServer } from './signalling-server.ts';

/** The server's ends of the connections. */
const connections: Duplex[] = [];
const cleanups: (() => unknown)[] = [];
afterEach(() => {
  connections.length = 0;
  for (const cleanup of cleanups.splice(0).reverse()) cleanup();
});

/** Starts signalling that reads the client's address from a header, in place of the relay. */
async function start(silent: AddressShares, refusals: RefusalLog, turns: Turns = NO_TURNS): Promise<number> {
  const side = { request: () => undefined, connected: () => undefined };
  const signalling = new SignallingServer({
    play: { side, ports: new Set([80]) },
    publish: null,
    virtualHostFor: () => 'default',
    silent,
    turns,
    refusals,
  });
  const server: Server = createServer();
  server.on('upgrade', (request, socket, head) => {
    connections.push(socket);
    signalling.upgrade(request, socket, head, foreignPeer(String(request.headers['x-client']), 80));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  cleanups.push(
    () => server.close(),
    () => signalling.close(),
  );
  return (server.address() as AddressInfo).port;
}

test('idle WebSockets have a share per address, until they ask for an offer or close', async () => {
  const logger = new RecordingLogger();
  const refusals = new RefusalLog(logger);
  const shares = new AddressShares({ perAddress: 2 });
  const port = await start(shares, refusals);
  cleanups.push(() => refusals.close());
  const open = async (client: string): Promise<WebSocket> => {
    const socket = new WebSocket(`ws://127.0.0.1:${port}/app/s`, { headers: { 'x-client': client } });
    cleanups.push(() => socket.terminate());
    await once(socket, 'open');
    return socket;
  };
  const [asks, leaves] = [await open('192.0.2.1'), await open('192.0.2.1')];
  for (let n = 0; n < 3; n += 1) await expect(open('192.0.2.1')).rejects.toThrow('429');
  await open('192.0.2.2');
  expect(logger.matching('WebSockets refused: too many of their address have asked for nothing')).toHaveLength(1);
  asks.send('{"command":"request_offer"}');
  leaves.close();
  while (shares.held('192.0.2.1') > 0) await new Promise(setImmediate);
  await open('192.0.2.1');
});

test('a WebSocket is opened in the turn of its address, refused when the queue is full, and leaves the queue when it closes', async () => {
  const shares = new AddressShares({ perAddress: 10 });
  const turns = new HeldTurns();
  const refusals = new RefusalLog(new RecordingLogger());
  const port = await start(shares, refusals, turns);
  cleanups.push(() => refusals.close());
  const sockets: WebSocket[] = [];
  const call = async (): Promise<WebSocket> => {
    const socket = new WebSocket(`ws://127.0.0.1:${port}/app/s`, { headers: { 'x-client': '192.0.2.1' } });
    sockets.push(socket);
    cleanups.push(() => socket.terminate());
    socket.on('error', () => undefined);
    while (turns.waiting.length < sockets.length) await new Promise(setImmediate);
    return socket;
  };
  const [enters, refused, leaves] = [await call(), await call(), await call()];
  expect([turns.waiting.map(({ client }) => client), sockets.map(({ readyState }) => readyState)]).toEqual([
    ['192.0.2.1', '192.0.2.1', '192.0.2.1'],
    [WebSocket.CONNECTING, WebSocket.CONNECTING, WebSocket.CONNECTING],
  ]);
  const [opened, failed] = [once(enters, 'open'), once(refused, 'unexpected-response')];
  turns.waiting[0]?.enter();
  turns.waiting[1]?.refused('there is no room');
  await opened;
  const [, response] = await failed;
  expect(response.statusCode).toBe(503);
  while (shares.held('192.0.2.1') > 2) await new Promise(setImmediate);
  connections[2]?.destroy();
  while (leaves.readyState !== WebSocket.CLOSED) await new Promise(setImmediate);
  expect(shares.held('192.0.2.1')).toBe(1);
  turns.waiting[2]?.enter();
  expect(leaves.readyState).toBe(WebSocket.CLOSED);
});
