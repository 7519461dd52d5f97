import { expect, test } from 'vitest';
import { loadServerConfig, readVirtualHost } from './index.ts';
import { unprotected } from './not-built.ts';

const CLUSTER = new URL('../../test/fixtures/config/cluster-origin.xml', import.meta.url).pathname;

test('what protects somebody is refused, not passed over', () => {
  const { typed } = readVirtualHost({
    name: 'v',
    applications: [{ name: 'app', type: 'live', publishers: { llhls: { drm: { enable: true, infoFile: 'drm.xml' } } } }],
  });
  expect(unprotected(typed)).toEqual(["application 'v/app': Publishers/LLHLS/DRM is not built yet, and nothing is served without it"]);
  expect(loadServerConfig(CLUSTER).config.virtualHosts.flatMap(unprotected)).toEqual([]);
});
