import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { RecordingLogger } from '../../../../test/fakes/recording-logger.ts';
import { AddressShares } from '../../../util/address-shares.ts';
import { RefusalLog } from '../../../util/refusal-log.ts';
import { SignallingServer } from './signalling-server.ts';

const cleanups: (() => unknown)[] = [];
afterEach(() => {
  for (const cleanup of cleanups.splice(0).reverse()) cleanup();
});

/** Says the client's address in a header, as the relay would. */
async function start(silent: AddressShares, refusals: RefusalLog): Promise<number> {
  const side = { request: () => undefined, connected: () => undefined };
  const signalling = new SignallingServer({
    play: { side, ports: new Set([80]) },
    publish: null,
    virtualHostFor: () => 'default',
    silent,
    refusals,
  });
  const server: Server = createServer();
  server.on('upgrade', (request, socket, head) => {
    signalling.upgrade(request, socket, head, { address: String(request.headers['x-client']), port: 80 });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  cleanups.push(
    () => server.close(),
    () => signalling.close(),
  );
  return (server.address() as AddressInfo).port;
}

test('WebSockets that ask for nothing have a share for each address, until they ask or go', async () => {
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
