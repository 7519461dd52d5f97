/**
 * Our SRT against libsrt, as caller and as listener, over a good and a bad link.
 *
 * The tests run concurrently, because each mostly waits in real time.
 */
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, type TestContext, test } from 'vitest';
import { requireProgram } from '../../scripts/ensure-tools.ts';
import { SrtUdpPort } from '../../src/transport/srt/udp-port.ts';
import { systemClock } from '../../src/util/clock.ts';
import type { SrtConnection } from '../../src/wire/srt/connection.ts';
import type { CallPolicy } from '../../src/wire/srt/multiplexer.ts';
import { RejectionCode } from '../../src/wire/srt/rejection.ts';
import type { ReceiverStatistics } from '../../src/wire/srt/statistics.ts';
import { BadLink } from '../harness/bad-link.ts';
import { Child } from '../harness/child.ts';
import { until } from '../harness/poll.ts';
import { freePorts } from '../harness/ports.ts';

const PASSPHRASE = 'correct-horse-battery';
const PAYLOAD = 1316;
/** A round trip takes up to 160 ms; the latency is four of them. */
const BAD = { loss: 0.1, delay: 50, jitter: 30 };
const LATENCY = 640;
const SECONDS = 5;
/** The sample has about 800 packets, so keys change several times. */
const REFRESH = { every: 250, announceBefore: 100 };
/** An empty transport packet, to fill up the last payload. */
const NULL_PACKET = Buffer.alloc(188, 0xff).fill(Buffer.of(0x47, 0x1f, 0xff, 0x10), 0, 4);

let folder: string;
let sample: Buffer;
let sampleFile: string;

beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'srt-'));
  sampleFile = path.join(folder, 'sample.ts');
  const inputs = ['-f', 'lavfi', '-i', 'testsrc2=size=640x360:rate=30', '-f', 'lavfi', '-i', 'sine=frequency=440'];
  const codecs = ['-c:v', 'libx264', '-preset', 'ultrafast', '-b:v', '1500k', '-g', '30', '-c:a', 'aac'];
  const args = ['-v', 'error', '-nostdin', ...inputs, '-t', `${SECONDS}`, ...codecs, '-f', 'mpegts', sampleFile];
  execFileSync(requireProgram('ffmpeg'), args);
  const bytes = readFileSync(sampleFile);
  // Only complete payloads, so that every program sends the same payloads.
  const missing = (PAYLOAD - (bytes.length % PAYLOAD)) / 188;
  sample = Buffer.concat([bytes, ...new Array<Buffer>(missing).fill(NULL_PACKET)]);
  writeFileSync(sampleFile, sample);
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The cleanup of concurrent tests. */
type Finish = TestContext['onTestFinished'];

/** Bytes received by our side. */
interface Reception {
  readonly payloads: Uint8Array[];
  connection: SrtConnection | null;
  closed: string | null;
}

async function openPort(policy: CallPolicy | null, onTestFinished: Finish): Promise<SrtUdpPort> {
  const port = await SrtUdpPort.open({
    clock: systemClock,
    host: '127.0.0.1',
    port: 0,
    policy,
    keyRefresh: REFRESH,
    onError: () => undefined,
  });
  onTestFinished(() => port.close('the test has ended'));
  return port;
}

function session(reception: Reception): ReturnType<CallPolicy['open']> & object {
  return {
    onOpen: (connection) => {
      reception.connection = connection;
    },
    onData: (payload) => reception.payloads.push(payload),
    onClosed: ({ code }) => {
      reception.closed = code;
    },
  };
}

async function link(to: number, bad: boolean, seed: number, onTestFinished: Finish): Promise<number> {
  if (!bad) return to;
  const relay = await BadLink.open({ ...BAD, to, seed });
  onTestFinished(() => relay.close());
  return relay.port;
}

function start(program: string, args: readonly string[], onTestFinished: Finish): Child {
  const child = new Child(requireProgram(program), args);
  onTestFinished(async () => {
    await child.kill();
  });
  return child;
}

/** Runs libsrt's own program, which writes SRT into a file. */
function receiveInto(file: string, url: string, onTestFinished: Finish): Child {
  return start('sh', ['-c', `exec ${requireProgram('srt-live-transmit')} -q '${url}' file://con > '${file}'`], onTestFinished);
}

/** Waits until the peer has acknowledged everything and its latency has passed, then ends it and compares its file. */
async function expectEveryByte(child: Child, file: string, connection: SrtConnection | null): Promise<void> {
  await until('acknowledgements of everything', () => connection?.sendBacklog === 0, { deadlineMs: 20_000 });
  await until('every byte', () => (statSync(file, { throwIfNoEntry: false })?.size ?? 0) > sample.length - 16_384, { deadlineMs: 20_000 });
  const over = performance.now() + 2 * LATENCY;
  await until('the latency to be over', () => performance.now() > over);
  await child.stop();
  expect(readFileSync(file).equals(sample)).toBe(true);
}

