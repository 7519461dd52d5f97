import { expect, test } from 'vitest';
import { loadServerConfig, readVirtualHost } from './index.ts';
import { unprotected } from './not-built.ts';

const CLUSTER = new URL('../../test/fixtures/config/cluster-origin.xml', import.meta.url).pathname;

test('a viewer limit is refused for publishers that cannot count viewers, and accepted for others', () => {
  const limit = { maxConnection: 3 };
  const uncounted = { llhls: limit, hls: limit, file: limit, thumbnail: limit, rtmpPush: limit, srtPush: limit, mPEGTSPush: limit };
  const counted = { webrtc: limit, srt: limit, ovt: limit };
  const applications = [
    { name: 'a', type: 'live', publishers: uncounted },
    { name: 'b', type: 'live', publishers: counted, providers: { rtmp: limit, srt: limit, webrtc: limit, ovt: limit, rtspPull: limit } },
    { name: 'c', type: 'live', publishers: { llhls: { maxConnection: 0 }, hls: {} } },
  ];
  const { typed } = readVirtualHost({ name: 'v', applications });
  const elements = ['LLHLS', 'HLS', 'FILE', 'Thumbnail', 'RTMPPush', 'SRTPush', 'MPEGTSPush'];
  expect(unprotected(typed)).toEqual(
    elements.map((element) => `application 'v/a': Publishers/${element}/MaxConnection is not built yet, and nothing is served without it`),
  );
});

test('an unsupported protection is refused, not ignored', () => {
  const { typed } = readVirtualHost({
    name: 'v',
    applications: [{ name: 'app', type: 'live', publishers: { llhls: { drm: { enable: true, infoFile: 'drm.xml' } } } }],
  });
  expect(unprotected(typed)).toEqual(["application 'v/app': Publishers/LLHLS/DRM is not built yet, and nothing is served without it"]);
  expect(loadServerConfig(CLUSTER).config.virtualHosts.flatMap(unprotected)).toEqual([]);
});
