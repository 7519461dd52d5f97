import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { applicationDefaults, defaultServerFile, loadServerConfig, readApplication } from './index.ts';
import { allSentences, applicationSentences, ineffectiveInApplication, serverSentences } from './ineffective.ts';
import { unprotected, unprotectedApplication } from './not-built.ts';
import { BindSchema } from './schema/bind.ts';
import { NO_EFFECT, REFUSED } from './schema/field.ts';
import { MediaOptionsSchema } from './schema/media-options.ts';
import { ModulesSchema } from './schema/modules.ts';
import { LlhlsSchema } from './schema/publishers.ts';

const CLUSTER = new URL('../../test/fixtures/config/cluster-origin.xml', import.meta.url).pathname;

function said(file: string): string[] {
  return allSentences(loadServerConfig(file).config);
}

test('the shipped configuration contains no unbuilt elements', () => {
  expect(said(defaultServerFile)).toEqual([]);
});

test('ineffective settings that a configuration relies on are reported, with what happens instead', () => {
  expect(said(CLUSTER)).toEqual([
    'Server: Modules/Recovery is not built yet: streams that cannot keep up drop frames and stay',
    'Server: Bind/Providers/RTMP/ThreadPerSocket has no effect: threads are shared by all ports',
    'Server: Bind/Providers/RTSP is not built yet: nobody can publish over RTSP',
    'Server: Bind/Providers/SRT/ThreadPerSocket has no effect: threads are shared by all ports',
    'Server: Bind/Publishers/SRT/ThreadPerSocket has no effect: threads are shared by all ports',
    'Server: Managers/API/Storage has no effect: what the API creates is in the state folder',
    'Server: Analytics has no effect: nothing is sent',
    "application 'default/*': PersistentStreams is not built yet: no stream of that name is made; SourceLoss/StandIn keeps a stream on air under its own name",
  ]);
});

test('the reference describes each element in the same words', () => {
  const { p2p, recovery, etag } = ModulesSchema.properties;
  const { transcription } = MediaOptionsSchema.properties.subtitles.properties.rendition.items.properties;
  const refused = [LlhlsSchema.properties.dRM];
  const idle = [...[BindSchema.properties.providers.properties.rtsp, p2p, recovery, etag], transcription];
  for (const [elements, said] of [
    [refused, REFUSED],
    [idle, NO_EFFECT],
  ] as const) {
    expect(elements.filter(({ description }) => description?.endsWith(`: ${said}`) !== true)).toEqual([]);
  }
});

test('every unbuilt element is reported, and marked in the reference', () => {
  const { config } = loadServerConfig(CLUSTER);
  const { typed: application } = readApplication({
    name: 'app',
    type: 'live',
    providers: {
      ...{ schedule: { mediaRootDir: 'm', scheduleFilesDir: 's' }, multiplex: { muxFilesDir: 'm' }, srt: { maxConnection: 10 } },
    },
    publishers: { webrtc: { jitterBuffer: true }, hls: { maxConnection: 1 }, ovt: { maxConnection: 0 } },
    outputProfiles: { mediaOptions: { subtitles: { enable: true, rendition: [{ label: 'a', language: 'en' }] } } },
    persistentStreams: { stream: [{ name: 'a' }] },
  });
  const sentences = [
    ...serverSentences({
      ...config,
      modules: { ...config.modules, p2p: { ...config.modules.p2p, enable: true }, etag: { enable: true } },
    }),
    ...applicationSentences('default', application),
    ...said(CLUSTER),
    ...config.virtualHosts.flatMap(unprotected),
    ...unprotectedApplication('default', application),
  ];
  const elements = sentences.flatMap((sentence) => /: (\S+) is not built yet/.exec(sentence)?.[1] ?? []);
  for (const element of ['Publishers/WebRTC/JitterBuffer', 'Publishers/HLS/MaxConnection']) {
    expect(elements).toContain(element);
  }
  expect(elements).not.toContain('Providers/SRT/MaxConnection');
  expect(elements).not.toContain('Publishers/OVT/MaxConnection');
  const reference = readFileSync(new URL('../../docs/reference/configuration.md', import.meta.url), 'utf8');
  const unmarked = elements.filter(
    (element) => !new RegExp(`^\\| \`${element.split('/').at(-1)}\` .*[Nn]ot built yet`, 'm').test(reference),
  );
  expect(unmarked).toEqual([]);
});

/** Keys reported to an application with these members. */
function keysOf(members: object): string[] {
  const { typed } = readApplication({ name: 'app', type: 'live', ...members });
  return ineffectiveInApplication(typed).map(({ key }) => key);
}

function profileWith(encodes: object, hwaccels?: object): object {
  const outputProfile = [{ name: 'p', outputStreamName: '${OriginStreamName}', encodes }];
  return { outputProfiles: { ...(hwaccels !== undefined && { hwaccels }), outputProfile } };
}

