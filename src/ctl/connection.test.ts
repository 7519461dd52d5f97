import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { serverXml } from '../../test/harness/server-xml.ts';
import { UsageProblem } from './command.ts';
import { connect } from './connection.ts';

let folder: string;
let state: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'millrace-connection-'));
  state = path.join(folder, 'state');
  mkdirSync(state);
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const PORTS = { rtmp: 1935, http: 3333, api: 8099, ice: 10000, relay: 3478 };

function configured(accessToken = '', change = (xml: string) => xml): string {
  const file = path.join(folder, 'Server.xml');
  writeFileSync(file, change(serverXml(PORTS, { accessToken })));
  return file;
}

function keptToken(text: string): void {
  writeFileSync(path.join(state, 'access-token'), text);
}

function connected(options: Readonly<Record<string, string>>, env: NodeJS.ProcessEnv = {}) {
  return connect((name) => options[name], env).client;
}

/** The `Authorization` header that the client sends to a server with these options. */
async function sentBy(options: Readonly<Record<string, string>>, env: NodeJS.ProcessEnv = {}): Promise<string | undefined> {
  let sent: string | undefined;
  const server: Server = createServer((request, response) => {
    sent = request.headers.authorization;
    response.setHeader('content-type', 'application/json').end('{"message":"OK","statusCode":200}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  try {
    await connected(options, { MILLRACE_API: url, ...env }).request('GET', '/v1/vhosts');
    return sent;
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

test.each([
  ['127.0.0.1', 'http://127.0.0.1:8099'],
  ['*', 'http://127.0.0.1:8099'],
  ['::', 'http://[::1]:8099'],
  ['fd00::7', 'http://[fd00::7]:8099'],
])('a server of this machine that listens at %s is asked at %s', (ip, url) => {
  const config = configured('secret', (xml) => xml.replace('<IP>127.0.0.1</IP>', `<IP>${ip}</IP>`));
  expect(connected({ config }).url).toBe(url);
});

test('the address of the API precedes that of the server, and a TLS port is used when there is no other', () => {
  const tls = '<TLS><CertPath>cert.pem</CertPath><KeyPath>key.pem</KeyPath></TLS>';
  const alone = configured('secret', (xml) =>
    xml
      .replace('<API><Port>8099</Port>', '<API><IP>127.0.0.9</IP><TLSPort>8100</TLSPort>')
      .replace('<Names><Name>*</Name></Names>', `<Names><Name>*</Name></Names>${tls}`),
  );
  expect(connected({ config: alone }).url).toBe('https://127.0.0.9:8100');
});

test('a disabled API, and an unusable configuration, require an address', () => {
  const off = configured('secret', (xml) => xml.replace('<Port>8099</Port>', ''));
  expect(() => connected({ config: off })).toThrow(/has no port of the API .*--api/);
  const broken = configured('secret', () => '<Server>');
  expect(() => connected({ config: broken })).toThrow(/Server.xml cannot be used, so give the address of the API with --api/);
  expect(() => connected({ config: path.join(folder, 'none.xml') })).toThrow(UsageProblem);
});

test('options override the environment, which overrides the files of this machine', async () => {
  const config = configured('of-the-file');
  const file = path.join(folder, 'token');
  writeFileSync(file, 'of-a-file\n');
  keptToken('of-the-state');
  expect(await sentBy({ token: 'given', state }, { MILLRACE_TOKEN: 'of-the-environment' })).toBe('Bearer given');
  expect(await sentBy({ 'token-file': file }, { MILLRACE_TOKEN: 'of-the-environment' })).toBe('Bearer of-a-file');
  expect(await sentBy({ config, state }, { MILLRACE_TOKEN: 'of-the-environment' })).toBe('Bearer of-the-environment');
  expect(await sentBy({ config, state })).toBe('Bearer of-the-file');
  expect(await sentBy({ state })).toBe('Bearer of-the-state');
  expect(connected({ api: 'http://10.0.0.1:1', token: 'x' }, { MILLRACE_API: 'http://10.0.0.2:1' }).url).toBe('http://10.0.0.1:1');
});

test('the token of this machine is never sent to a given address', () => {
  keptToken('of-the-state');
  expect(() => connected({ api: 'http://192.0.2.1:8081' })).toThrow('http://192.0.2.1:8081 needs its access token');
  expect(() => connected({}, { MILLRACE_API: 'http://192.0.2.1:8081', MILLRACE_TOKEN: '' })).toThrow('needs its access token');
});

test('a hash is refused as a token, and a missing or empty token is reported with its file', () => {
  const hashed = configured(`sha256:${'a'.repeat(64)}`);
  expect(() => connected({ config: hashed, state })).toThrow(/only a hash of the access token/);
  const config = configured();
  expect(() => connected({ config, state })).toThrow(/access-token cannot be read: ENOENT.* --token-file or MILLRACE_TOKEN/);
  keptToken('\n');
  expect(() => connected({ config, state })).toThrow(/access-token is empty/);
  expect(() => connected({ config, 'token-file': path.join(folder, 'none') })).toThrow(/none cannot be read/);
});

test.each([
  [{ api: '127.0.0.1:8081', token: 'x' }, /'127.0.0.1:8081' is not an address of an API/],
  [{ api: 'ftp://127.0.0.1', token: 'x' }, /is not an address/],
  [{ api: 'http://127.0.0.1', token: 'a b' }, /characters that are not allowed in a header/],
  [{ api: 'http://127.0.0.1', token: 'x', 'token-file': 'y' }, /not both/],
  [{ api: 'http://127.0.0.1', token: 'x', timeout: 'soon' }, /--timeout is a number of seconds, not 'soon'/],
  [{ api: 'http://127.0.0.1', token: 'x', timeout: '0' }, /--timeout/],
])('%j is refused', (options, sentence) => {
  expect(() => connected(options as unknown as Record<string, string>)).toThrow(sentence);
  expect(() => connected(options as unknown as Record<string, string>)).toThrow(UsageProblem);
});
