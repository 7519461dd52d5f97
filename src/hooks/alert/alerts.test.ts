import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest';
import { AlertReceiver } from '../../../test/fakes/alert-receiver.ts';
import { ManualClock } from '../../../test/fakes/manual-clock.ts';
import { RecordingLogger } from '../../../test/fakes/recording-logger.ts';
import { videoTrack } from '../../../test/fakes/synthetic-media.ts';
import { type AlertConfig, readOutputProfile, type ServerConfig } from '../../config/index.ts';
import type { Application } from '../../core/application.ts';
import type { Notice } from '../../core/notices/notice.ts';
import { NoticeBoard } from '../../core/notices/notice-board.ts';
import type { LeftOut } from '../../core/outbound-stream.ts';
import { QueueRegistry } from '../../core/queue-registry.ts';
import type { LeftOutProfile } from '../../core/stream-outputs.ts';
import { TrackMeter } from '../../core/track-meter.ts';
import { type Alerts, startAlerts } from './alerts.ts';

const PROFILE = readOutputProfile({ name: 'p', outputStreamName: 'out' }).typed;
const PLACE = { vhost: 'default', app: 'app', stream: 'live' };

let receiver: AlertReceiver;
let clock: ManualClock;
let logger: RecordingLogger;
let notices: NoticeBoard;
let queues: QueueRegistry;
let alerts: Alerts | null;
let told: Notice[];

/** The members of a stream and its output that alerts read. */
const meter = new TrackMeter();
const stream = {
  ...{
    vhost: 'default',
    app: 'app',
    name: 'live',
    createdAt: 0,
    sourceType: 'RtspPull',
    started: true,
    source: { present: true },
    mediaEnd: 0,
  },
  ...{ sourceUrl: 'rtsp://me:SECRET@198.51.100.7:554/x', tracks: [videoTrack()], figures: () => meter },
  leftOut: [] as LeftOutProfile[],
};
const output = { name: 'out', tracks: [videoTrack()], failures: [] as LeftOut[], figures: () => meter };

beforeEach(async () => {
  receiver = await AlertReceiver.start();
  clock = new ManualClock();
  logger = new RecordingLogger();
  notices = new NoticeBoard({ clock });
  queues = new QueueRegistry(clock);
  told = [];
  alerts = null;
  output.failures = [];
  stream.leftOut = [];
  notices.watch(({ notice }) => told.push(notice));
});
afterEach(async () => {
  await alerts?.stop();
  notices.close();
  receiver.close();
});

function start(rules: AlertConfig['rules'], privacyProtection = false, url = receiver.url): Alerts | null {
  const config = { alert: { url, secretKey: receiver.secretKey, timeout: 5000, rules }, privacyProtection } as unknown as ServerConfig;
  const application = { stream: () => stream, outbound: () => output } as unknown as Application;
  const segments = { llhls: () => undefined, hls: () => undefined };
  alerts = startAlerts(config, { notices, queues, clock, logger, segments, application: () => application });
  return alerts;
}

const begin = (): void => notices.post({ type: 'stream.created', ...PLACE, sourceType: 'RtspPull', sourceUrl: stream.sourceUrl });

test('full queues are named, and their recovery is sent once', async () => {
  start({ internalQueueCongestion: {} });
  const queue = queues.create<number>({ urn: 'mngq:v=#default#app:s=/live:p=imr:r=indicator', type: 'Packet', threshold: 2 });
  for (let n = 0; n < 2; n += 1) {
    queue.push(n);
    alerts?.look();
  }
  alerts?.look();
  const full = await receiver.withCode('INTERNAL_QUEUE_CONGESTION');
  expect(full).toMatchObject({ type: 'INTERNAL_QUEUE', internalQueues: [{ urn: queue.urn, size: 2, threshold: 2, type: 'Packet' }] });
  queue.shift();
  alerts?.look();
  alerts?.look();
  expect(await receiver.withCode('OK')).toMatchObject({ type: 'INTERNAL_QUEUE', internalQueues: [] });
  expect(receiver.codes).toEqual(['INTERNAL_QUEUE_CONGESTION', 'OK']);
  expect(told).toMatchObject([
    { type: 'alert.changed', codes: ['INTERNAL_QUEUE_CONGESTION'] },
    { type: 'alert.changed', codes: ['OK'] },
  ]);
});

test.each([
  ['decoder', 'EGRESS_STREAM_CREATION_FAILED_DECODER'],
  ['encoder', 'EGRESS_STREAM_CREATION_FAILED_ENCODER'],
  ['filter', 'EGRESS_STREAM_CREATION_FAILED_FILTER'],
  ['decoding', 'EGRESS_TRANSCODE_FAILED_DECODING'],
  ['encoding', 'EGRESS_TRANSCODE_FAILED_ENCODING'],
  ['filtering', 'EGRESS_TRANSCODE_FAILED_FILTERING'],
] as const)('an encode left out for its %s is sent once, with its source stream', async (fault, code) => {
  start({ egress: { transcodeStatus: {} } });
  begin();
  notices.post({ type: 'stream.ready', ...PLACE, output: 'out' });
  alerts?.look();
  const facts = { module: 'x264', errors: { count: 3, withinMs: 40 } };
  const sentence = "the encode 'hd' is left out: no encoder";
  output.failures = [{ sentence, fault, facts, trackId: 1, sourceTrackId: 0, profile: PROFILE, kind: 'video' }];
  for (let n = 0; n < 3; n += 1) alerts?.look();
  const failed = await receiver.withCode(code);
  expect(failed).toMatchObject({
    ...{ type: 'EGRESS', sourceUri: '#default#app/out', parentSourceUri: '#default#app/live', parentSourceInfo: { name: 'live' } },
    messages: [{ description: sentence }],
  });
  const isDecoder = fault.startsWith('decod');
  expect(failed.extraInfo).toEqual({
    codecModule: { displayName: 'x264 video', isDecoder, isEncoder: !isDecoder, isHwAccel: false, mediaType: 'Video', module: 'x264' },
    ...{ errorCount: 3, errorEvaluationInterval: 40, outputProfile: PROFILE, parentSourceTrackId: 0, sourceTrackId: 1 },
  });
  expect(receiver.codes).toHaveLength(1);
});