/** Resolves after most of the sample, because ffmpeg drops its last packets at the end. */
async function receiveMost(reception: Reception): Promise<ReceiverStatistics> {
  await until('most of the sample', () => reception.payloads.length > (0.75 * sample.length) / PAYLOAD, { deadlineMs: 60_000 });
  if (reception.connection === null) throw new Error('there is no connection');
  return reception.connection.statistics.receiver;
}

function query(encrypted: boolean): string {
  const secret = encrypted
    ? `&passphrase=${encodeURIComponent(PASSPHRASE)}&pbkeylen=24&kmrefreshrate=${REFRESH.every}&kmpreannounce=${REFRESH.announceBefore}`
    : '';
  return `latency=${LATENCY}&transtype=live${secret}`;
}

/** Sends the sample in real time. */
function sendSample(connection: SrtConnection, now: () => number): Promise<void> {
  return handOver(SECONDS, (payload) => connection.send(payload, now()));
}

/** Passes the payloads of the sample on evenly within `seconds`. */
async function handOver(seconds: number, send: (payload: Uint8Array) => unknown): Promise<void> {
  const count = sample.length / PAYLOAD;
  const startedAt = performance.now();
  let sent = 0;
  await until(
    'the sample to be sent',
    () => {
      const due = Math.min(count, Math.ceil(((performance.now() - startedAt) / 1000 / seconds) * count));
      for (; sent < due; sent += 1) send(sample.subarray(sent * PAYLOAD, (sent + 1) * PAYLOAD));
      return sent === count;
    },
    { everyMs: 5, deadlineMs: 60_000 },
  );
}

const cases = [
  { name: 'plain, good link', encrypted: false, bad: false },
  { name: 'encrypted, bad link', encrypted: true, bad: true },
  { name: 'plain, bad link', encrypted: false, bad: true },
];

describe.concurrent('the listener', () => {
  test.for(cases)('loses no packet of ffmpeg as caller ($name)', async ({ encrypted, bad }, { onTestFinished }) => {
    const reception: Reception = { payloads: [], connection: null, closed: null };
    const port = await openPort({ passphrase: () => (encrypted ? PASSPHRASE : null), open: () => session(reception) }, onTestFinished);
    const to = await link(port.port, bad, 1, onTestFinished);
    // `-c copy -f data` passes the file on unchanged; SRT programs use payloads of 1316 bytes.
    const url = `srt://127.0.0.1:${to}?${query(encrypted)}&pkt_size=${PAYLOAD}&latency=${LATENCY * 1000}`.replace(
      `latency=${LATENCY}&`,
      '',
    );
    const child = start(
      'ffmpeg',
      ['-v', 'error', '-nostdin', '-re', '-i', sampleFile, '-map', '0', '-c', 'copy', '-f', 'mpegts', url],
      onTestFinished,
    );
    const received = await receiveMost(reception);
    expect(received).toMatchObject({ packetsDroppedLate: 0, packetsUndecryptable: 0 });
    expect(reception.connection?.encrypted).toBe(encrypted);
    if (bad) expect(received.packetsLost).toBeGreaterThan(20);
    const file = path.join(folder, `received-${encrypted}-${bad}.ts`);
    writeFileSync(file, Buffer.concat(reception.payloads));
    const judge = start('ffmpeg', ['-v', 'warning', '-nostdin', '-i', file, '-t', `${SECONDS / 2}`, '-f', 'null', '-'], onTestFinished);
    await judge.ended(60_000);
    expect(judge.stderr).toBe('');
    await child.ended(20_000);
    await until('the connection to end', () => reception.closed !== null, { deadlineMs: 20_000 });
  });

  test('gets every byte from srt-live-transmit as caller over a bad link', async ({ onTestFinished }) => {
    const reception: Reception = { payloads: [], connection: null, closed: null };
    const port = await openPort({ passphrase: () => PASSPHRASE, open: () => session(reception) }, onTestFinished);
    const to = await link(port.port, true, 5, onTestFinished);
    const args = ['-q', `-chunk:${PAYLOAD}`, 'file://con', `srt://127.0.0.1:${to}?mode=caller&${query(true)}`];
    const child = spawn(requireProgram('srt-live-transmit'), args, { stdio: ['pipe', 'ignore', 'ignore'] });
    onTestFinished(() => void child.kill('SIGKILL'));
    await until('the caller', () => reception.connection, { deadlineMs: 20_000 });
    const send = (payload: Uint8Array): unknown => child.stdin.write(payload);
    // It drops data from before its connection, and holds the last payload until another follows.
    const filler = Buffer.concat(new Array<Buffer>(PAYLOAD / 188).fill(NULL_PACKET));
    const fillUntil = async (what: string, holds: () => boolean): Promise<void> => {
      const probe = (): boolean => {
        send(filler);
        return holds();
      };
      await until(what, probe, { everyMs: 20, deadlineMs: 20_000 });
    };
    await fillUntil('its first payload', () => reception.payloads.length > 0);
    await handOver(SECONDS / 2, send);
    const received = (): Uint8Array[] => reception.payloads.filter((payload) => !filler.equals(payload));
    await fillUntil('every payload', () => received().length * PAYLOAD >= sample.length);
    expect(Buffer.concat(received()).equals(sample)).toBe(true);
    expect(reception.connection?.statistics.receiver.packetsLost).toBeGreaterThan(20);
  });

  test('gives srt-live-transmit as caller every byte over a bad link', async ({ onTestFinished }) => {
    const reception: Reception = { payloads: [], connection: null, closed: null };
    const port = await openPort({ passphrase: () => PASSPHRASE, open: () => session(reception) }, onTestFinished);
    const to = await link(port.port, true, 2, onTestFinished);
    const file = path.join(folder, 'pulled.ts');
    const child = receiveInto(file, `srt://127.0.0.1:${to}?mode=caller&${query(true)}`, onTestFinished);
    await until('the caller', () => reception.connection, { deadlineMs: 20_000 });
    if (reception.connection !== null) await sendSample(reception.connection, () => port.now());
    await expectEveryByte(child, file, reception.connection);
  });

  test('refuses libsrt with another passphrase', async ({ onTestFinished }) => {
    const port = await openPort({ passphrase: () => PASSPHRASE, open: () => RejectionCode.INTERNAL }, onTestFinished);
    const url = `srt://127.0.0.1:${port.port}?mode=caller&passphrase=something-else`;
    const child = start('ffmpeg', ['-v', 'warning', '-nostdin', '-i', sampleFile, '-c', 'copy', '-f', 'mpegts', url], onTestFinished);
    await child.printed(/REJECT.*(passphrase|password)/i, 20_000);
    await until('the refusal', () => port.multiplexer.counters.refused > 0);
    expect(port.multiplexer.connections).toBe(0);
  });
});

