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

test('where a direction has no protection at all nothing is told of it', () => {
  expect(said({})).toEqual([]);
  expect(said({ providers: 'rtmp,srt' })).toEqual([]);
  expect(openWaysIn(loadServerConfig(CLUSTER).config).every((sentence) => sentence.includes('leaves open to everybody'))).toBe(true);
});
