import { afterEach, expect, test } from 'vitest';
import { ControlServer } from '../../../test/fakes/control-server.ts';
import { RecordingLogger } from '../../../test/fakes/recording-logger.ts';
import type { AccessRequest, Denied, Passed } from '../../access/access-check.ts';
import type { AdmissionRecord } from '../../access/admission-webhooks.ts';
import { systemClock } from '../../util/clock.ts';
import { WebhookAdmissions } from './webhook-admissions.ts';

const REQUEST: AccessRequest = {
  ...{ direction: 'outgoing', protocol: 'llhls', url: 'http://a:1/b/c/llhls.m3u8' },
  client: { address: '192.0.2.1', port: 1, realIp: '192.0.2.1' },
};

const closings: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closings.splice(0).reverse()) await close();
});

async function start(limit = 2) {
  const control = await ControlServer.start();
  closings.push(() => control.close());
  const desk = new WebhookAdmissions({ clock: systemClock, logger: new RecordingLogger(), limit });
  closings.push(() => desk.stop());
  const enables = { providers: [], publishers: ['llhls', 'thumbnail'] };
  const settings = { controlServerUrl: control.url, secretKey: control.secretKey, timeout: 10_000, enables };
  desk.follow([{ name: 'v', access: { admissionWebhooks: settings } }]);
  const check = desk.check(settings, 'v');
  const ask = async (changes: Partial<AccessRequest> = {}): Promise<Passed | Denied> => await check.judge({ ...REQUEST, ...changes });
  return { control, desk, check, ask, settings };
}

test('asks the control server, and reports the end when the session of the ticket is over in all threads', async () => {
  const { control, desk, check, ask, settings } = await start();
  const covered = (['llhls', 'hls'] as const).map((protocol) => check.covers('outgoing', protocol));
  expect([...covered, check.covers('incoming', 'rtmp')]).toEqual([true, false, false]);
  control.answer = () => ({ allowed: true, new_url: 'http://a/b/d' });
  // The parts of the URL are of use in this thread only.
  const said = await ask({ parts: { base: 'http://a:1', tail: '/b/c' } });
  expect(said).toMatchObject({ admitted: true, newUrl: 'http://a:1/b/d', ticket: 1 });
  const { controlServerUrl, secretKey } = settings;
  const record = JSON.parse(desk.recordOf(1) ?? '') as AdmissionRecord;
  expect(record).toEqual({ vhost: 'v', settings: { controlServerUrl, secretKey }, request: REQUEST, newUrl: 'http://a:1/b/d' });
  expect(desk.figures).toMatchObject([{ requests: 1, allowed: 1, admitted: 1 }]);
  desk.over(1);
  desk.over(1);
  await control.told('', 'closing');
  expect([desk.recordOf(1), desk.size, desk.waiting]).toEqual([undefined, 0, 0]);
  expect(control.about('', 'closing')).toHaveLength(1);
});

test('an admission without a session ends at once; thumbnails and refused requests get no ticket', async () => {
  const { control, desk, ask } = await start();
  const said = await ask();
  if (said.admitted) said.closed?.();
  await control.told('', 'closing');
  expect(await ask({ protocol: 'thumbnail' })).not.toHaveProperty('ticket');
  control.answer = () => ({ allowed: false });
  expect(await ask()).toMatchObject({ admitted: false, code: 'webhook-refused' });
  expect(desk.size).toBe(0);
});

test('refuses requests when too many wait', async () => {
  const { control, desk, ask } = await start();
  const { promise: go, resolve } = Promise.withResolvers<void>();
  control.answer = async () => {
    await go;
    return { allowed: true };
  };
  const waiting = [ask(), ask()];
  expect(desk.waiting).toBe(2);
  expect(await ask()).toMatchObject({ admitted: false, code: 'webhook-busy' });
  resolve();
  expect(await Promise.all(waiting)).toMatchObject([{ admitted: true }, { admitted: true }]);
  expect(desk.waiting).toBe(0);
});

test('a stop refuses all waiting requests, and reports the ends of the others', async () => {
  const { control, desk, ask } = await start();
  await ask();
  control.answer = () => null;
  const waiting = ask();
  await control.told('', 'opening', 2);
  await Promise.all([desk.stop(), desk.stop()]);
  expect(await waiting).toMatchObject({ admitted: false });
  expect(control.about('', 'closing')).toHaveLength(1);
  expect(await ask()).toMatchObject({ admitted: false, code: 'webhook-closed' });
});
