/** Admission to RTMP, and the addresses of publishers behind proxies. */
import { once } from 'node:events';
import net from 'node:net';
import tls from 'node:tls';
import { afterEach, describe, expect, test } from 'vitest';
import { FakeIngestGate } from '../../../test/fakes/fake-ingest-gate.ts';
import { RecordingLogger } from '../../../test/fakes/recording-logger.ts';
import { informationOf, RtmpPublisher } from '../../../test/fakes/rtmp-publisher.ts';
import { selfSigned } from '../../../test/fakes/self-signed.ts';
import { ConnectionGate, type GateOptions } from '../../transport/proxy/connection-gate.ts';
import { AddressShares } from '../../util/address-shares.ts';
import { systemClock } from '../../util/clock.ts';
import { ConnectionLimiter } from '../../util/connection-limiter.ts';
import { DescriptorLedger } from '../../util/descriptor-ledger.ts';
import { RefusalLog } from '../../util/refusal-log.ts';
import { TrustedProxies } from '../../util/trusted-proxies.ts';
import { ClientHandshake } from '../../wire/rtmp/handshake.ts';
import type { RtmpProviderOptions } from './rtmp-options.ts';
import { RtmpProvider } from './rtmp-provider.ts';

const SHARE = 'RTMP connections refused: their address has its share';
const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function start(
  { perAddress = 0, descriptors = 100, ...gating }: Partial<GateOptions> & { perAddress?: number; descriptors?: number },
  options: Partial<RtmpProviderOptions> = {},
) {
  const gate = new FakeIngestGate();
  const logger = new RecordingLogger();
  const refusals = new RefusalLog(logger);
  const ledger = new DescriptorLedger(DescriptorLedger.open(descriptors));
  const limiter = new ConnectionLimiter({
    what: 'RTMP connections',
    shares: new AddressShares({ perAddress }),
    descriptors: ledger,
    refusals,
  });
  const entry = new ConnectionGate({ limiter, ...gating });
  const provider = new RtmpProvider({ gate, logger, clock: systemClock, host: '127.0.0.1', port: 0, entry, ...options });
  await provider.start();
  cleanups.push(
    () => refusals.close(),
    () => provider.stop(),
  );
  return { gate, logger, provider, ledger, port: provider.port };
}

/** Connects and says nothing. */
function silent(
  port: number,
  from = '127.0.0.1',
  hello: string | Uint8Array = '',
): { readonly closed: Promise<unknown>; readonly socket: net.Socket } {
  const socket = net.connect({ port, host: '127.0.0.1', localAddress: from });
  cleanups.push(() => socket.destroy());
  socket.on('error', () => undefined).resume();
  if (hello.length > 0) socket.write(hello);
  return { socket, closed: new Promise((done) => socket.once('close', done)) };
}

test('an HTTP request is answered with an explanation of the port', async () => {
  const { provider, logger } = await start({});
  const answer = await fetch(`http://127.0.0.1:${provider.port}/`);
  expect([answer.status, await answer.text()]).toEqual([200, 'This port speaks RTMP: encoders publish to it, and there is no page.\n']);
  expect(logger.lines.at(-1)).toMatchObject({ message: 'RTMP connection closed', fields: { detail: 'the peer speaks HTTP, not RTMP' } });
});

test('TLS on the plain port, and plain RTMP on the TLS port, log a warning that names the right scheme', async () => {
  const plain = await start({});
  const secure = await start({}, { tls: [{ hostNames: ['*'], ...selfSigned('localhost') }] });
  const shaking = tls.connect({ port: plain.port, host: '127.0.0.1', rejectUnauthorized: false });
  await new Promise((resolve) => shaking.once('error', resolve));
  await silent(secure.port, '127.0.0.1', new ClientHandshake({ variant: 'digest' }).hello).closed;
  const said = (logger: RecordingLogger): unknown[] => logger.lines.filter(({ level }) => level === 'warn');
  const line = (why: string) => ({ message: `RTMP connections closed: ${why}`, fields: { peer: '127.0.0.1', count: 1 } });
  await expect
    .poll(() => [said(plain.logger), said(secure.logger)])
    .toMatchObject([
      [
        line(
          `TLS was spoken to port ${plain.port}, which speaks plain RTMP: use rtmp://, or the port of TLSPort, which needs a certificate`,
        ),
      ],
      [line(`plain RTMP was spoken to port ${secure.port}, which speaks TLS: use rtmps://`)],
    ]);
});

async function publish(port: number, options: Parameters<typeof RtmpPublisher.publish>[1]): Promise<RtmpPublisher> {
  const publisher = await RtmpPublisher.publish(port, options);
  cleanups.push(() => publisher.close());
  return publisher;
}

