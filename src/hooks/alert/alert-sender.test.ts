import { afterEach, beforeEach, expect, test } from 'vitest';
import { AlertReceiver } from '../../../test/fakes/alert-receiver.ts';
import { metricsText } from '../../../test/fakes/metrics-text.ts';
import { RecordingLogger } from '../../../test/fakes/recording-logger.ts';
import { until } from '../../../test/harness/poll.ts';
import { systemClock } from '../../util/clock.ts';
import { alertMetrics } from './alert-metrics.ts';
import { AlertSender, MAX_WAITING } from './alert-sender.ts';

const OFTEN = { everyMs: 5 };

let receiver: AlertReceiver;
let logger: RecordingLogger;
let sender: AlertSender;

const make = (url = receiver.url, timeoutMs = 5000): AlertSender => {
  sender = new AlertSender({ url, secretKey: receiver.secretKey, timeoutMs, clock: systemClock, logger, pausesMs: [1, 1] });
  return sender;
};
const alert = (n: number): object => ({ messages: [{ code: `${n}`, description: 'é' }], type: 'INGRESS' });

beforeEach(async () => {
  receiver = await AlertReceiver.start();
  logger = new RecordingLogger();
});
afterEach(async () => {
  await sender.stop(0);
  receiver.close();
});

test('alerts are sent signed, sequentially and in order', async () => {
  make();
  for (let n = 0; n < 20; n += 1) sender.push(alert(n));
  await until('20 delivered', () => sender.figures.delivered === 20, OFTEN);
  expect(receiver.codes).toEqual(Array.from({ length: 20 }, (_, n) => `${n}`));
  expect(receiver.wrong).toBe(0);
  expect(receiver.headers[0]).toMatchObject({ 'content-type': 'application/json', accept: 'application/json' });
  expect(sender.figures).toEqual({ delivered: 20, unwelcome: 0, failed: 0, dropped: 0, waiting: 0 });
});

test.each([
  ['denies', (response: Parameters<AlertReceiver['answer']>[0]) => response.writeHead(403).end('no')],
  ['lies', (response: Parameters<AlertReceiver['answer']>[0]) => response.end('<html>')],
  ['redirects', (response: Parameters<AlertReceiver['answer']>[0]) => response.writeHead(302, { Location: '/x' }).end()],
])('an alert to a server that %s is not sent again', async (_what, answer) => {
  receiver.answer = answer;
  make();
  for (let n = 0; n < 3; n += 1) sender.push(alert(n));
  await until('3 delivered', () => sender.figures.delivered === 3, OFTEN);
  expect(receiver.codes).toEqual(['0', '1', '2']);
  expect(sender.figures).toMatchObject({ unwelcome: 3, failed: 0 });
  expect(logger.lines.map(({ message }) => message)).toEqual(['the server of alerts fails: it does not hear of them']);
});

test('a failing connection is retried twice, then the alert has failed', async () => {
  receiver.answer = (response, count) => {
    // Without this header the next alert would use the connection again, and a failing reused connection is retried once more.
    if (count === 3) response.writeHead(200, { Connection: 'close' }).end('{}');
    else response.destroy();
  };
  make();
  sender.push(alert(1));
  await until('1 delivered', () => sender.figures.delivered === 1, OFTEN);
  sender.push(alert(2));
  await until('1 failed', () => sender.figures.failed === 1, OFTEN);
  expect(receiver.codes).toEqual(['1', '1', '1', '2', '2', '2']);
});

test('an unreachable server fails its alerts', async () => {
  const { url } = receiver;
  receiver.close();
  make(url);
  sender.push(alert(1));
  await until('1 failed', () => sender.figures.failed === 1, OFTEN);
});

test('while the server hangs 256 alerts wait, and newer alerts replace the oldest', async () => {
  receiver.answer = () => undefined;
  make();
  for (let n = 0; n < MAX_WAITING + 11; n += 1) sender.push(alert(n));
  await until('1 alerts', () => receiver.heard.length === 1, OFTEN);
  expect(sender.figures).toMatchObject({ dropped: 10, waiting: MAX_WAITING + 1, delivered: 0 });
  receiver.answer = (response) => response.end('{}');
  // The first alert is lost with its connection.
  receiver.close();
  await sender.stop(0);
  expect(sender.figures.waiting).toBe(0);
  expect(metricsText(alertMetrics(() => sender.figures))).toContain('\nmillrace_alerts_dropped_total 10\n');
});

test('an attempt without an answer in time has failed', async () => {
  receiver.answer = (response, count) => {
    if (count === 2) response.end('{}');
  };
  make(receiver.url, 50);
  sender.push(alert(1));
  await until('1 delivered', () => sender.figures.delivered === 1, OFTEN);
  expect(receiver.codes).toEqual(['1', '1']);
});

test('a stop waits for deliverable alerts, and not for others', async () => {
  make();
  for (let n = 0; n < 5; n += 1) sender.push(alert(n));
  await sender.stop(5000);
  expect(sender.figures).toMatchObject({ delivered: 5, waiting: 0 });
  sender.push(alert(9));
  expect(sender.figures).toMatchObject({ delivered: 5, waiting: 0 });
  receiver.answer = () => undefined;
  make();
  for (let n = 0; n < 5; n += 1) sender.push(alert(n));
  await until('6 alerts', () => receiver.heard.length === 6, OFTEN);
  await sender.stop(20);
  expect(sender.figures).toMatchObject({ delivered: 0, failed: 5, waiting: 0 });
});
