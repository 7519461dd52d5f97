import { expect, test } from 'vitest';
import { parseServerConfig, readVirtualHost } from './index.ts';

const POLICY = { policyQueryKeyName: 'policy', signatureQueryKeyName: 'signature', secretKey: 'k' };

function policy(changes: object): () => unknown {
  return () => readVirtualHost({ name: 'v', signedPolicy: { ...POLICY, ...changes } });
}

test.each<readonly [message: string, changes: object]>([
  ['signedPolicy.secretKey must not be empty', { secretKey: '' }],
  ['signedPolicy.policyQueryKeyName must be letters, digits', { policyQueryKeyName: '' }],
  ['signedPolicy.policyQueryKeyName must be letters, digits', { policyQueryKeyName: 'a=b' }],
  ["signedPolicy.signatureQueryKeyName must not be 'Session'", { signatureQueryKeyName: 'Session' }],
  ['signedPolicy.signatureQueryKeyName must not be policyQueryKeyName', { signatureQueryKeyName: 'POLICY' }],
  ["enables.providers: unknown name 'rtpm' (expected: rtmp, srt, webrtc)", { enables: { providers: 'rtpm,srt' } }],
  ["enables.publishers: unknown name 'llhs'", { enables: { publishers: 'webrtc,llhs' } }],
  ["enables.publishers: 'ovt' cannot be protected: OVT carries no signed URL", { enables: { publishers: 'ovt' } }],
  ["enables.providers: 'mpegts' cannot be protected", { enables: { providers: 'mpegts' } }],
  ["enables.providers: 'rtsppull' cannot be protected", { enables: { providers: 'rtspPull' } }],
  ["enables.providers: unknown name 'dash'", { enables: { providers: 'dash' } }],
])('a signed policy is refused: %s', (message, changes) => {
  expect(policy(changes)).toThrow(message);
});

test.each<readonly [message: string, changes: object]>([
  ["admissionWebhooks.controlServerUrl must be a URL that begins with http:// or https://, but got ''", { controlServerUrl: '' }],
  ['admissionWebhooks.controlServerUrl must be a URL that begins with http:// or https://', { controlServerUrl: 'ftp://a/' }],
  ['admissionWebhooks.controlServerUrl must be a URL that begins with http:// or https://', { controlServerUrl: 'http://' }],
  ['admissionWebhooks.timeout must be a whole number from 1 to 10000', { timeout: 10_001 }],
  ["enables.publishers: unknown name 'llhs'", { enables: { publishers: 'llhs' } }],
  ["enables.providers: 'ovt' cannot be protected", { enables: { providers: 'ovt' } }],
])('admission webhooks are refused: %s', (message, changes) => {
  const hooks = { controlServerUrl: 'http://a/', enables: { publishers: 'llhls' }, ...changes };
  expect(() => readVirtualHost({ name: 'v', admissionWebhooks: hooks })).toThrow(message);
});

test('a file with unusable webhooks is refused, and accepted when they are off', () => {
  const file = (url: string, publishers: string): string => `<Server version="8"><Name>s</Name><Type>origin</Type><IP>*</IP><Bind/>
    <VirtualHosts><VirtualHost><Name>v</Name><AdmissionWebhooks><ControlServerUrl>${url}</ControlServerUrl>
      <Enables><Publishers>${publishers}</Publishers></Enables></AdmissionWebhooks></VirtualHost></VirtualHosts></Server>`;
  expect(() => parseServerConfig(file('ftp://a/', 'llhls'), 'Server.xml')).toThrow('must be a URL that begins with http:// or https://');
  expect(() => parseServerConfig(file('', ''), 'Server.xml')).not.toThrow();
  expect(() => parseServerConfig(file('https://a/b', 'llhls'), 'Server.xml')).not.toThrow();
});

test('a file with an invalid policy is refused with the element and its line', () => {
  const file = (inner: string): string => `<Server version="8"><Name>s</Name><Type>origin</Type><IP>*</IP><Bind/>
    <VirtualHosts><VirtualHost><Name>v</Name><SignedPolicy>
      <PolicyQueryKeyName>policy</PolicyQueryKeyName><SignatureQueryKeyName>signature</SignatureQueryKeyName>
      ${inner}
    </SignedPolicy></VirtualHost></VirtualHosts></Server>`;
  expect(() => parseServerConfig(file('<SecretKey></SecretKey>'), 'Server.xml')).toThrow(/secretKey must not be empty|SecretKey/);
  expect(() => parseServerConfig(file('<SecretKey>k</SecretKey><Enables><Publishers>llhs</Publishers></Enables>'), 'Server.xml')).toThrow(
    "enables.publishers: unknown name 'llhs'",
  );
});

test('former publishers of OvenMediaEngine are ignored, and `hlsv3` means `hls`', () => {
  const { typed } = readVirtualHost({ name: 'v', signedPolicy: { ...POLICY, enables: { publishers: 'dash, HLS, hlsv3,lldash,webrtc' } } });
  expect(typed.signedPolicy?.enables).toEqual({ providers: [], publishers: ['hls', 'webrtc'] });
});
