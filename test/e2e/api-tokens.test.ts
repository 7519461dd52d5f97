/** Clients that send a token to the API without knowing Millrace: curl by its manual, and a browser that prompts for a password. */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { requireProgram } from '../../scripts/ensure-tools.ts';
import { launchChromium } from '../harness/page-browser.ts';
import { startServer, type TestServer } from '../harness/server.ts';

const run = promisify(execFile);
const FULL = 'full-1f0c';
const READER = 'reader-77aa';
const HASHED = `sha256:${createHash('sha256').update(READER).digest('hex')}`;

async function start(): Promise<TestServer> {
  const accessTokens = `<Token><Name>dashboard</Name><Value>${HASHED}</Value></Token><Token><Name>unset</Name><Value></Value></Token>`;
  const server = await startServer({ accessToken: FULL, accessTokens });
  onTestFinished(() => server.close());
  return server;
}

test('curl', async () => {
  const server = await start();
  const curl = async (...args: readonly string[]): Promise<number> => {
    const { stdout } = await run(requireProgram('curl'), [
      '-s',
      '-o',
      '/dev/null',
      '-w',
      '%{http_code}',
      '--noproxy',
      '*',
      '-m',
      '30',
      ...args,
    ]);
    return Number(stdout);
  };
  const url = `${server.api.base}/v1/version`;
  for (const token of [FULL, READER]) {
    for (const user of [`${token}:`, `:${token}`, `x:${token}`]) expect(await curl('-u', user, url), user).toBe(200);
    expect(await curl('--oauth2-bearer', token, url)).toBe(200);
    expect(await curl('-H', `Authorization: Basic ${Buffer.from(token).toString('base64')}`, url)).toBe(200);
    expect(await curl(url.replace('://', `://x:${token}@`))).toBe(200);
  }
  expect(await curl('-u', ':wrong', url)).toBe(401);
  expect(await curl('-u', ':', url)).toBe(401);
  expect(await curl(url)).toBe(401);
  const made = JSON.stringify([{ name: 'made', host: { names: ['made'] } }]);
  expect(await curl('-u', `:${READER}`, '-d', made, `${server.api.base}/v1/vhosts`)).toBe(403);
  expect(await curl('-u', `:${FULL}`, '-d', made, `${server.api.base}/v1/vhosts`)).toBe(200);
  expect(await curl('-u', `:${READER}`, '-X', 'DELETE', `${server.api.base}/v1/vhosts/made`)).toBe(403);
});

test('a browser', async () => {
  const server = await start();
  const browser = await launchChromium(['--no-sandbox', '--disable-gpu']);
  onTestFinished(() => browser.close());
  const url = `${server.api.base}/v1/version`;
  const statusFor = async (password?: string): Promise<number | undefined> => {
    const httpCredentials = password === undefined ? {} : { httpCredentials: { username: 'anybody', password } };
    const context = await browser.newContext(httpCredentials);
    const answer = await (await context.newPage()).goto(url).catch(() => null);
    await context.close();
    return answer?.status();
  };
  expect(await statusFor(READER)).toBe(200);
  expect(await statusFor('wrong')).toBe(401);
});
