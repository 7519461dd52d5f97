/** The pages of the console about channels and configuration: their contents, and forms that the server validates. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { apiPath } from '../harness/api-client.ts';
import { ConsoleBrowser, type ConsolePage, type PageOptions } from '../harness/console-browser.ts';
import { until } from '../harness/poll.ts';
import { type FfmpegPublisher, publish } from '../harness/publisher.ts';
import { startServer, type TestServer } from '../harness/server.ts';

const DEADLINE = { deadlineMs: 40_000 };
const APP = apiPath.app('default', 'app');

let root: string;
let server: TestServer;
let browser: ConsoleBrowser;
let encoder: FfmpegPublisher;

beforeAll(async () => {
  root = mkdtempSync(path.join(tmpdir(), 'millrace-channels-'));
  const schedule = `<Schedule><MediaRootDir>${root}</MediaRootDir><ScheduleFilesDir>${root}/sch</ScheduleFilesDir></Schedule>`;
  const multiplex = `<Multiplex><MuxFilesDir>${root}/mux</MuxFilesDir></Multiplex>`;
  [server, browser] = await Promise.all([
    startServer({ providers: schedule + multiplex, head: `<Storage><AllowedRoots><Root>${root}</Root></AllowedRoots></Storage>` }),
    ConsoleBrowser.start(),
  ]);
  encoder = publish({ url: server.rtmp('live'), width: 640, height: 360, fps: 10, gop: 10, videoKbps: 200, withoutAudio: true });
  await encoder.sent(10);
});

afterAll(async () => {
  await encoder?.stop();
  await Promise.all([browser?.close(), server?.close()]);
  rmSync(root, { recursive: true, force: true });
});

async function open(hash: string, options: PageOptions = {}): Promise<ConsolePage> {
  const opened = await browser.open(`${server.api.base}/console/${hash}`, options);
  onTestFinished(() => opened.close());
  return opened;
}

test('a scheduled channel is created with a form, shows the current and the next item, is changed and deleted', async () => {
  const { page } = await open('#/channels');
  await page.getByText('There are none.').waitFor();
  await page.getByRole('button', { name: 'New scheduled channel' }).click();
  const form = page.getByRole('form', { name: 'New scheduled channel in default / app' });
  const url = form.getByRole('textbox', { name: 'url' });
  await url.fill('stream://default/app/live');
  await form.getByRole('textbox', { name: 'scheduled' }).fill('not a time');
  await form.getByRole('textbox', { name: 'name' }).last().fill('tv');
  await form.getByRole('button', { name: 'Create' }).click();
  // The server's error is shown at its field.
  const wrong = form.locator('[aria-invalid=true]');
  await expect.poll(() => wrong.inputValue()).toBe('not a time');
  expect(await form.getByRole('alert').textContent()).toMatch(/scheduled/);
  await form.getByRole('textbox', { name: 'scheduled' }).fill('2026-01-01T00:00:00Z');
  await form.getByRole('button', { name: 'Add item to programs[0].items' }).click();
  await form.getByRole('textbox', { name: 'url' }).last().fill('stream://default/app/live');
  await form.getByLabel('Add to programs[0].items[0]').selectOption('duration');
  await form.getByRole('textbox', { name: 'duration' }).fill('3600000');
  await form.getByLabel('Add to programs[0].items[1]').selectOption('duration');
  await form.getByRole('textbox', { name: 'duration' }).last().fill('3600000');
  await form.getByRole('button', { name: 'Create' }).click();
  const panel = page.getByLabel('Channel tv');
  await expect
    .poll(() => panel.textContent(), { timeout: DEADLINE.deadlineMs })
    .toMatch(/Now stream:\/\/default\/app\/live · .* of 1 h 0 min in program/);
  expect(await panel.textContent()).toContain('Next stream://default/app/live');
  expect(await panel.getByRole('list', { name: 'Items of the program' }).locator('li').count()).toBe(2);
  await panel.getByRole('button', { name: 'Change tv' }).click();
  const change = page.getByRole('form', { name: 'Change tv' });
  await change.getByRole('textbox', { name: 'name' }).first().fill('evening');
  await change.getByRole('button', { name: 'Change', exact: true }).click();
  const channel = () => server.api.get<{ programs: { name: string }[] }>(`${APP}/scheduledChannels/tv`);
  await until('the change', async () => ((await channel()).programs[0]?.name === 'evening' ? true : null), DEADLINE);
  await panel.getByRole('button', { name: 'Delete tv' }).click();
  await panel.getByRole('button', { name: 'Delete', exact: true }).click();
  await page.getByText('There are none.').waitFor();
  expect(await server.api.get(`${APP}/scheduledChannels`)).toEqual([]);
});

test('a multiplex channel shows its state and its sources', async () => {
  const sourceStreams = [
    { name: 'a', url: 'stream://default/app/live', trackMap: [{ sourceTrackName: 'bypass_video', newTrackName: 'v' }] },
  ];
  await server.api.create(`${APP}/multiplexChannels`, { outputStream: { name: 'mux' }, sourceStreams });
  onTestFinished(async () => void (await server.api.call('DELETE', `${APP}/multiplexChannels/mux`)));
  const { page } = await open('#/channels');
  await expect
    .poll(() => page.getByLabel('Channel mux').textContent(), { timeout: DEADLINE.deadlineMs })
    .toMatch(/Playing.*a: stream:\/\/default\/app\/live as v/);
});

test('definitions of a configuration file are marked read-only, and have no buttons', async () => {
  const { page } = await open('#/configuration');
  const host = page.getByLabel('Virtual host default');
  await host.getByText('read-only').waitFor();
  expect(await host.getByRole('button').count()).toBe(0);
  await host.getByText('application', { exact: true }).click();
  expect(await host.textContent()).toMatch(/llhls.*segmentDuration2/);
});

test('a virtual host and an application are created with forms, changed by their differences, and deleted', async () => {
  const { page } = await open('#/configuration');
  await page.getByRole('button', { name: 'New virtual host' }).click();
  const hostForm = page.getByRole('form', { name: 'New virtual host' });
  await hostForm.getByLabel('name', { exact: true }).fill('mine');
  await hostForm.getByRole('button', { name: 'Create' }).click();
  const host = page.getByLabel('Virtual host mine');
  await host.getByRole('button', { name: 'New application' }).click();
  const appForm = page.getByRole('form', { name: 'New application of mine' });
  await appForm.getByRole('button', { name: 'Create' }).click();
  await expect.poll(() => appForm.getByRole('alert').textContent()).toBe('[Config] application.name must not be empty');
  await appForm.getByLabel('name', { exact: true }).first().fill('show');
  await appForm.getByLabel('Add to publishers.llhls').selectOption('segmentDuration');
  await appForm.getByRole('textbox', { name: 'segmentDuration' }).fill('-1');
  await appForm.getByRole('button', { name: 'Create' }).click();
  await expect.poll(() => appForm.locator('[aria-invalid=true]').inputValue()).toBe('-1');
  expect(await appForm.getByRole('alert').textContent()).toContain('application.publishers.llhls.segmentDuration must be a number above 0');
  await appForm.getByRole('textbox', { name: 'segmentDuration' }).fill('4');
  await appForm.getByRole('button', { name: 'Create' }).click();
  const app = () => server.api.get<Record<string, unknown>>(apiPath.app('mine', 'show'));
  await host.locator('summary').filter({ hasText: 'application' }).click();
  expect(await app()).toMatchObject({ publishers: { llhls: { segmentDuration: 4 }, webrtc: {} } });
  let sent: unknown = null;
  page.on('request', (request) => {
    if (request.method() === 'PATCH') sent = request.postDataJSON();
  });
  await host.getByRole('button', { name: 'Change' }).click();
  const change = page.getByRole('form', { name: 'Change mine / show' });
  await change.getByRole('textbox', { name: 'segmentDuration' }).fill('5');
  await change.getByRole('button', { name: 'Remove publishers.webrtc' }).click();
  await change.getByRole('button', { name: 'Change and restart' }).click();
  await until('the change', async () => (JSON.stringify(await app()).includes('"segmentDuration":5') ? true : null), DEADLINE);
  expect(sent).toEqual({ publishers: { llhls: { segmentDuration: 5 }, webrtc: null } });
  expect((await app())['publishers']).toEqual({ llhls: { segmentDuration: 5 } });
  await host.getByRole('button', { name: 'Delete mine', exact: true }).click();
  await host.getByRole('button', { name: 'Delete', exact: true }).click();
  await until(
    'the virtual host is deleted',
    async () => ((await server.api.get<string[]>('/v1/vhosts')).includes('mine') ? null : true),
    DEADLINE,
  );
});

test('forms for output profiles, keys and pulled streams of an existing application show the errors of the server at the field', async () => {
  const names = { name: 'forms', host: { names: ['forms.test'] } };
  await server.api.create('/v1/vhosts', [names]);
  onTestFinished(async () => void (await server.api.call('DELETE', '/v1/vhosts/forms')));
  await server.api.create('/v1/vhosts/forms/apps', [
    { name: 'a', type: 'live', providers: { rtmp: {}, rtspPull: {} }, publishers: { llhls: {} } },
  ]);
  const { page } = await open('#/configuration');
  const host = page.getByLabel('Virtual host forms');
  await host.locator('summary').filter({ hasText: 'application' }).click();
  await host.getByRole('button', { name: 'New output profile' }).click();
  const form = page.getByRole('form');
  await form.getByRole('button', { name: 'Create' }).click();
  await expect.poll(() => form.getByRole('alert').textContent()).toMatch(/name/);
  expect(await form.locator('[aria-invalid=true]').inputValue()).toBe('');
  await form.locator('[aria-invalid=true]').fill('second');
  await form.getByRole('button', { name: 'Create' }).click();
  await form.waitFor({ state: 'detached' });
  await host.getByText('makes ${OriginStreamName}_new').waitFor();
  await host.getByRole('button', { name: 'New publish key' }).click();
  await form.getByLabel('name', { exact: true }).fill('studio');
  await form.getByRole('button', { name: 'Create' }).click();
  const key = await page.getByLabel('publish key', { exact: true }).inputValue();
  expect(key.length).toBeGreaterThan(15);
  await host.getByText('studio').waitFor();
  expect(JSON.stringify(await server.api.get('/v1/vhosts/forms/apps/a'))).toContain('"studio"');
  await host.getByRole('button', { name: 'Remove publish key studio' }).click();
  await host.getByRole('button', { name: 'Remove', exact: true }).click();
  await host.getByText('None: publishing needs no key.').waitFor();
  await host.getByRole('button', { name: 'Pull a stream' }).click();
  await form.getByLabel('name', { exact: true }).fill('a/b');
  await form.getByRole('button', { name: 'Pull', exact: true }).click();
  await expect.poll(() => form.locator('[aria-invalid=true]').inputValue()).toBe('a/b');
});

test.each([
  ['#/channels', 1280, 'light'],
  ['#/channels', 390, 'dark'],
  ['#/configuration', 1280, 'dark'],
  ['#/configuration', 390, 'light'],
] as const)('%s at %i px, %s, with an open form, has no violations found by axe, and fits', async (hash, width, scheme) => {
  const opened = await open(hash, { width, scheme });
  const { page } = opened;
  await page.getByRole('button', { name: hash === '#/channels' ? 'New scheduled channel' : 'New virtual host' }).click();
  await page.getByRole('form').waitFor();
  for (const summary of await page.locator('summary').all()) await summary.click();
  expect(await opened.violations()).toEqual([]);
  expect(await opened.overhang()).toBe(0);
  if (width === 390) expect(await opened.hiddenBeside()).toBe(0);
});