test('unknown details of a fault are left out', async () => {
  start({ egress: { transcodeStatus: {} } });
  begin();
  notices.post({ type: 'stream.ready', ...PLACE, output: 'out' });
  output.failures = [{ sentence: 'x', fault: 'encoder', facts: {}, trackId: 1, sourceTrackId: 0, profile: PROFILE, kind: 'audio' }];
  alerts?.look();
  const { extraInfo } = await receiver.withCode('EGRESS_STREAM_CREATION_FAILED_ENCODER');
  expect(Object.keys(extraInfo ?? {})).toEqual(['outputProfile', 'parentSourceTrackId', 'sourceTrackId']);
});

test('an output profile that makes no stream is sent once', async () => {
  start({ egress: { transcodeStatus: {} } });
  begin();
  alerts?.look();
  stream.leftOut = [{ output: 'live', profile: PROFILE, sentence: "the output profile 'p' makes no stream" }];
  for (let n = 0; n < 3; n += 1) alerts?.look();
  expect(await receiver.withCode('EGRESS_STREAM_CREATION_FAILED_OUTPUT_PROFILE')).toMatchObject({
    ...{ type: 'EGRESS', sourceUri: '#default#app/live', sourceInfo: { name: 'live', sourceType: 'Transcoder', tracks: [] } },
    ...{ parentSourceUri: '#default#app/live', parentSourceInfo: { name: 'live', sourceType: 'RtspPull' } },
    ...{ extraInfo: { outputProfile: PROFILE }, messages: [{ description: "the output profile 'p' makes no stream" }] },
  });
  expect(receiver.codes).toHaveLength(1);
});

test.each([
  [false, 'rtsp://***@198.51.100.7:554/x'],
  [true, 'rtsp://***@xxx.xxx.xxx.xxx:xxx/x'],
])('addresses are hidden with PrivacyProtection (%s), and credentials always', async (hidden, shown) => {
  start({ ingress: { streamStatus: {} } }, hidden);
  begin();
  expect((await receiver.withCode('INGRESS_STREAM_CREATED')).sourceInfo.sourceUrl).toBe(shown);
});

test('only events that the rules name are reported', async () => {
  start({ ingress: { minWidth: 10_000 } });
  begin();
  notices.post({ type: 'stream.ready', ...PLACE, output: 'out' });
  alerts?.look();
  notices.post({ type: 'stream.ended', ...PLACE, reason: 'deleted', detail: 'enough' });
  notices.post({ type: 'refusal.counted', ...PLACE, direction: 'incoming', protocol: 'rtmp', reason: 'duplicate-name', count: 1 });
  await alerts?.stop();
  expect(receiver.codes).toEqual(['INGRESS_WIDTH_SMALL']);
});

test('an invalid URL and missing rules are logged', () => {
  expect(start({}, false, '')?.figures).toBeNull();
  expect(start({}, false, 'ftp://x')?.figures).toBeNull();
  expect(start(undefined)?.figures).not.toBeNull();
  expect(logger.lines.map(({ message }) => message)).toEqual([
    'no alerts are sent: Alert/Url must begin with http:// or https://',
    'no alerts are sent: Alert/Url must begin with http:// or https://',
    'no alerts are sent: Alert has neither Rules nor RulesFile',
  ]);
});

test('changed settings apply to the existing streams', async () => {
  const other = await AlertReceiver.start();
  onTestFinished(() => other.close());
  const config = (url: string, rules: NonNullable<AlertConfig['rules']>): AlertConfig => ({
    url,
    secretKey: receiver.secretKey,
    timeout: 5000,
    rules,
  });
  start(undefined);
  alerts?.amend(undefined);
  begin();
  expect(alerts?.figures).toBeNull();
  alerts?.amend(config(receiver.url, { ingress: { minWidth: 10_000, streamStatus: {} } }));
  alerts?.look();
  await receiver.withCode('INGRESS_WIDTH_SMALL');
  alerts?.amend(config(receiver.url, { ingress: { streamStatus: {} } }));
  alerts?.look();
  // The new rules do not judge the width, so the fault is over.
  await receiver.withCode('OK');
  alerts?.amend(config(other.url, { ingress: { streamStatus: {} } }));
  notices.post({ type: 'stream.ended', ...PLACE, reason: 'deleted', detail: 'enough' });
  await other.withCode('INGRESS_STREAM_DELETED');
  // The stream existed before the other server, so its creation is not reported there.
  expect([receiver.codes, other.codes]).toEqual([['INGRESS_WIDTH_SMALL', 'OK'], ['INGRESS_STREAM_DELETED']]);
});
