import { expect, test } from 'vitest';
import { defaultServerFile, loadServerConfig } from './index.ts';
import { notBuiltIn, unprotected } from './not-built.ts';

const CLUSTER = new URL('../../test/fixtures/config/cluster-origin.xml', import.meta.url).pathname;

function said(file: string): string[] {
  return notBuiltIn(loadServerConfig(file).config);
}

test('the configuration that comes with the package asks for nothing that is not built', () => {
  expect(said(defaultServerFile)).toEqual([]);
});

test('what an existing configuration relies on is told, with what happens instead', () => {
  expect(said(CLUSTER)).toEqual([
    'Server: Alert is not built yet: no alerts are sent',
    'Server: Bind/Providers/RTSP is not built yet: nobody can publish over RTSP',
    'Server: Modules/Recovery is not built yet: streams that cannot keep up drop pictures and stay',
    "application 'default/app': Providers/Schedule is not built yet: no scheduled channel plays",
    "application 'default/app': Providers/Multiplex is not built yet: no multiplex channel plays",
    "application 'default/app': OutputProfiles/MediaOptions/Subtitles is not built yet: there are none",
  ]);
});

test('what protects somebody is refused, not passed over', () => {
  expect(loadServerConfig(CLUSTER).config.virtualHosts.flatMap(unprotected)).toEqual([
    "virtual host 'default': SignedPolicy is not built yet, and nothing is served without it",
    "virtual host 'default': AdmissionWebhooks is not built yet, and nothing is served without it",
  ]);
});
