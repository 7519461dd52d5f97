/** Alerts of the real server about real encoders; a failing alert server must not affect it. */
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest';
import { requireProgram } from '../../scripts/ensure-tools.ts';
import { AlertReceiver } from '../fakes/alert-receiver.ts';
import { Child } from '../harness/child.ts';
import { until } from '../harness/poll.ts';
import { publish } from '../harness/publisher.ts';
import { startServer, type TestServer } from '../harness/server.ts';
import { EventReader } from '../support/event-reader.ts';

const STATUS = '<Ingress><StreamStatus/></Ingress><Egress><StreamStatus/><LLHLSReady/><HLSReady/></Egress>';

let receiver: AlertReceiver;
beforeEach(async () => {
  receiver = await AlertReceiver.start();
});
afterEach(() => receiver.close());

async function start(rules: string, timeout = 3000): Promise<TestServer> {
  const head = `<Alert><Url>${receiver.url}</Url><SecretKey>${receiver.secretKey}</SecretKey><Timeout>${timeout}</Timeout>${rules}</Alert>`;
  const server = await startServer({ head, segmentDuration: 1, hlsSegmentDuration: 1 });
  onTestFinished(() => server.close());
  return server;
}

/** An encoder with few bits, a keyframe every ten seconds and B-frames. */
function poorEncoder(url: string): Child {
  const source = ['-re', '-f', 'lavfi', '-i', 'testsrc2=size=320x180:rate=15', '-f', 'lavfi', '-i', 'sine=sample_rate=48000'];
  const video = [
    '-c:v',
    'libx264',
    '-preset',
    'veryfast',
    '-bf',
    '2',
    '-g',
    '150',
    '-keyint_min',
    '150',
    '-sc_threshold',
    '0',
    '-b:v',
    '100k',
  ];
  const output = ['-pix_fmt', 'yuv420p', '-c:a', 'aac', '-b:a', '32k', '-f', 'flv', url];
  const child = new Child(requireProgram('ffmpeg'), ['-hide_banner', '-loglevel', 'warning', '-nostdin', ...source, ...video, ...output], {
    name: 'poor encoder',
  });
  onTestFinished(async () => void (await child.stop('SIGINT')));
  return child;
}

test('sends the events of a stream from its start to its end in the form of OvenMediaEngine', async () => {
  const server = await start(`<Rules>${STATUS}</Rules>`);
  const encoder = publish({ url: server.rtmp('live') });
  onTestFinished(async () => void (await encoder.stop()));
  await receiver.withCode('EGRESS_LLHLS_READY');
  await receiver.withCode('EGRESS_HLS_READY');
  const second = publish({ url: server.rtmp('live') });
  onTestFinished(async () => void (await second.stop()));
  await receiver.withCode('INGRESS_STREAM_CREATION_FAILED_DUPLICATE_NAME');
  await encoder.stop();
  await receiver.withCode('INGRESS_STREAM_DELETED');
  const { codes } = receiver;
  expect(codes[0]).toBe('INGRESS_STREAM_CREATED');
  const order = [
    'EGRESS_STREAM_CREATED',
    'EGRESS_STREAM_PREPARED',
    'EGRESS_LLHLS_READY',
    'EGRESS_STREAM_DELETED',
    'INGRESS_STREAM_DELETED',
  ];
  expect(codes.filter((code) => order.includes(code))).toEqual(order);
  expect(codes.filter((code) => code === 'INGRESS_STREAM_PREPARED')).toHaveLength(1);
  expect(receiver.wrong).toBe(0);
  const created = receiver.heard[0];
  expect(Object.keys(created ?? {})).toEqual(['messages', 'sourceInfo', 'sourceUri', 'type']);
  expect(created).toMatchObject({
    type: 'INGRESS',
    sourceUri: '#default#app/live',
    messages: [{ code: 'INGRESS_STREAM_CREATED', description: 'A new ingress stream has been created' }],
    sourceInfo: { name: 'live', sourceType: 'Rtmp', sourceUrl: expect.stringMatching(/^TCP:\/\/127\.0\.0\.1:\d+$/) },
  });
  const ready = await receiver.withCode('EGRESS_LLHLS_READY');
  const [video] = ready.sourceInfo.tracks;
  expect(video.video).toMatchObject({ codec: 'H264', width: 640, height: 360, hasBframes: false });
  // Alerts have numbers here, unlike answers of the API.
  expect([typeof video.video.bitrate, typeof video.video.framerateAvg]).toEqual(['number', 'number']);
});

