/** Limits of one address at the API. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { afterEach, expect, test } from 'vitest';
import type { ApiServerOptions } from '../../src/api/api-server.ts';
import { AddressShares } from '../../src/util/address-shares.ts';
import { ConnectionLimiter } from '../../src/util/connection-limiter.ts';
import { RefusalLog } from '../../src/util/refusal-log.ts';
import { RecordingLogger } from '../fakes/recording-logger.ts';
import { type ApiHarness, startApi, TLS_FILES } from './harness.ts';

const closings: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closings.splice(0).reverse()) await close();
});

function client(port: number, from: string): Socket {
  const socket = connect({ port, host: '127.0.0.1', localAddress: from }).on('error', () => undefined);
  closings.push(() => socket.destroy());
  return socket;
}

/** Resolves also for a reset connection, which `once` would report as an error. */
function closed(socket: Socket): Promise<void> {
  return new Promise((resolve) => socket.once('close', () => resolve()));
}

/** Whether a health check from `from` gets an answer. */
async function answers(api: ApiHarness, from: string): Promise<boolean> {
  const socket = client(api.port, from);
  socket.write('GET /health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
  let said = '';
  socket.on('data', (chunk: Buffer) => {
    said += chunk.toString();
  });
  await closed(socket);
  return said.startsWith('HTTP/1.1 200');
}

async function limited(options: Partial<ApiServerOptions>): Promise<{ readonly api: ApiHarness; readonly logger: RecordingLogger }> {
  const logger = new RecordingLogger();
  const refusals = new RefusalLog(logger);
  closings.push(() => refusals.close());
  const limiter = new ConnectionLimiter({ what: 'API connections', shares: new AddressShares({ perAddress: 2 }), refusals });
  const api = await startApi({ limiter, ...options });
  closings.push(() => api.close());
  return { api, logger };
}

const REFUSED = {
  level: 'warn',
  message: 'API connections refused: their address has its share',
  fields: { peer: '127.0.0.1', share: 2, count: 1 },
};

test('an address at its share of connections leaves room for other addresses, and is logged once', async () => {
  const { api, logger } = await limited({});
  const held = [client(api.port, '127.0.0.1'), client(api.port, '127.0.0.1')];
  await Promise.all(held.map((socket) => once(socket, 'connect')));
  expect([await answers(api, '127.0.0.1'), await answers(api, '127.0.0.1'), await answers(api, '127.0.0.2')]).toEqual([false, false, true]);
  expect(logger.lines).toMatchObject([REFUSED]);
  held[0]?.destroy();
  await expect.poll(() => answers(api, '127.0.0.1')).toBe(true);
});

test('over TLS it is refused before the handshake', async () => {
  const { api, logger } = await limited({ port: null, tls: { port: 0, load: async () => TLS_FILES } });
  for (let n = 0; n < 2; n += 1) await once(client(api.port, '127.0.0.1'), 'connect');
  await closed(client(api.port, '127.0.0.1'));
  expect(logger.lines).toMatchObject([REFUSED]);
});

test('TLS on the plain port, and plain HTTP on the TLS port, are logged', async () => {
  const plain = await limited({});
  const secure = await limited({ port: null, tls: { port: 0, load: async () => TLS_FILES } });
  const shaking = connectTls({ port: plain.api.port, host: '127.0.0.1', rejectUnauthorized: false });
  await new Promise((resolve) => shaking.once('error', resolve));
  expect(await answers(secure.api, '127.0.0.1')).toBe(false);
  const line = (why: string) => ({ level: 'warn', message: `API connections closed: ${why}`, fields: { peer: '127.0.0.1' } });
  await expect
    .poll(() => [plain.logger.lines, secure.logger.lines])
    .toMatchObject([
      [
        line(
          `TLS was spoken to port ${plain.api.port}, which speaks plain HTTP: use http://, or the port of TLSPort, which needs a certificate`,
        ),
      ],
      [line(`plain HTTP was spoken to port ${secure.api.port}, which speaks TLS: use https://`)],
    ]);
});
