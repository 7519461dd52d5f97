import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parseServerConfig, sealed } from '../config/index.ts';
import { keepRunningConfig, readRunningConfig } from './running-config.ts';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'millrace-running-config-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

const application = (name: string) =>
  `<Application><Name>${name}</Name><Type>live</Type><PlayTokens><PlayToken><Name>k</Name><Key>secret-key-of-${name}</Key></PlayToken></PlayTokens></Application>`;
const host = (name: string, apps: readonly string[]) =>
  `<VirtualHost><Name>${name}</Name><Applications>${apps.map(application).join('')}</Applications></VirtualHost>`;

test.each([
  ['none', ''],
  ['several', host('a', ['one-app', 'two-app']) + host('b', []) + host('c', ['three-app'])],
])('the stored configuration is that of the server without its secrets, with %s of virtual hosts', async (_what, hosts) => {
  const xml = `<Server version="8"><Type>origin</Type><IP>*</IP><Bind/><Managers><API><AccessToken>a-token-of-the-api</AccessToken></API></Managers>
    <VirtualHosts>${hosts}</VirtualHosts></Server>`;
  const { config } = parseServerConfig(xml, 'Server.xml');
  await keepRunningConfig(folder, '/etc/Server.xml', config);
  const kept = readRunningConfig(folder);
  if (kept === null) throw new Error('it was not kept');
  expect(kept.file).toBe('/etc/Server.xml');
  expect(kept.config).toEqual(JSON.parse(JSON.stringify(sealed(config, kept.seal))));
  expect(JSON.stringify(kept.config)).not.toContain('a-token-of-the-api');
});
