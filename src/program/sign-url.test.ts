import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { isGenuine, queryParameter, readPolicy, readSignedUrl, urlSignature } from '../access/signed-url.ts';
import { defaultServerXml } from '../config/index.ts';
import { signedBy } from './sign-url.ts';

const NOW = Date.UTC(2026, 0, 1);
const URL_ = 'ws://media.example:3333/app/stream?transport=tcp';
const ENV = { MILLRACE_SECRET_KEY: 'k' };
let folder = '';

beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'millrace-sign-'));
  const policy = (
    name: string,
    host: string,
    secret: string,
  ): string => `<VirtualHost><Name>${name}</Name><Host><Names><Name>${host}</Name></Names></Host>
    <SignedPolicy><PolicyQueryKeyName>p</PolicyQueryKeyName><SignatureQueryKeyName>s</SignatureQueryKeyName><SecretKey>${secret}</SecretKey></SignedPolicy></VirtualHost>`;
  const hosts = `${policy('one', 'media.example', 'first')}${policy('two', '*.two.example', 'second')}`;
  writeFileSync(path.join(folder, 'Server.xml'), defaultServerXml().replace('<VirtualHosts>', `<VirtualHosts>${hosts}`));
  writeFileSync(path.join(folder, 'key'), 'from a file\n');
});

afterAll(() => rmSync(folder, { recursive: true }));

function sign(args: readonly string[], env: NodeJS.ProcessEnv = ENV): string {
  return signedBy([URL_, '--expire', '2h', ...args], NOW, env);
}

function policyIn(url: string, key = 'policy'): unknown {
  return readPolicy(queryParameter(url, key) ?? '');
}

test('durations count from now, times are absolute, and all options are in the policy', () => {
  const url = sign([
    '--activate',
    '90s',
    '--stream-expire',
    '2026-01-02T01:00:00+01:00',
    '--allow-ip',
    '192.0.2.0/24',
    '--real-ip',
    '198.51.100.7',
    '--for',
    'play',
  ]);
  expect(url.startsWith(`${URL_}&policy=`)).toBe(true);
  expect(policyIn(url)).toEqual({
    ...{ url_expire: NOW + 7_200_000, url_activate: NOW + 90_000, stream_expire: Date.UTC(2026, 0, 2) },
    ...{ allow_ip: '192.0.2.0/24', real_ip: '198.51.100.7', direction: 'outgoing' },
  });
  const keys = { policyQueryKeyName: 'policy', signatureQueryKeyName: 'signature', secretKey: 'k' };
  expect(isGenuine(readSignedUrl(url, keys), urlSignature(keys.secretKey))).toBe(true);
});

test('the key is taken from the virtual host of the URL, from a named one, from a variable or from a file', () => {
  const config = ['--config', path.join(folder, 'Server.xml')];
  const signedWith = (url: string, secretKey: string): boolean =>
    isGenuine(readSignedUrl(url, { policyQueryKeyName: 'p', signatureQueryKeyName: 's' }), urlSignature(secretKey));
  expect(signedWith(sign(config, {}), 'first')).toBe(true);
  expect(signedWith(sign([...config, '--vhost', 'two'], {}), 'second')).toBe(true);
  expect(signedWith(signedBy(['srt://two/app/stream', '--expire', '1h', ...config], NOW, {}), 'second')).toBe(true);
  expect(signedWith(signedBy(['rtmp://a.two.example:1935/app/stream', '--expire', '1h', ...config], NOW, {}), 'second')).toBe(true);
  expect(signedWith(sign(['--secret-file', path.join(folder, 'key'), '--policy-key', 'p', '--signature-key', 's']), 'from a file')).toBe(
    true,
  );
});

const MISTAKES: readonly (readonly [message: string, args: readonly string[], env: NodeJS.ProcessEnv])[] = [
  ['give one URL', ['ws://a:1/b/c'], ENV],
  ["--expire is a duration such as 90s, 30m, 2h or 7d, or a time such as 2030-01-31T12:00:00Z, not 'soon'", ['--expire', 'soon'], ENV],
  ['--expire is in the past', ['--expire', '2025-01-01T00:00:00Z'], ENV],
  ['--expire is a duration', ['--expire', '2030-01-01'], ENV],
  ['--activate is not before --expire', ['--activate', '3h'], ENV],
  ['--stream-expire is in the past', ['--stream-expire', '0s'], ENV],
  ["--allow-ip is an address or a network such as 192.0.2.0/24, not '192.0.2.0/40'", ['--allow-ip', '192.0.2.0/40'], ENV],
  ["--for is publish or play, not 'both'", ['--for', 'both'], ENV],
  ["the URL has 'transport' already", ['--policy-key', 'transport'], ENV],
  ['the secret key is empty', [], { MILLRACE_SECRET_KEY: '' }],
  ["has no virtual host 'none'", ['--vhost', 'none'], {}],
  ["virtual host 'default' of", ['--vhost', 'default'], {}],
];

test.each(MISTAKES)('a mistake is reported: %s', (message, args, env) => {
  const config = Object.keys(env).length === 0 ? ['--config', path.join(folder, 'Server.xml')] : [];
  expect(() => sign([...args, ...config], env)).toThrow(message);
});

test.each([
  ['http://media.example/app/stream/llhls.m3u8', 'the URL needs its port'],
  ['media.example:3333/app/stream', 'is not a complete URL'],
  ['ftp://media.example:3333/app/stream', 'is not a complete URL'],
  ['ws://media.example:3333', 'is not a complete URL'],
])('%s cannot be signed', (url, message) => {
  expect(() => signedBy([url, '--expire', '1h'], NOW, ENV)).toThrow(message);
  expect(() => signedBy([url], NOW, ENV)).toThrow(message);
});

test('a URL without an expiry is refused', () => {
  expect(() => signedBy([URL_], NOW, ENV)).toThrow('--expire is required');
});
