import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { defaultServerFile, loadServerConfig, readApplication } from './index.ts';
import { notBuiltIn, notBuiltInApplication, notBuiltInServer, unprotected } from './not-built.ts';
import { ApplicationSchema } from './schema/application.ts';
import { BindSchema } from './schema/bind.ts';
import { NO_EFFECT, REFUSED } from './schema/field.ts';
import { MediaOptionsSchema } from './schema/media-options.ts';
import { ModulesSchema } from './schema/modules.ts';
import { ProvidersSchema } from './schema/providers.ts';
import { LlhlsSchema } from './schema/publishers.ts';
import { ServerSchema } from './schema/server.ts';
import { VirtualHostSchema } from './schema/virtual-host.ts';

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
    'Server: Modules/Recovery is not built yet: streams that cannot keep up drop frames and stay',
    "application 'default/app': Providers/Schedule is not built yet: no scheduled channel plays",
    "application 'default/app': Providers/Multiplex is not built yet: no multiplex channel plays",
    "application 'default/app': OutputProfiles/MediaOptions/Subtitles is not built yet: there are none",
    "application 'default/*': PersistentStreams is not built yet: a stream ends with its source unless SourceLoss keeps it",
  ]);
});

test('what protects somebody is refused, not passed over', () => {
  expect(loadServerConfig(CLUSTER).config.virtualHosts.flatMap(unprotected)).toEqual([
    "virtual host 'default': AdmissionWebhooks is not built yet, and nothing is served without it",
  ]);
});

test('the reference says the same of each element', () => {
  const { admissionWebhooks } = VirtualHostSchema.properties;
  const { schedule, multiplex, rtmp } = ProvidersSchema.properties;
  const { p2p, recovery, etag } = ModulesSchema.properties;
  const { eventGenerator, transcodeWebhook } = ApplicationSchema.properties;
  const { subtitles, overlays } = MediaOptionsSchema.properties;
  const refused = [admissionWebhooks, LlhlsSchema.properties.dRM];
  const idle = [
    ...[ServerSchema.properties.alert, BindSchema.properties.providers.properties.rtsp, p2p, recovery, etag, schedule, multiplex],
    ...[rtmp.properties.eventGenerator, eventGenerator, transcodeWebhook, subtitles, overlays],
  ];
  for (const [elements, said] of [
    [refused, REFUSED],
    [idle, NO_EFFECT],
  ] as const) {
    expect(elements.filter(({ description }) => description?.endsWith(`: ${said}`) !== true)).toEqual([]);
  }
});

test('everything that is not built is told, and marked in the reference', () => {
  const { config } = loadServerConfig(CLUSTER);
  const { typed: application } = readApplication({
    name: 'app',
    type: 'live',
    providers: {
      ...{ schedule: { mediaRootDir: 'm', scheduleFilesDir: 's' }, multiplex: { muxFilesDir: 'm' }, srt: { maxConnection: 10 } },
      rtmp: { eventGenerator: { event: [] } },
    },
    publishers: { webrtc: { jitterBuffer: true }, hls: { maxConnection: 1 }, ovt: { maxConnection: 0 } },
    outputProfiles: { mediaOptions: { overlays: { enable: true } } },
    persistentStreams: { stream: [{ name: 'a' }] },
    eventGenerator: { enable: true },
  });
  const sentences = [
    ...notBuiltInServer({
      ...config,
      modules: { ...config.modules, p2p: { ...config.modules.p2p, enable: true }, etag: { enable: true } },
    }),
    ...notBuiltInApplication('default', application),
    ...said(CLUSTER),
    ...config.virtualHosts.flatMap(unprotected),
  ];
  const elements = sentences.map((sentence) => /: (\S+) is not built yet/.exec(sentence)?.[1] ?? sentence);
  for (const element of ['Publishers/WebRTC/JitterBuffer', 'Publishers/HLS/MaxConnection']) {
    expect(elements).toContain(element);
  }
  expect(elements).toContain('Providers/SRT/MaxConnection');
  expect(elements).not.toContain('Publishers/OVT/MaxConnection');
  const reference = readFileSync(new URL('../../docs/reference/configuration.md', import.meta.url), 'utf8');
  const unmarked = elements.filter(
    (element) => !new RegExp(`^\\| \`${element.split('/').at(-1)}\` .*[Nn]ot built yet`, 'm').test(reference),
  );
  expect(unmarked).toEqual([]);
});