test('sends a violated rule when it changes, also as a live event, and follows changes of the rules', async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'millrace-alerts-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = path.join(folder, 'AlertRules.xml');
  const write = (ingress: string): void => {
    writeFileSync(`${file}.new`, `<Rules><Ingress>${ingress}</Ingress></Rules>`);
    renameSync(`${file}.new`, file);
  };
  write(
    '<MinBitrate>1M</MinBitrate><MinFramerate>20</MinFramerate><MinWidth>640</MinWidth><MinSamplerate>44100</MinSamplerate><LongKeyFrameInterval/><HasBFrames/>',
  );
  const server = await start(`<RulesFile>${file}</RulesFile>`);
  const reader = await EventReader.open(`${server.api.base}/v1/events?types=alerts`, { authorization: server.api.authorization });
  onTestFinished(() => reader.close());
  poorEncoder(server.rtmp('poor'));
  const all = await receiver.told(({ messages }) => messages.length === 5);
  expect(all.messages.map(({ code }) => code)).toEqual([
    'INGRESS_FRAMERATE_LOW',
    'INGRESS_WIDTH_SMALL',
    'INGRESS_LONG_KEY_FRAME_INTERVAL',
    'INGRESS_HAS_BFRAME',
    'INGRESS_BITRATE_LOW',
  ]);
  expect(all.messages[1]?.description).toBe("The ingress stream's width (320) is smaller than the configured width (640)");
  expect(all.sourceUri).toBe('#default#app/poor');
  const { data } = await reader.of('alert.changed', ({ codes }) => codes.length === 5);
  expect(data).toMatchObject({ vhost: 'default', app: 'app', stream: 'poor', codes: all.messages.map(({ code }) => code) });
  // Each set of codes is reported once.
  expect(new Set(receiver.codes).size).toBe(receiver.codes.length);
  writeFileSync(file, '<Rules><Ingress><MinBitrate>much</MinBitrate></Ingress></Rules>');
  await until('the fault in the log', () => server.log.includes('the previous rules stay in force'));
  write('<HasBFrames/>');
  await receiver.told(({ messages }) => messages.length === 1 && messages[0]?.code === 'INGRESS_HAS_BFRAME' && receiver.heard.length > 1);
  write('<MaxWidth>1920</MaxWidth>');
  const good = await receiver.withCode('OK');
  expect(good).toMatchObject({ type: 'INGRESS', messages: [{ code: 'OK', description: 'The current status is good' }] });
  expect(receiver.wrong).toBe(0);
});

test('a server of alerts that hangs holds up neither streams nor the stop, and is counted', async () => {
  receiver.answer = () => undefined;
  const server = await start(`<Rules>${STATUS}</Rules>`, 60_000);
  const encoder = publish({ url: server.rtmp('live') });
  onTestFinished(async () => void (await encoder.stop()));
  await until('a playlist', async () => (await fetch(server.http('live', 'llhls.m3u8'))).status === 200);
  await until('alerts that wait', async () => {
    const answer = await fetch(`${server.api.base}/metrics`, { headers: { authorization: server.api.authorization } });
    return Number(/^millrace_alerts_waiting (\d+)$/m.exec(await answer.text())?.[1]) > 3;
  });
  expect(receiver.codes).toEqual(['INGRESS_STREAM_CREATED']);
  const { code } = await server.stop();
  expect(code).toBe(0);
  expect(server.log).not.toContain('exits: some of its parts have not stopped in time');
});
