import { expect, test } from 'vitest';
import { loadServerConfig } from './index.ts';
import { unprotected } from './not-built.ts';

const CLUSTER = new URL('../../test/fixtures/config/cluster-origin.xml', import.meta.url).pathname;

test('what protects somebody is refused, not passed over', () => {
  expect(loadServerConfig(CLUSTER).config.virtualHosts.flatMap(unprotected)).toEqual([
    "virtual host 'default': AdmissionWebhooks is not built yet, and nothing is served without it",
  ]);
});
