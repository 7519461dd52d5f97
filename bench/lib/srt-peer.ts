/**
 * Our SRT as a program of its own, for the bench: `receive` takes callers on a port it prints and drops what they send;
 * `send KBPS PORT…` calls every port named and sends to each; `feed KBPS PORT…` sends the same payloads as bare datagrams.
 */
import { createSocket } from 'node:dgram';
import type { SrtConnection } from '../../src/protocols/srt/connection.ts';
import { SrtUdpPort } from '../../src/protocols/srt/udp-port.ts';
import { systemClock } from '../../src/util/clock.ts';

const HOST = '127.0.0.1';
/** Seven packets of a transport stream. */
const PAYLOAD = Buffer.alloc(1316, 0x47);
const TURN_MS = 10;
const LATENCY = { receive: 120, peer: 120 };

const [mode, ...args] = process.argv.slice(2);

async function receive(): Promise<void> {
  let payloads = 0;
  const port = await SrtUdpPort.open({
    ...{ clock: systemClock, host: HOST, port: 0, onError: fail },
    policy: {
      passphrase: () => null,
      open: () => ({
        onOpen: () => console.log('open'),
        onData: () => {
          payloads += 1;
        },
        onClosed: () => undefined,
      }),
    },
  });
  console.log(`port ${port.port}`);
  setInterval(() => console.log(`payloads ${payloads}`), 1000);
}

async function send(kbps: number, ports: readonly number[]): Promise<void> {
  const port = await SrtUdpPort.open({ clock: systemClock, host: HOST, port: 0, policy: null, onError: fail });
  const call = { streamId: 'bench', passphrase: null, keyLength: null, latency: LATENCY, timeout: 10_000_000 };
  const session = { onData: () => undefined, onClosed: () => fail(new Error('a connection was closed')) };
  const connections: SrtConnection[] = [];
  for (const to of ports) connections.push(await port.connect({ address: HOST, port: to }, call, session));
  console.log(`connected ${connections.length}`);
  everyPayload(kbps, () => {
    for (const connection of connections) connection.send(PAYLOAD, port.now());
  });
}

function feed(kbps: number, ports: readonly number[]): void {
  const socket = createSocket('udp4');
  everyPayload(kbps, () => {
    for (const to of ports) socket.send(PAYLOAD, to, HOST);
  });
}

/** Calls `emit` as often as a stream of `kbps` has payloads. */
function everyPayload(kbps: number, emit: () => void): void {
  const perMs = kbps / 8 / PAYLOAD.length;
  const startedAt = performance.now();
  let emitted = 0;
  setInterval(() => {
    for (const due = (performance.now() - startedAt) * perMs; emitted < due; emitted += 1) emit();
  }, TURN_MS);
}

function fail(error: Error): never {
  console.error(error.message);
  process.exit(1);
}

const [kbps = 0, ...ports] = args.map(Number);
if (mode === 'receive') await receive();
else if (mode === 'send') await send(kbps, ports);
else if (mode === 'feed') feed(kbps, ports);
else fail(new Error('receive | send KBPS PORT… | feed KBPS PORT…'));
