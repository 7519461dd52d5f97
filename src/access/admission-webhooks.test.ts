import type { ServerResponse } from 'node:http';
import { afterEach, expect, test, vi } from 'vitest';
import { ControlServer } from '../../test/fakes/control-server.ts';
import { metricsText } from '../../test/fakes/metrics-text.ts';
import { RecordingLogger } from '../../test/fakes/recording-logger.ts';
import { until } from '../../test/harness/poll.ts';
import { readVirtualHost } from '../config/index.ts';
import { systemClock } from '../util/clock.ts';
import type { AccessRequest, Denied, Passed } from './access-check.ts';
import { AccessControls, type AccessSettings, accessSettingsOf, allChecks } from './access-controls.ts';
import { admissionMetrics } from './admission-metrics.ts';
import { AdmissionWebhooks } from './admission-webhooks.ts';
import { signUrl } from './signed-url.ts';

const REQUEST: AccessRequest = {
  ...{ direction: 'incoming', protocol: 'rtmp', url: 'rtmp://media.example:1935/app/live?key=SECRET' },
  client: { address: '192.0.2.7', port: 40_000, realIp: '198.51.100.9', userAgent: 'me/1', authorization: 'Bearer SECRET' },
};
/** Longer than any test here. */
const LONG_MS = 10_000;
const ALL = { providers: 'rtmp,srt,webrtc', publishers: 'webrtc,llhls,hls,thumbnail,srt' };

const closings: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closings.splice(0).reverse()) await close();
});

async function start({ timeout = LONG_MS, threads = 1, more = {} }: { timeout?: number; threads?: number; more?: object } = {}) {
  const control = await ControlServer.start();
  closings.push(() => control.close());
  const logger = new RecordingLogger();
  const webhooks = new AdmissionWebhooks({ clock: systemClock, logger, threads });
  closings.push(() => webhooks.stop());
  const settings = accessSettingsOf(
    readVirtualHost({
      name: 'v',
      admissionWebhooks: { controlServerUrl: control.url, secretKey: control.secretKey, timeout, enables: ALL },
      ...more,
    }).typed,
  );
  if (settings?.admissionWebhooks === undefined) throw new Error('there are no settings');
  webhooks.follow([{ name: 'v', access: settings }]);
  const check = webhooks.check(settings.admissionWebhooks);
  const ask = (changes: Partial<AccessRequest> = {}) => check.judge({ ...REQUEST, ...changes }) as Promise<Passed | Denied>;
  return { control, logger, webhooks, settings, check, ask };
}

const fail = (): never => {
  throw new Error('there are no settings');
};

const close = (said: Passed | Denied): void => {
  if (said.admitted) said.closed?.();
};

test('asks about a client once, and reports its end', async () => {
  const { control, ask } = await start();
  const said = await ask();
  expect(said).toMatchObject({ admitted: true, expiresAt: Number.POSITIVE_INFINITY, newUrl: undefined });
  expect(control.asked).toEqual([
    {
      client: { address: '192.0.2.7', port: 40_000, real_ip: '198.51.100.9', user_agent: 'me/1' },
      request: { direction: 'incoming', protocol: 'RTMP', status: 'opening', time: expect.any(String) as string, url: REQUEST.url },
    },
  ]);
  close(said);
  await control.told('', 'closing');
  expect(control.asked[1]?.request).toMatchObject({ status: 'closing', url: REQUEST.url, new_url: REQUEST.url });
  expect(control.wrong).toBe(0);
});

test('lifetime and new_url of the answer take effect', async () => {
  const { control, ask } = await start();
  control.answer = () => ({ allowed: true, lifetime: 60_000, new_url: 'rtmp://other.example/app/renamed' });
  const before = Date.now();
  const said = (await ask()) as Passed;
  expect(said.newUrl).toBe('rtmp://other.example:1935/app/renamed');
  expect(said.expiresAt).toBeGreaterThanOrEqual(before + 60_000);
  expect(said.expiresAt).toBeLessThanOrEqual(Date.now() + 60_000);
  said.closed?.();
  const [closing] = await control.told('', 'closing');
  expect(closing?.request.new_url).toBe('rtmp://other.example:1935/app/renamed');
});

test('a refused client gets the reason, and the server no end of it', async () => {
  const { control, ask } = await start();
  control.answer = () => ({ allowed: false, reason: 'not paid\r\n' });
  expect(await ask()).toEqual({
    ...{ admitted: false, code: 'webhook-refused', reason: 'the control server does not allow it' },
    said: 'not paid\\u000d\\u000a',
  });
  expect(control.asked).toHaveLength(1);
});