describe('a single address', () => {
  test('leaves room for other addresses, and is logged once', async () => {
    const { port, provider, logger } = await start({ perAddress: 3 });
    const first = [silent(port), silent(port), silent(port)];
    await Promise.all(first.map(({ socket }) => once(socket, 'connect')));
    await Promise.all(Array.from({ length: 40 }, () => silent(port).closed));
    await publish(port, { from: '127.0.0.2', key: 'other' });
    expect(provider.dropped).toBe(40);
    expect(logger.matching(SHARE).map(({ fields }) => fields)).toEqual([{ peer: '127.0.0.1', share: 3, count: 1 }]);
    first[0]?.socket.destroy();
    while (provider.connections > 3) await new Promise(setImmediate);
    await publish(port, { key: 'own' });
  });

  test('beyond its share gets the reason in the answer to connect, a few times per second, even behind a proxy', async () => {
    const proxies = new TrustedProxies(['127.0.0.9']);
    // Long enough for a machine that is busy with other things.
    const { port, provider, gate } = await start({ perAddress: 1, proxies, proxyProtocol: true }, { timeouts: { refusal: 60_000 } });
    await publish(port, { key: 'own' });
    const origins = [{}, { from: '127.0.0.9', prelude: Buffer.from(`PROXY TCP4 127.0.0.1 127.0.0.1 5000 ${port}\r\n`) }];
    for (const origin of origins) {
      const refused = await RtmpPublisher.open(port, origin);
      cleanups.push(() => refused.close());
      refused.setChunkSize(4096);
      refused.connect({ tcUrl: `rtmp://media.example:${port}/app`, flashVer: 'x'.repeat(1000) });
      expect(informationOf(await refused.command('_error'))).toEqual({
        ...{ level: 'error', code: 'NetConnection.Connect.Rejected' },
        description: 'Too many connections, of your address or of all: try again later.',
      });
      await refused.closed;
    }
    expect([provider.dropped, gate.streams.length]).toEqual([2, 1]);
    await silent(port, '127.0.0.1', 'nonsense').closed;
  });

  test('beyond its share is closed, even when it sends nothing', async () => {
    const { port } = await start({ perAddress: 1 });
    await publish(port, { key: 'own' });
    await silent(port).closed;
  });

  test('gets only few answers during a flood of connections', async () => {
    const { port, provider } = await start({ perAddress: 1 });
    await publish(port, { key: 'own' });
    const from = performance.now();
    const hello = new ClientHandshake({ variant: 'simple' }).hello;
    const flood = Array.from({ length: 100 }, () => silent(port, '127.0.0.1', hello));
    await Promise.all(flood.map(({ closed }) => closed));
    const seconds = (performance.now() - from) / 1000;
    const told = flood.filter(({ socket }) => socket.bytesRead > 0).length;
    expect(told).toBeGreaterThan(0);
    expect(told).toBeLessThanOrEqual(8 + 8 * seconds);
    expect(provider.dropped).toBe(100);
    await expect.poll(() => provider.connections).toBe(1);
  });

  test('frees its file descriptors when it disconnects', async () => {
    const { port, provider, ledger } = await start({ descriptors: 2 });
    const publisher = await publish(port, {});
    const second = silent(port);
    await once(second.socket, 'connect');
    await silent(port).closed;
    expect([provider.dropped, ledger.held]).toEqual([1, 2]);
    publisher.close();
    second.socket.destroy();
    while (ledger.held > 0) await new Promise(setImmediate);
  });
});

describe('behind a proxy', () => {
  const proxies = new TrustedProxies(['127.0.0.1']);
  const header = (client: string): Buffer => Buffer.from(`PROXY TCP4 ${client} 127.0.0.1 5000 1935\r\n`);

  test('the address of a publisher is taken from the PROXY header, in the log, in its stream and for its share', async () => {
    const { port, gate, logger } = await start({ perAddress: 1, proxies, proxyProtocol: true });
    await publish(port, { prelude: header('192.0.2.7') });
    expect(gate.streams[0]?.request.sourceUrl).toBe('TCP://192.0.2.7:5000');
    expect(logger.matching('RTMP connection opened')[0]?.fields['peer']).toBe('192.0.2.7:5000');
    await silent(port, '127.0.0.1', header('192.0.2.7').toString()).closed;
    expect(logger.matching(SHARE)[0]?.fields).toMatchObject({ peer: '192.0.2.7' });
    await publish(port, { prelude: header('192.0.2.8'), key: 'second' });
  });

  test('the header may arrive in pieces, in version 2, and before the TLS handshake', async () => {
    const certificate = selfSigned('media.example');
    const { port, logger } = await start({ proxies, proxyProtocol: true }, { tls: [{ hostNames: ['*'], ...certificate }] });
    const { socket } = silent(port);
    const bytes = Buffer.from('0d0a0d0a000d0a515549540a2111000cc00002097f0000011388078f', 'hex');
    for (const byte of bytes) {
      socket.write(Buffer.from([byte]));
      await new Promise(setImmediate);
    }
    const secure = tls.connect({ socket, rejectUnauthorized: false });
    cleanups.push(() => secure.destroy());
    await once(secure, 'secureConnect');
    expect((await logger.line('RTMP connection opened')).fields['peer']).toBe('192.0.2.9:5000');
  });

  test('a connection of a trusted proxy without the header is closed, and other peers need no header', async () => {
    const { port, gate, provider, logger } = await start({ proxies, proxyProtocol: true });
    await silent(port, '127.0.0.1', '\x03 and so on').closed;
    expect(logger.matching('RTMP connections closed: no PROXY header')).toHaveLength(1);
    expect(provider.accepted).toBe(0);
    await publish(port, { from: '127.0.0.2' });
    expect(gate.streams[0]?.request.sourceUrl).toMatch(/^TCP:\/\/127\.0\.0\.2:/);
    // An untrusted peer that sends a PROXY header is refused.
    await silent(port, '127.0.0.2', header('192.0.2.7').toString()).closed;
    expect(logger.matching('RTMP connection closed').at(-1)?.fields['peer']).toMatch(/^127\.0\.0\.2:/);
  });
});
