import { expect, test } from 'vitest';
import { parseServerConfig } from '../../config/index.ts';
import { ipv6 } from './addresses.ts';

const own = (...addresses: readonly string[]) =>
  addresses.map((address) => ({ address, internal: address === '::1' || address === '127.0.0.1' }));
const config = (...ips: readonly string[]) => {
  const elements = ips.map((ip) => `<IP>${ip}</IP>`).join('');
  return parseServerConfig(`<Server version="8"><Type>origin</Type>${elements}<Bind></Bind></Server>`, 'S.xml', {}).config;
};

test.each([
  ['no IPv6 address, none wanted', ['*'], ['127.0.0.1', '192.0.2.7'], 'ok', 'not available on this machine'],
  ['no IPv6 address, but wanted', ['*', '::'], ['127.0.0.1', '192.0.2.7'], 'problem', 'to listen on IPv6'],
  ['link-local IPv6 only, none wanted', ['*'], ['::1', 'fe80::1'], 'ok', 'only loopback and link-local IPv6 addresses'],
  ['link-local IPv6 only, but wanted', ['::'], ['::1', 'fe80::1'], 'warning', 'and the server is configured to listen on IPv6'],
  ['reachable by IPv6, none wanted', ['*'], ['::1', '2001:db8::7'], 'ok', '2001:db8::7; the server listens on IPv4 only'],
  ['reachable by IPv6 and wanted', ['*', '::'], ['::1', 'fe80::1', '2001:db8::7'], 'ok', '2001:db8::7; the server listens on IPv6'],
] as const)('%s', (_what, ips, addresses, status, text) => {
  expect(ipv6(config(...ips), own(...addresses))).toMatchObject({ status, text: expect.stringContaining(text) });
});
