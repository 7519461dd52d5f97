/** SRT in and out of the real server: ffmpeg publishes and plays, over a good and a bad link. */
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { requireProgram } from '../../scripts/ensure-tools.ts';
import { apiPath, type StreamInformation } from '../harness/api-client.ts';
import { BadLink } from '../harness/bad-link.ts';
import { Child } from '../harness/child.ts';
import { until } from '../harness/poll.ts';
import { freePorts } from '../harness/ports.ts';
import { decode, probe } from '../harness/probe.ts';
import { publish } from '../harness/publisher.ts';
import { startServer, type TestServer } from '../harness/server.ts';

const PASSPHRASE = 'correct-horse-battery';
/** A round trip takes up to 160 ms; the latency is four of them. */
const BAD = { loss: 0.1, delay: 50, jitter: 30 };
/** Room for ten retransmissions. One in five fails, because the request or the packet is lost; with four, some runs lose a packet. */
const LATENCY_MICROS = 1_600_000;
const FRAME_RATE = 30;

let server: TestServer;
let ingest = 0;
let egress = 0;
const cleanups: (() => unknown)[] = [];

beforeAll(async () => {
  [ingest = 0, egress = 0] = await freePorts(2);
  server = await startServer({ segmentDuration: 1, srt: { ingest, egress, options: { PASSPHRASE, PBKEYLEN: '32' } } });
});

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

afterAll(() => server?.close());

function srtUrl(port: number, streamId: string, secret = PASSPHRASE): string {
  return `srt://127.0.0.1:${port}?streamid=${encodeURIComponent(streamId)}&passphrase=${secret}&latency=${LATENCY_MICROS}`;
}

/** ffmpeg as an encoder. */
function encode(url: string): Child {
  const inputs = ['-re', '-f', 'lavfi', '-i', `testsrc2=size=320x180:rate=${FRAME_RATE}`, '-re', '-f', 'lavfi', '-i', 'sine=frequency=440'];
  const codecs = ['-c:v', 'libx264', '-preset', 'ultrafast', '-b:v', '800k', '-g', '30', '-pix_fmt', 'yuv420p', '-c:a', 'aac'];
  const child = new Child(requireProgram('ffmpeg'), ['-v', 'warning', '-nostdin', ...inputs, ...codecs, '-f', 'mpegts', url]);
  cleanups.push(() => child.kill());
  return child;
}

async function badLink(to: number, seed: number): Promise<number> {
  const relay = await BadLink.open({ ...BAD, to, seed });
  cleanups.push(() => relay.close());
  return relay.port;
}

/** Waits for a stream of a running encoder. */
async function streamNamed(name: string, encoder: Child): Promise<StreamInformation> {
  return await until(`stream ${name}`, async () => {
    if (encoder.exit !== null) throw new Error(`the encoder ended: ${encoder.stderr.slice(-1000)}`);
    const information = await server.api.get<StreamInformation>(apiPath.stream(name));
    return information.input.tracks.some(({ type }) => type === 'Video') ? information : null;
  });
}

/** Figures of the connections of a stream in `/metrics`, by name. */
async function figures(direction: string, stream: string): Promise<Readonly<Record<string, number>>> {
  const answer = await fetch(`${server.api.base}/metrics`, { headers: { authorization: server.api.authorization } });
  const lines = [...(await answer.text()).matchAll(/^millrace_srt_(\w+)\{direction="(\w+)",.*stream="(\w+)",.*\} (\S+)$/gm)];
  const own = lines.filter(([, , way, of]) => way === direction && of === stream);
  return Object.fromEntries(own.map(([, name, , , value]) => [name, Number(value)]));
}

test('an encrypted stream that ffmpeg publishes over a lossy link plays without an error over another lossy link', async () => {
  const encoder = encode(srtUrl(await badLink(ingest, 1), 'default/app/lossy'));
  const { input } = await streamNamed('lossy', encoder);
  expect(input.sourceType).toBe('SRT');
  expect(input.sourceUrl).toMatch(/^SRT:\/\/127\.0\.0\.1:\d+$/);
  const watching = decode(srtUrl(await badLink(egress, 2), 'default/app/lossy'), 5);
  const told = await until('figures of both connections', async () => {
    const [received, sent] = [await figures('ingest', 'lossy'), await figures('playback', 'lossy')];
    const isLossy = (received['received_lost_packets_total'] ?? 0) > 0 && (sent['sent_retransmitted_packets_total'] ?? 0) > 0;
    const isMadeGood = (received['received_retransmitted_packets_total'] ?? 0) > 0 && (sent['sent_lost_packets_total'] ?? 0) > 0;
    return isLossy && isMadeGood ? [received['rtt_seconds'], sent['rtt_seconds']] : null;
  });
  for (const rtt of told) expect(rtt).toBeGreaterThan(0.03);
  const { frames, errors } = await watching;
  expect(errors).toBe('');
  expect(frames).toBeGreaterThan(4.5 * FRAME_RATE);
});

