/**
 * Our SRT as a separate program for the bench, equivalent to `srt-live-transmit`: `receive` accepts callers on a port that it prints, and
 * writes their payload to /dev/null; `send PORT…` calls each port, and sends it the datagrams that arrive on the ports that it prints.
 * `feed KBPS PORT…` sends such datagrams.
 */
import { createSocket } from 'node:dgram';
import { openSync, writeSync } from 'node:fs';
import { openUdpSocket } from '../../src/native/udp/open-udp-socket.ts';
import { SrtUdpPort } from '../../src/transport/srt/udp-port.ts';
import { systemClock } from '../../src/util/clock.ts';
import type { SrtConnection } from '../../src/wire/srt/connection.ts';

const HOST = '127.0.0.1';
/** Seven packets of a transport stream. */
const PAYLOAD = Buffer.alloc(1316, 0x47);
const INPUT_BUFFER = 1_000_000;
const TURN_MS = 10;
const LATENCY = { receive: 120, peer: 120 };

const [mode, ...args] = process.argv.slice(2);

async function receive(): Promise<void> {
  let payloads = 0;
  const nowhere = openSync('/dev/null', 'w');
  const port = await SrtUdpPort.open({
    ...{ clock: systemClock, host: HOST, port: 0, onError: fail },
    policy: {
      passphrase: () => null,
      open: () => ({
        onOpen: () => console.log('open'),
        onData: (payload) => {
          payloads += 1;
          writeSync(nowhere, payload);
        },
        onClosed: () => undefined,
      }),
    },
  });
  console.log(`port ${port.port}`);
  setInterval(() => console.log(`payloads ${payloads}`), 1000);
}

async function send(ports: readonly number[]): Promise<void> {
  const port = await SrtUdpPort.open({ clock: systemClock, host: HOST, port: 0, policy: null, onError: fail });
  const call = { streamId: 'bench', passphrase: null, keyLength: null, latency: LATENCY, timeout: 10_000_000 };
  const session = { onData: () => undefined, onClosed: () => fail(new Error('a connection was closed')) };
  const inputs: number[] = [];
  for (const to of ports) {
    const connection: SrtConnection = await port.connect({ address: HOST, port: to }, call, session);
    const input = await openUdpSocket({
      ...{ host: HOST, port: 0, bufferBytes: INPUT_BUFFER, onTurn: () => undefined, onAlarm: () => undefined, onError: fail },
      onDatagram: (payload) => connection.send(payload, port.now()),
    });
    inputs.push(input.port);
  }
  console.log(`inputs ${inputs.join(' ')}`);
}

function feed(kbps: number, ports: readonly number[]): void {
  const socket = createSocket('udp4');
  everyPayload(kbps, () => {
    for (const to of ports) socket.send(PAYLOAD, to, HOST);
  });
}

/** Calls `emit` at the payload rate of a stream of `kbps`. */
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

const numbers = args.map(Number);
const [kbps = 0, ...ports] = numbers;
if (mode === 'receive') await receive();
else if (mode === 'send') await send(numbers);
else if (mode === 'feed') feed(kbps, ports);
else fail(new Error('receive | send PORT… | feed KBPS PORT…'));
