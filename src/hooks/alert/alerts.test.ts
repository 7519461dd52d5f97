import { afterEach, beforeEach, expect, test } from 'vitest';
import { AlertReceiver } from '../../../test/fakes/alert-receiver.ts';
import { ManualClock } from '../../../test/fakes/manual-clock.ts';
import { RecordingLogger } from '../../../test/fakes/recording-logger.ts';
import { videoTrack } from '../../../test/fakes/synthetic-media.ts';
import type { AlertConfig, ServerConfig } from '../../config/index.ts';
import type { Application } from '../../core/application.ts';
import type { Notice } from '../../core/notices/notice.ts';
import { NoticeBoard } from '../../core/notices/notice-board.ts';
import { QueueRegistry } from '../../core/queue-registry.ts';
import { TrackMeter } from '../../core/track-meter.ts';
import { type Alerts, startAlerts } from './alerts.ts';

const PLACE = { vhost: 'default', app: 'app', stream: 'live' };

let receiver: AlertReceiver;
let clock: ManualClock;
let logger: RecordingLogger;
let notices: NoticeBoard;
let queues: QueueRegistry;
let alerts: Alerts | null;
let told: Notice[];

/** A stream and its output as far as alerts look at them. */
const meter = new TrackMeter();
const stream = {
  ...{ vhost: 'default', app: 'app', name: 'live', createdAt: 0, sourceType: 'RtspPull', started: true, hasSource: true, mediaEnd: 0 },
  ...{ sourceUrl: 'rtsp://me:SECRET@198.51.100.7:554/x', tracks: [videoTrack()], figures: () => meter },
};
const output = { name: 'out', tracks: [videoTrack()], failures: [] as string[], figures: () => meter };

beforeEach(async () => {
  receiver = await AlertReceiver.start();
  clock = new ManualClock();
  logger = new RecordingLogger();
  notices = new NoticeBoard({ clock });
  queues = new QueueRegistry(clock);
  told = [];
  alerts = null;
  output.failures = [];
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

test('queues that are full are told by name, and once more when none is', async () => {
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

test('an encode that is left out is told once, with the stream that it was to be made of', async () => {
  start({ egress: { transcodeStatus: {} } });
  begin();
  notices.post({ type: 'stream.ready', ...PLACE, output: 'out' });
  alerts?.look();
  output.failures = ["the encode 'hd' is left out: no encoder"];
  for (let n = 0; n < 3; n += 1) alerts?.look();
  const failed = await receiver.withCode('EGRESS_STREAM_CREATION_FAILED_ENCODER');
  expect(failed).toMatchObject({
    ...{ type: 'EGRESS', sourceUri: '#default#app/out', parentSourceUri: '#default#app/live', parentSourceInfo: { name: 'live' } },
    messages: [{ description: "the encode 'hd' is left out: no encoder" }],
  });
  expect(receiver.codes).toHaveLength(1);
});

test.each([
  [false, 'rtsp://***@198.51.100.7:554/x'],
  [true, 'rtsp://***@xxx.xxx.xxx.xxx:xxx/x'],
])('where addresses are hidden (%s), and credentials in any case', async (hidden, shown) => {
  start({ ingress: { streamStatus: {} } }, hidden);
  begin();
  expect((await receiver.withCode('INGRESS_STREAM_CREATED')).sourceInfo.sourceUrl).toBe(shown);
});

test('only what the rules name is told', async () => {
  start({ ingress: { minWidth: 10_000 } });
  begin();
  notices.post({ type: 'stream.ready', ...PLACE, output: 'out' });
  alerts?.look();
  notices.post({ type: 'stream.ended', ...PLACE, reason: 'deleted', detail: 'enough' });
  notices.post({ type: 'refusal.counted', ...PLACE, direction: 'incoming', protocol: 'rtmp', reason: 'duplicate-name', count: 1 });
  await alerts?.stop();
  expect(receiver.codes).toEqual(['INGRESS_WIDTH_SMALL']);
});

test('a URL that is none, and rules that are not there, are told in the log', () => {
  expect(start({}, false, '')).toBeNull();
  expect(start({}, false, 'ftp://x')).toBeNull();
  expect(start(undefined)).not.toBeNull();
  expect(logger.lines.map(({ message }) => message)).toEqual([
    'no alerts are sent: Alert/Url is no URL that begins with http:// or https://',
    'no alerts are sent: Alert/Url is no URL that begins with http:// or https://',
    'no alerts are sent: Alert has neither Rules nor RulesFile',
  ]);
});
