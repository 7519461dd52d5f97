/** `npm audit` with registries that answer, do not answer, or answer something else. */
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest';
import { audit, SKIPPED, verdictOf } from '../../scripts/audit.ts';

const ROOT = path.dirname(path.dirname(path.dirname(fileURLToPath(import.meta.url))));
const BULK = '/-/npm/v1/security/advisories/bulk';

let folder = '';
/** npm caches advisories, and must not cache these. */
const OWN: NodeJS.ProcessEnv = { npm_config_noproxy: '127.0.0.1' };
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'millrace-audit-'));
  OWN['npm_config_cache'] = folder;
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Starts a registry; resolves with the environment that makes npm use it. */
async function registry(answer: RequestListener): Promise<NodeJS.ProcessEnv> {
  const server = createServer((request, response) => {
    request.resume();
    answer(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  const { port } = server.address() as AddressInfo;
  return { ...OWN, npm_config_registry: `http://127.0.0.1:${port}/` };
}

function advisories(severity: string): RequestListener {
  const advisory = { id: 1, url: 'https://advisories.test/1', title: 'frames of any size', severity, vulnerable_versions: '>=0.0.0' };
  return (request, response) => {
    response.setHeader('Content-Type', 'application/json');
    if (request.url === BULK) response.end(JSON.stringify({ ws: [advisory] }));
    else response.end(JSON.stringify({ name: 'ws', 'dist-tags': { latest: '8.23.0' }, versions: {} }));
  };
}

test('a high-severity vulnerability of a production dependency is reported with its name', async () => {
  const { code, lines } = await audit(ROOT, await registry(advisories('high')));
  expect([code, lines]).toEqual([1, [expect.stringMatching(/^ws .*: high, frames of any size \(https:\/\/advisories\.test\/1\)$/)]]);
});

test('a low-severity vulnerability, or none, passes', async () => {
  expect((await audit(ROOT, await registry(advisories('low')))).code).toBe(0);
  const none = await registry((_request, response) => response.setHeader('Content-Type', 'application/json').end('{}'));
  expect(await audit(ROOT, none)).toEqual({ code: 0, lines: [expect.stringMatching(/^no known vulnerability/)] });
});

test('a registry without advisories skips the check', async () => {
  const mirror = await registry((_request, response) => response.writeHead(405).end());
  const { code, lines } = await audit(ROOT, mirror);
  expect([code, lines]).toEqual([SKIPPED, [expect.stringMatching(/^skipped: the registry does not answer \(.*405/)]]);
});

test('an unreachable registry skips the check', async () => {
  expect(await audit(ROOT, { ...OWN, npm_config_registry: 'http://127.0.0.1:9/' })).toEqual({
    code: SKIPPED,
    lines: [expect.stringMatching(/^skipped: the registry does not answer/)],
  });
});

test('a silent registry skips the check', async () => {
  const silent = await registry(() => undefined);
  expect(await audit(ROOT, silent, 2000)).toEqual({ code: SKIPPED, lines: ['skipped: the registry does not answer (nothing within 2 s)'] });
});

test.each(['', 'npm error', 'null', '[]', '{"vulnerabilities":{}}'])('an invalid answer skips the check: %s', (text) => {
  expect(verdictOf(text).code).toBe(SKIPPED);
});
