import { expect, test } from 'vitest';
import { defaultServerFile, loadServerConfig, parseServerConfig, readApplication, readVirtualHost } from './index.ts';
import { shortApplicationSecrets, shortHostSecrets, shortSecretsIn } from './short-secrets.ts';

const WHY = 'is shorter than 6 characters: it can be guessed, and is not left out of lines of the log and live events that have it';

function load(token: string, further: string): string[] {
  const { config } = parseServerConfig(
    `<Server version="8"><Type>origin</Type><IP>*</IP><Bind><Managers><API><Port>8081</Port></API></Managers></Bind>
<Managers><Host><Names><Name>*</Name></Names></Host><API><AccessToken>${token}</AccessToken>
<AccessTokens><Token><Name>board</Name><Value>${further}</Value></Token></AccessTokens>
<CrossDomains><Header><Key>X-A</Key><Value>1</Value></Header></CrossDomains></API></Managers>
<VirtualHosts><VirtualHost><Name>v</Name><Host><Names><Name>*</Name></Names></Host></VirtualHost></VirtualHosts></Server>`,
    'Server.xml',
  );
  return shortSecretsIn(config);
}

test('short secrets are reported by their elements, and no other value is', () => {
  expect(shortSecretsIn(loadServerConfig(defaultServerFile).config)).toEqual([]);
  expect(load('', '')).toEqual([]);
  expect(load('tokens', 'boards')).toEqual([]);
  expect(load('token', 'board')).toEqual([
    `Server: Managers/API/AccessToken ${WHY}`,
    `Server: Managers/API/AccessTokens/Token/Value ${WHY}`,
  ]);
});

test('short secrets of virtual hosts and applications are reported with their owner', () => {
  const signedPolicy = { policyQueryKeyName: 'p', signatureQueryKeyName: 's', secretKey: '12345' };
  const admissionWebhooks = { controlServerUrl: 'http://c.test/', secretKey: '' };
  const { typed: host } = readVirtualHost({ name: 'v', signedPolicy, admissionWebhooks });
  expect(shortHostSecrets(host)).toEqual([`virtual host 'v': SignedPolicy/SecretKey ${WHY}`]);
  const transcodeWebhook = { enable: true, controlServerUrl: 'http://c.test/', secretKey: 'k', timeout: 100 };
  const { typed: application } = readApplication({ name: 'app', type: 'live', transcodeWebhook });
  expect(shortApplicationSecrets('v', application)).toEqual([`application 'v/app': TranscodeWebhook/SecretKey ${WHY}`]);
});