test('an image has no end', async () => {
  const { ask } = await start();
  expect(await ask({ direction: 'outgoing', protocol: 'thumbnail' })).not.toHaveProperty('closed');
});

const raw =
  (status: number, body: string, headers: Record<string, string> = {}) =>
  (response: ServerResponse) =>
    void response.writeHead(status, headers).end(body);

test.each([
  ['another status', raw(500, '{"allowed":true}')],
  ['201', raw(201, '{"allowed":true}')],
  ['a redirect', raw(302, '', { Location: '/elsewhere' })],
  ['no JSON', raw(200, 'not json')],
  ['no object', raw(200, '[true]')],
  ['nothing', raw(200, '')],
  ['no allowed', raw(200, '{"reason":"because"}')],
  ['allowed that is no boolean', raw(200, '{"allowed":"yes"}')],
  ['a lifetime that is not a number', raw(200, '{"allowed":true,"lifetime":"long"}')],
  ['a new_url that is not a URL', raw(200, '{"allowed":true,"new_url":"/etc/passwd"}')],
  ['ten megabytes', raw(200, `{"allowed":true,"x":"${'x'.repeat(10_000_000)}"}`)],
  [
    'a cut answer',
    (response: ServerResponse) => void response.writeHead(200, { 'Content-Length': '16' }).write('{"allowed":', () => response.destroy()),
  ],
])('%s refuses', async (_what, answer) => {
  const { control, ask, webhooks, logger } = await start();
  control.answer = () => answer;
  expect(await ask()).toMatchObject({ admitted: false, code: 'webhook-failed' });
  expect(await ask()).toMatchObject({ admitted: false, code: 'webhook-failed' });
  expect(webhooks.figures).toMatchObject([{ requests: 2, failed: 2, allowed: 0, refused: 0, inFlight: 0, admitted: 0 }]);
  // One line at first, and then one per minute.
  expect(logger.matching('a control server fails: whoever it is asked about is refused')).toHaveLength(1);
  expect(JSON.stringify(logger.lines)).not.toContain('SECRET');
});

test('a missing answer and an unreachable address refuse the client', async () => {
  const { control, ask } = await start({ timeout: 50 });
  control.answer = () => null;
  expect(await ask()).toMatchObject({ admitted: false, code: 'webhook-failed' });
  control.close();
  expect(await ask()).toMatchObject({ admitted: false, code: 'webhook-failed' });
});

test('asks 64 questions at once, holds 2048, and refuses and counts further ones', async () => {
  const { control, ask, webhooks } = await start();
  const { promise: go, resolve } = Promise.withResolvers<void>();
  control.answer = async () => {
    await go;
    return { allowed: true };
  };
  const all = Array.from({ length: 2050 }, () => ask());
  expect(await all[2049]).toMatchObject({ admitted: false, code: 'webhook-busy' });
  expect(await all[2048]).toMatchObject({ admitted: false, code: 'webhook-busy' });
  await until('the questions', () => control.open === 64, { deadlineMs: 5000 });
  expect(webhooks.figures).toMatchObject([{ requests: 2050, failed: 2, inFlight: 2048 }]);
  resolve();
  expect((await Promise.all(all)).filter(({ admitted }) => admitted)).toHaveLength(2048);
  expect(control.maxOpen).toBe(64);
});

test('each of several threads has a part of the limits', async () => {
  const { control, ask, webhooks } = await start({ threads: 4 });
  const { promise: go, resolve } = Promise.withResolvers<void>();
  control.answer = async () => {
    await go;
    return { allowed: true };
  };
  const all = Array.from({ length: 513 }, () => ask());
  expect(await all[512]).toMatchObject({ admitted: false, code: 'webhook-busy' });
  await until('the questions', () => control.open === 16, { deadlineMs: 5000 });
  expect(webhooks.figures).toMatchObject([{ requests: 513, failed: 1, inFlight: 512 }]);
  resolve();
  const said = await Promise.all(all);
  for (const one of said) close(one);
  await control.told('', 'closing', 512);
  expect(control.maxOpen).toBe(16);
});

test('a client admitted elsewhere is counted, and its end reported, as if it had been admitted here', async () => {
  const { control, webhooks, settings } = await start();
  const { admissionWebhooks = fail() } = settings;
  const ends = [undefined, 'http://a/b/c'].map((newUrl) => webhooks.adopt({ settings: admissionWebhooks, request: REQUEST, newUrl }));
  expect(webhooks.figures).toMatchObject([{ requests: 0, admitted: 2 }]);
  for (const end of ends) end();
  const told = await control.told('', 'closing', 2);
  expect(told.map(({ request }) => request.new_url)).toEqual([REQUEST.url, 'http://a/b/c']);
  expect(webhooks.figures).toMatchObject([{ admitted: 0 }]);
});