describe.concurrent('the caller', () => {
  const listenerUrl = (port: number, encrypted: boolean): string => `srt://127.0.0.1:${port}?mode=listener&${query(encrypted)}`;
  const call = (encrypted: boolean) => ({
    streamId: 'default/app/stream',
    passphrase: encrypted ? PASSPHRASE : null,
    keyLength: null,
    keyRefresh: REFRESH,
    latency: { receive: LATENCY, peer: LATENCY },
    timeout: 20_000_000,
  });

  test.for(cases)('gives srt-live-transmit as listener every byte ($name)', async ({ encrypted, bad }, { onTestFinished }) => {
    const [listening = 0] = await freePorts(1);
    const file = path.join(folder, `pushed-${encrypted}-${bad}.ts`);
    const child = receiveInto(file, listenerUrl(listening, encrypted), onTestFinished);
    const to = await link(listening, bad, 3, onTestFinished);
    const port = await openPort(null, onTestFinished);
    const reception: Reception = { payloads: [], connection: null, closed: null };
    const connection = await port.connect({ address: '127.0.0.1', port: to }, call(encrypted), session(reception));
    await sendSample(connection, () => port.now());
    await expectEveryByte(child, file, connection);
    if (encrypted) expect(connection.terms.keys?.changes).toBeGreaterThanOrEqual(2);
    if (bad) expect(connection.statistics.sender.packetsRetransmitted).toBeGreaterThan(20);
  });

  test('loses no packet of ffmpeg as listener over a bad link', async ({ onTestFinished }) => {
    const [listening = 0] = await freePorts(1);
    const url = `srt://127.0.0.1:${listening}?mode=listener&latency=${LATENCY * 1000}&pkt_size=${PAYLOAD}`;
    start('ffmpeg', ['-v', 'error', '-nostdin', '-re', '-i', sampleFile, '-map', '0', '-c', 'copy', '-f', 'mpegts', url], onTestFinished);
    const to = await link(listening, true, 4, onTestFinished);
    const port = await openPort(null, onTestFinished);
    const reception: Reception = { payloads: [], connection: null, closed: null };
    reception.connection = await port.connect({ address: '127.0.0.1', port: to }, call(false), session(reception));
    const received = await receiveMost(reception);
    expect(received).toMatchObject({ packetsDroppedLate: 0 });
    expect(received.packetsLost).toBeGreaterThan(20);
  });

  test('is refused by libsrt with another passphrase, with its code', async ({ onTestFinished }) => {
    const [listening = 0] = await freePorts(1);
    receiveInto(path.join(folder, 'none.ts'), listenerUrl(listening, true), onTestFinished);
    const port = await openPort(null, onTestFinished);
    const reception: Reception = { payloads: [], connection: null, closed: null };
    const refused = port.connect(
      { address: '127.0.0.1', port: listening },
      { ...call(true), passphrase: 'something else' },
      session(reception),
    );
    await expect(refused).rejects.toMatchObject({ name: 'SrtCallFailed', code: RejectionCode.BAD_SECRET });
    expect(port.multiplexer.busy).toBe(false);
  });

  test('gives up on a port that does not answer', async ({ onTestFinished }) => {
    const [silent = 0] = await freePorts(1);
    const port = await openPort(null, onTestFinished);
    const reception: Reception = { payloads: [], connection: null, closed: null };
    const refused = port.connect({ address: '127.0.0.1', port: silent }, { ...call(false), timeout: 1_000_000 }, session(reception));
    await expect(refused).rejects.toMatchObject({ code: RejectionCode.TIMEOUT });
  });
});
