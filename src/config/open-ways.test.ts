import { expect, test } from 'vitest';
import { loadServerConfig, readVirtualHost } from './index.ts';
import { openWays, openWaysIn } from './open-ways.ts';

const CLUSTER = new URL('../../test/fixtures/config/cluster-origin.xml', import.meta.url).pathname;
const { bind } = loadServerConfig(CLUSTER).config;

function said(enables: object, publishers: object = { llhls: {}, hls: {}, ovt: {}, webrtc: {} }, asked?: object): string[] {
  const keys = { policyQueryKeyName: 'p', signatureQueryKeyName: 's', secretKey: 'k' };
  const webhooks = asked === undefined ? {} : { admissionWebhooks: { controlServerUrl: 'http://c/', enables: asked } };
  const application = { name: 'app', type: 'live', providers: { rtmp: {}, srt: {} }, publishers };
  const { typed } = readVirtualHost({ name: 'v', signedPolicy: { ...keys, enables }, ...webhooks, applications: [application] });
  const [app] = typed.applications;
  return app === undefined ? [] : openWays(bind, typed, app);
}

test('unprotected protocols are reported when others are protected', () => {
  expect(bind.publishers.ovt).toBeDefined();
  expect(said({ providers: 'rtmp', publishers: 'llhls,webrtc' })).toEqual([
    "application 'v/app': SignedPolicy/Enables leaves open to everybody: publishing by srt, playing by hls, playing by ovt",
  ]);
  expect(said({ providers: 'rtmp,srt', publishers: 'webrtc,llhls,hls' }, { llhls: {}, hls: {}, webrtc: {} })).toEqual([]);
});

test('keys protect all protocols except those that cannot carry a key', () => {
  const saidOf = (lists: object, signed: object = {}): string[] => {
    const providers = { rtmp: {}, srt: {}, mpegts: {} };
    const application = { name: 'app', type: 'live', providers, publishers: { llhls: {}, hls: {}, ovt: {} }, ...lists };
    const [app] = readVirtualHost({ name: 'v', applications: [application] }).typed.applications;
    return app === undefined ? [] : openWays(bind, { ...readVirtualHost({ name: 'v' }).typed, ...signed }, app);
  };
  expect(bind.providers.mpegts).toBeDefined();
  expect(saidOf({})).toEqual([]);
  const open = "application 'v/app': what protects it leaves open to everybody: ";
  expect(saidOf({ publishKeys: [] })).toEqual([`${open}publishing by mpegts`]);
  expect(saidOf({ publishKeys: [], playTokens: [] })).toEqual([`${open}publishing by mpegts, playing by ovt`]);
  const keys = { policyQueryKeyName: 'p', signatureQueryKeyName: 's', secretKey: 'k' };
  const signedPolicy = { ...keys, enables: { providers: ['rtmp'], publishers: ['llhls'] } };
  expect(saidOf({ publishKeys: [] }, { signedPolicy })).toEqual([`${open}publishing by mpegts, playing by hls, playing by ovt`]);
});

test('a protocol with a control server counts as protected', () => {
  const publishers = { llhls: {}, hls: {}, webrtc: {} };
  expect(said({ publishers: 'llhls' }, publishers, { publishers: 'hls,webrtc' })).toEqual([]);
  expect(said({ publishers: 'llhls' }, publishers, { publishers: 'hls', providers: 'rtmp' })).toEqual([
    "application 'v/app': SignedPolicy/Enables with AdmissionWebhooks/Enables leaves open to everybody: publishing by srt, playing by webrtc",
  ]);
});

test('a direction without any protection is not reported', () => {
  expect(said({})).toEqual([]);
  expect(said({ providers: 'rtmp,srt' })).toEqual([]);
  expect(openWaysIn(loadServerConfig(CLUSTER).config).every((sentence) => sentence.includes('leaves open to everybody'))).toBe(true);
});