test('late packets are counted when the latency is shorter than the path delay', async () => {
  const url = srtUrl(await badLink(ingest, 3), 'default/app/hasty').replace(`latency=${LATENCY_MICROS}`, 'latency=20000');
  await streamNamed('hasty', encode(url));
  // The server's latency is 120 ms, but a retransmission takes up to 240 ms.
  const told = await until('packets that came too late', async () => {
    const now = await figures('ingest', 'hasty');
    return (now['received_late_packets_total'] ?? 0) > 0 ? now : null;
  });
  expect(told['received_late_packets_total']).toBeLessThanOrEqual(told['received_lost_packets_total'] ?? 0);
});

test('a stream published over SRT is served over HTTP, and one published over RTMP is served over SRT', async () => {
  const encoder = encode(srtUrl(ingest, '#!::u=srt://127.0.0.1/app/from-srt,m=publish'));
  const rtmp = publish({ url: server.rtmp('from-rtmp'), width: 320, height: 180, videoKbps: 300 });
  cleanups.push(() => rtmp.kill());
  await streamNamed('from-srt', encoder);
  await streamNamed('from-rtmp', rtmp.child);
  const overHttp = await until('a playable stream over HLS', () => probe(server.http('from-srt', 'llhls.m3u8')), { deadlineMs: 30_000 });
  expect([overHttp.video?.codec_name, overHttp.audio?.codec_name]).toEqual(['h264', 'aac']);
  const { frames, errors } = await decode(srtUrl(egress, 'default/app/from-rtmp/playlist'), 3);
  expect(errors).toBe('');
  expect(frames).toBeGreaterThan(2.5 * FRAME_RATE);
});

test('several viewers get the same stream, and a viewer that leaves does not disturb the others', async () => {
  await streamNamed('shared', encode(srtUrl(ingest, 'default/app/shared')));
  const leaver = new Child(requireProgram('ffmpeg'), [
    '-v',
    'error',
    '-nostdin',
    '-i',
    srtUrl(egress, 'default/app/shared'),
    '-f',
    'null',
    '-',
  ]);
  cleanups.push(() => leaver.kill());
  await until('the first viewer', () => /SRT viewer connected/.test(server.log));
  const watching = [1, 2, 3].map(() => decode(srtUrl(egress, 'default/app/shared'), 3));
  await leaver.kill();
  for (const { errors, frames } of await Promise.all(watching)) {
    expect(errors).toBe('');
    expect(frames).toBeGreaterThan(2.5 * FRAME_RATE);
  }
});

test('wrong passphrases, unknown places, second publishers and missing streams are refused with a reason', async () => {
  const first = encode(srtUrl(ingest, 'default/app/taken'));
  await streamNamed('taken', first);
  const refusals: [string, string, RegExp][] = [
    ['wrong passphrase', srtUrl(ingest, 'default/app/other', 'not-the-passphrase'), /password|passphrase/i],
    ['unknown application', srtUrl(ingest, 'default/nowhere/stream'), /rejection/i],
    ['no address', srtUrl(ingest, 'nonsense'), /rejection/i],
    ['no stream id', `srt://127.0.0.1:${ingest}?passphrase=${PASSPHRASE}`, /rejection/i],
    ['second publisher', srtUrl(ingest, 'default/app/taken'), /rejection/i],
  ];
  for (const [what, url, reason] of refusals) {
    const refused = encode(url);
    const { code } = await refused.ended(20_000);
    expect(code, what).not.toBe(0);
    expect(refused.stderr, what).toMatch(reason);
  }
  await expect(probe(srtUrl(egress, 'default/app/absent'))).rejects.toThrow();
  expect(first.exit).toBeNull();
  expect(server.log).toMatch(/default\/nowhere\/stream refused, no-application/);
  expect(server.log).toMatch(/default\/app\/taken refused, duplicate-name/);
  expect(server.log).toMatch(/conflict \(1409\)/);
  for (const line of [
    "publisher refused: virtual host 'default' has no application 'nowhere'",
    'publisher refused: the stream id is missing, and the port has no stream of its own (StreamMap): want streamid=VHOST/APP/STREAM',
    'names no stream: want streamid=VHOST/APP/STREAM, e.g. default/app/live',
    'to play it, call the port of Bind/Publishers/SRT',
    'viewer refused: there is no stream default/app/absent',
  ])
    expect(server.log).toContain(line);
});

test('a stream ends with its encoder, and its name is free again', async () => {
  for (let round = 0; round < 2; round += 1) {
    const encoder = encode(srtUrl(ingest, 'default/app/again'));
    await streamNamed('again', encoder);
    await encoder.stop('SIGINT');
    await until('the stream to be gone', async () => {
      const names = await server.api.get<readonly string[]>('/v1/vhosts/default/apps/app/streams');
      return !names.includes('again');
    });
  }
});