test.each<[string, object, string[]]>([
  ['providers without a way to publish', { providers: { rtsp: {}, rtmp: {} } }, ['providers.rtsp']],
  ['limits of connections, which are effective', { providers: { srt: { maxConnection: 3 } } }, []],
  ['limits of 0', { providers: { srt: { maxConnection: 0 } } }, []],
  [
    'subtitles from speech',
    {
      outputProfiles: {
        mediaOptions: {
          subtitles: {
            enable: true,
            rendition: [
              { label: 'E', language: 'en', transcription: { engine: 'whisper', model: 'm.bin' } },
              { label: 'K', language: 'ko' },
            ],
          },
        },
      },
    },
    ['outputProfiles.mediaOptions.subtitles.rendition.transcription'],
  ],
  ['workers', { publishers: { appWorkerCount: 4, streamWorkerCount: 8 } }, ['publishers.appWorkerCount']],
  [
    'caching of files that HLS does not have',
    { publishers: { hls: { cacheControl: { chunklistWithDirectivesMaxAge: 1, partialSegmentMaxAge: 5, segmentMaxAge: 5 } } } },
    ['publishers.hls.cacheControl.chunklistWithDirectivesMaxAge', 'publishers.hls.cacheControl.partialSegmentMaxAge'],
  ],
  ['caching of files that LL-HLS has', { publishers: { llhls: { cacheControl: { partialSegmentMaxAge: 5 } } } }, []],
  [
    'query values without a default',
    {
      publishers: {
        llhls: {
          defaultQueryString: {
            queries: [
              { key: '_hls_LEGACY', value: 'YES' },
              { key: 'token', value: 'x' },
            ],
          },
        },
        hls: { defaultQueryString: { queries: [{ key: '_HLS_legacy', value: 'YES' }] } },
      },
    },
    ['publishers.llhls.defaultQueryString', 'publishers.hls.defaultQueryString'],
  ],
  ['query values with a default', { publishers: { hls: { defaultQueryString: { queries: [{ key: '_HLS_rewind', value: 'NO' }] } } } }, []],
  [
    'hardware that this server does not have',
    profileWith({}, { encoder: { enable: true, modules: 'nv:1,xma' }, decoder: { enable: true, modules: 'nilogan:0' } }),
    ['outputProfiles.hwaccels.decoder.modules', 'outputProfiles.hwaccels.encoder.modules'],
  ],
  [
    'conditions that a track cannot meet',
    profileWith({
      videos: [{ codec: 'h264', bitrate: 1, bypassIfMatch: { codec: 'eq', channel: 'eq', sAR: 'eq' } }],
      audios: [{ codec: 'aac', bitrate: 1, bypassIfMatch: { codec: 'eq', channel: 'eq', width: 'eq' } }],
    }),
    ['videos.bypassIfMatch.channel', 'audios.bypassIfMatch.width'].map((key) => `outputProfiles.outputProfile.encodes.${key}`),
  ],
  ['hardware that is off', profileWith({}, { encoder: { enable: false, modules: 'xma' } }), []],
  [
    'options that the encoder does not use',
    profileWith({
      videos: [
        { codec: 'vp8', bitrate: 1, profile: 'main', bFrames: 2 },
        { codec: 'h264', bitrate: 1, modules: 'vaapi:1', preset: 'slow', lookahead: 10, profile: 'high' },
        { codec: 'h265', bitrate: 1, modules: 'nilogan', preset: 'slow', lookahead: 10, bFrames: 1 },
      ],
    }),
    ['modules', 'profile', 'bFrames', 'preset', 'lookahead'].map((key) => `outputProfiles.outputProfile.encodes.videos.${key}`),
  ],
  [
    'options that the encoder uses',
    profileWith(
      { videos: [{ codec: 'h264', bitrate: 1, modules: 'nv:1,x264', preset: 'slow', lookahead: 10, profile: 'high', bFrames: 2 }] },
      { encoder: { enable: true, modules: 'nv' } },
    ),
    [],
  ],
  [
    'options that the hardware does not use',
    profileWith({ videos: [{ codec: 'h264', bitrate: 1, lookahead: 5 }] }, { encoder: { enable: true, modules: 'qsv' } }),
    ['outputProfiles.outputProfile.encodes.videos.lookahead'],
  ],
  ['options without effect on a bypass', profileWith({ videos: [{ bypass: true, profile: 'main', codec: 'vp8' }] }), []],
])('reports %s', (_what, members, keys) => {
  expect(keysOf(members)).toEqual(keys);
});

test('an application with the defaults of the API reports nothing, and elements are named as in a file', () => {
  const { typed } = readApplication(applicationDefaults({ name: 'app', type: 'live' }));
  expect(ineffectiveInApplication(typed)).toEqual([]);
  const { typed: other } = readApplication({
    name: 'app',
    type: 'live',
    publishers: { webrtc: { jitterBuffer: true } },
    ...profileWith({ images: [{ codec: 'jpeg', modules: 'xma' }] }),
  });
  expect(applicationSentences('v', other)).toEqual([
    "application 'v/app': Publishers/WebRTC/JitterBuffer is not built yet: frames leave as they come",
    "application 'v/app': OutputProfiles/OutputProfile/Encodes/Image/Modules has no effect: xma cannot be used: the next module is tried, and software last",
  ]);
});
