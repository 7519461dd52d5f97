import { expect, test } from 'vitest';
import { loadServerConfig, readVirtualHost } from './index.ts';
import { openWays, openWaysIn } from './open-ways.ts';

const CLUSTER = new URL('../../test/fixtures/config/cluster-origin.xml', import.meta.url).pathname;
const { bind } = loadServerConfig(CLUSTER).config;

function said(enables: object, publishers: object = { llhls: {}, hls: {}, ovt: {}, webrtc: {} }): string[] {
  const keys = { policyQueryKeyName: 'p', signatureQueryKeyName: 's', secretKey: 'k' };
  const application = { name: 'app', type: 'live', providers: { rtmp: {}, srt: {} }, publishers };
  const { typed } = readVirtualHost({ name: 'v', signedPolicy: { ...keys, enables }, applications: [application] });
  const [app] = typed.applications;
  return app === undefined ? [] : openWays(bind, typed, app);
}

test('ways that stay open beside those that are protected are told', () => {
  expect(bind.publishers.ovt).toBeDefined();
  expect(said({ providers: 'rtmp', publishers: 'llhls,webrtc' })).toEqual([
    "application 'v/app': SignedPolicy/Enables leaves open to everybody: publishing by srt, playing by hls, playing by ovt",
  ]);
  expect(said({ providers: 'rtmp,srt', publishers: 'webrtc,llhls,hls' }, { llhls: {}, hls: {}, webrtc: {} })).toEqual([]);
});

test('keys protect all ways but those where nobody can show one', () => {
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

test('where a direction has no protection at all nothing is told of it', () => {
  expect(said({})).toEqual([]);
  expect(said({ providers: 'rtmp,srt' })).toEqual([]);
  expect(openWaysIn(loadServerConfig(CLUSTER).config).every((sentence) => sentence.includes('leaves open to everybody'))).toBe(true);
});