test('ends are sent while the server stops, and a dead control server delays that for a moment only', async () => {
  const { control, ask, webhooks } = await start();
  const said = await Promise.all(Array.from({ length: 200 }, () => ask()));
  control.closing = async () => {
    await new Promise((resolve) => setTimeout(resolve, 20));
    return {};
  };
  for (const one of said) close(one);
  await webhooks.stop();
  expect(control.about('', 'closing')).toHaveLength(200);
  const dead = await start();
  const others = await Promise.all(Array.from({ length: 200 }, () => dead.ask()));
  dead.control.closing = () => null;
  for (const one of others) close(one);
  const before = performance.now();
  await dead.webhooks.stop();
  expect(performance.now() - before).toBeLessThan(3000);
  const [figures] = dead.webhooks.figures;
  expect([figures?.closingsDelivered, figures?.closingsLost]).toEqual([0, 200]);
  // A line for the first failure, and one with their number.
  expect(dead.logger.matching('a control server fails: it does not hear of ends of sessions')).toHaveLength(2);
});

test('an open question is answered no when the server stops', async () => {
  const { control, ask, webhooks } = await start();
  control.answer = () => null;
  const said = ask();
  await control.told('', 'opening');
  await webhooks.stop();
  expect(await said).toMatchObject({ admitted: false });
});

test('a control server that is no longer configured is kept until all ends are reported', async () => {
  const { control, ask, webhooks } = await start();
  const said = await ask();
  webhooks.follow([{ name: 'v' }]);
  expect(await webhooks.judge('v', REQUEST)).toMatchObject({ admitted: false, code: 'no-virtual-host' });
  expect(webhooks.figures).toHaveLength(1);
  close(said);
  await control.told('', 'closing');
  await until('all ends are reported', () => webhooks.figures.length === 0, { deadlineMs: 5000 });
});

test('virtual hosts with the same control server share it', async () => {
  const { ask, webhooks, settings } = await start();
  const other = structuredClone(settings);
  webhooks.follow([
    { name: 'v', access: settings },
    { name: 'w', access: other },
  ]);
  await ask();
  expect(await webhooks.check(other.admissionWebhooks ?? fail()).judge(REQUEST)).toMatchObject({ admitted: true });
  expect(webhooks.figures).toMatchObject([{ requests: 2, admitted: 2 }]);
  const text = metricsText(admissionMetrics(() => webhooks.figures));
  expect(text).toMatch(/^millrace_admission_sessions\{server="http:\/\/127\.0\.0\.1:\d+\/admission"\} 2$/m);
  expect(text).toMatch(/^# TYPE millrace_admission_failures_total counter$/m);
  expect(metricsText(admissionMetrics(() => []))).toBe('');
  expect(await webhooks.judge('w', REQUEST)).toMatchObject({ admitted: true });
  expect(webhooks.figures).toMatchObject([{ requests: 3, admitted: 3 }]);
});

test('the signature of the URL is checked first, and the smaller limit of both applies', async () => {
  const keys = { policyQueryKeyName: 'policy', signatureQueryKeyName: 'signature', secretKey: 'k' };
  const { control, webhooks, settings } = await start({ more: { signedPolicy: { ...keys, enables: { providers: 'rtmp' } } } });
  const tell = vi.fn();
  const onFault = vi.fn();
  const checksOf = allChecks(systemClock, (config) => webhooks.check(config));
  const access = new AccessControls({ clock: systemClock, onFault, tell, checksOf });
  access.follow([{ name: 'v', hostNames: ['media.example'], access: settings as AccessSettings }]);
  const admit = (url: string) => access.admit({ host: 'media.example' }, { ...REQUEST, url });
  expect(await admit(REQUEST.url)).toMatchObject({ admitted: false, code: 'url-unsigned' });
  expect(control.asked).toEqual([]);
  const end = Date.now() + 60_000;
  const signed = signUrl(REQUEST.url, { url_expire: end, stream_expire: end }, keys);
  control.answer = () => ({ allowed: true, lifetime: 3_600_000 });
  expect(await admit(signed)).toMatchObject({ admitted: true, expiresAt: end });
  control.answer = () => ({ allowed: true, lifetime: 1000 });
  const shorter = await admit(signed);
  expect(shorter.admitted && shorter.expiresAt).toBeLessThan(end - 30_000);
  expect(control.asked.map(({ request }) => request.url)).toEqual([signed, signed]);
  // For a client that is refused in the end, or leaves before, the servers that admitted it are notified of the end.
  if (shorter.admitted) shorter.close();
  await control.told('', 'closing');
});
