import { describe, expect, test } from 'vitest';
import {
  application,
  encodes,
  messageOf,
  playlist,
  profile,
  server,
  subtitles,
  video,
  virtualHost,
} from '../../test/support/config-readers.ts';
import { readApplication, readOutputProfile, readVirtualHost } from './index.ts';

describe('defaults', () => {
  test('of a virtual host', () => {
    expect(virtualHost({})).toEqual({ name: 'v', distribution: 'ovenmediaengine.com', applications: [] });
  });

  test('of admission webhooks and signed policies', () => {
    const { admissionWebhooks, signedPolicy } = virtualHost({
      admissionWebhooks: { controlServerUrl: 'http://c', enables: { providers: 'RTMP, webrtc,' } },
      signedPolicy: { policyQueryKeyName: 'p', signatureQueryKeyName: 's', secretKey: 'k' },
    });
    expect(admissionWebhooks).toEqual({
      controlServerUrl: 'http://c',
      secretKey: '',
      timeout: 3000,
      enables: { providers: ['rtmp', 'webrtc'], publishers: [] },
    });
    expect(signedPolicy?.enables).toEqual({ providers: [], publishers: [] });
  });

  test('of origins', () => {
    const origin = (scheme: string) => ({ location: '/app/', pass: { scheme, urls: { url: ['h/app/'] } } });
    const { origins } = virtualHost({ origins: { origin: [origin('OVT'), origin('rtsp')] } });
    expect(origins?.properties).toEqual({
      noInputFailoverTimeout: 3000,
      unusedStreamDeletionTimeout: 60_000,
      streamFailbackTimeout: 3000,
      retryCount: 1,
    });
    expect(origins?.origin[0]).toEqual({
      location: '/app/',
      pass: { scheme: 'ovt', urls: { url: ['h/app/'] }, forwardQueryParams: true },
      persistent: false,
      failback: false,
      strictLocation: false,
      relay: true,
      ignoreRtcpSRTimestamp: false,
    });
    expect(origins?.origin[1]?.relay).toBe(false);
  });

  test('of an application', () => {
    expect(application({})).toEqual({
      name: 'app',
      type: 'live',
      outputProfiles: { hardwareAcceleration: false, decodes: { threadCount: 2, onlyKeyframes: false }, outputProfile: [] },
      providers: {},
      publishers: { appWorkerCount: 1, streamWorkerCount: 8, delayBufferTimeMs: 0 },
    });
  });

  test('of the providers', () => {
    const encoder = { maxConnection: 0, packetSilenceTimeoutMs: 10_000 };
    const { providers } = application({
      providers: {
        rtmp: {},
        srt: {},
        webrtc: {},
        rtspPull: {},
        ovt: {},
        mpegts: { streams: [{ name: 's' }] },
        file: {},
        multiplex: { muxFilesDir: 'm' },
      },
    });
    expect(providers).toEqual({
      rtmp: { ...encoder, blockDuplicateStreamName: true, passthroughOutputProfile: false },
      srt: { ...encoder, blockDuplicateStreamName: true },
      webrtc: { maxConnection: 0, packetSilenceTimeoutMs: 30_000, timeout: 30_000, blockDuplicateStreamName: true, fIRInterval: 3000 },
      rtspPull: { maxConnection: 0, blockDuplicateStreamName: true },
      ovt: { maxConnection: 0 },
      mpegts: {
        maxConnection: 0,
        packetSilenceTimeoutMs: 1500,
        streams: [{ name: 's', port: { protocol: 'udp', ranges: [{ first: 4000, last: 4000 }] } }],
      },
      file: { maxConnection: 0, passthroughOutputProfile: false },
      multiplex: { maxConnection: 0, packetSilenceTimeoutMs: 0, muxFilesDir: 'm' },
    });
  });

  test('of the publishers', () => {
    const common = {
      maxConnection: 0,
      segmentDuration: 10,
      segmentCount: 5,
      originMode: false,
      serverTimeBasedSegmentNumbering: false,
      createDefaultPlaylist: true,
      cacheControl: {
        masterPlaylistMaxAge: 0,
        chunklistMaxAge: 0,
        chunklistWithDirectivesMaxAge: 60,
        segmentMaxAge: -1,
        partialSegmentMaxAge: -1,
      },
    };
    const { publishers } = application({
      publishers: { llhls: {}, hls: {}, webrtc: {}, ovt: {}, srt: {}, push: {}, file: {}, thumbnail: {} },
    });
    expect(publishers).toMatchObject({
      llhls: { ...common, chunkDuration: 0.5, partHoldBack: 0, enablePreloadHint: true },
      hls: common,
      webrtc: { timeout: 30_000, rtx: false, ulpfec: false, jitterBuffer: false, bandwidthEstimation: 'REMB', createDefaultPlaylist: true },
      ovt: { maxConnection: 0 },
      srt: { maxConnection: 0 },
      push: { connectionTimeout: -1, sendTimeout: -1 },
      file: { maxConnection: 0 },
      thumbnail: { maxConnection: 0 },
    });
    expect(publishers.llhls?.dVR).toBeUndefined();
    expect(application({ publishers: { llhls: { dVR: {} } } }).publishers.llhls?.dVR).toEqual({
      enable: false,
      tempStoragePath: '',
      maxDuration: 3600,
      eventPlaylistType: false,
    });
  });

  test('of encodes, with made-up names counting the unnamed ones', () => {
    const bypassed = { bypass: true };
    const { videos, audios, images } = encodes({
      videos: [bypassed, { name: 'v', ...bypassed }, bypassed],
      audios: [bypassed],
      images: [{ codec: 'jpeg' }],
    });
    expect(videos.map(({ name }) => name)).toEqual(['video_0', 'v', 'video_1']);
    expect(videos[0]).toEqual({
      name: 'video_0',
      bypass: true,
      width: 0,
      height: 0,
      framerate: 0,
      skipFrames: -1,
      keyFrameInterval: 0,
      keyFrameIntervalType: 'frame',
      bFrames: 0,
      threadCount: -1,
      lookahead: -1,
    });
    expect(audios).toEqual([{ name: 'audio_0', bypass: true, samplerate: 0, channel: 0 }]);
    expect(images).toEqual([{ name: 'image_0', codec: 'jpeg', width: 0, height: 0, framerate: 0, skipFrames: 0 }]);
  });

  test('of playlists', () => {
    const template = { name: 't', video_template: {}, audio_template: {} };
    const { playlists } = profile({ playlists: [{ fileName: 'f', renditions: [{ name: 'r' }], rendition_templates: [template] }] });
    const [made] = playlists;
    expect(made?.options).toEqual({ webRtcAutoAbr: true, hLSChunklistPathDepth: -1, enableTsPackaging: false });
    expect(made?.renditions).toEqual([{ name: 'r', video_index_hint: -1, audio_index_hint: -1 }]);
    expect(made?.rendition_templates[0]?.video_template).toMatchObject({ encoding_type: 'all', max_width: -1, min_bitrate: -1 });
    expect(made?.rendition_templates[0]?.audio_template).toMatchObject({ encoding_type: 'all', max_channel: -1 });
  });

  test('of the server', () => {
    const config = server('<Bind/>');
    expect(config.managers).toEqual({ host: { names: ['*'] }, api: { accessToken: '' }, metrics: { accessToken: '', maxStreams: 500 } });
    expect(config.bind).toEqual({ managers: {}, providers: {}, publishers: {} });
    expect(config.modules).toEqual({
      http2: { enable: true },
      llhls: { enable: true },
      playerPage: { enable: true },
      p2p: { enable: false, maxClientPeersPerHostPeer: 2 },
      recovery: { enable: false, deleteLazyStreamTimeout: 0 },
      dynamicAppRemoval: { enable: false },
      etag: { enable: false },
      transcoder: { jobsPerProcess: 8, maxProcesses: 0 },
      ertmp: { enable: true },
    });
    expect(config).toMatchObject({ version: 8, type: 'origin', ip: ['*'], privacyProtection: false, virtualHosts: [] });
  });

  test('of listeners whose ports are not given', () => {
    const { bind } = server(
      `<Bind><Managers><API/></Managers>
       <Providers><RTMP/><RTSP/><SRT/><MPEGTS/><WebRTC><Signalling/><IceCandidates/></WebRTC></Providers>
       <Publishers><OVT/><LLHLS/><HLS><TLSPort>3334/tcp</TLSPort></HLS><Thumbnail><Port>3333/tcp</Port></Thumbnail><SRT/></Publishers></Bind>`,
    );
    const { providers, publishers } = bind;
    expect(bind.managers.api).toEqual({ ip: [], workerCount: 1 });
    expect([providers.rtmp?.port, providers.rtsp?.port]).toEqual([1935, 554]);
    expect(providers.srt?.port).toEqual({ protocol: 'srt', ranges: [{ first: 9999, last: 9999 }] });
    expect(providers.mpegts?.port).toEqual({ protocol: 'udp', ranges: [{ first: 4000, last: 4000 }] });
    expect(providers.webrtc?.signalling).toMatchObject({ port: 3333, tlsPort: 3334 });
    expect(providers.webrtc?.iceCandidates?.iceCandidate).toEqual(['*:10000/udp']);
    expect(publishers.ovt?.port).toBe(9000);
    expect(publishers.srt?.port).toEqual({ protocol: 'srt', ranges: [{ first: 9998, last: 9998 }] });
    expect(publishers.llhls).toMatchObject({ port: 80, tlsPort: 443 });
    expect(publishers.hls).toEqual({ tlsPort: 3334, threadPerSocket: false });
    expect(publishers.thumbnail).toEqual({ port: 3333, threadPerSocket: false });
  });
});

describe('conversions', () => {
  test.each([
    [2_000_000, 2_000_000],
    ['2000000', 2_000_000],
    ['128K', 131_072],
    ['2M', 2_097_152],
    ['1.5m', 1_572_864],
  ])('a bit rate of %j is %d bit/s', (bitrate, expected) => {
    expect(video({ bitrate })().videos[0]?.bitrate).toBe(expected);
  });

  test.each([
    ['4000', 'udp', [[4000, 4000]]],
    [
      '4000-4004,4010/udp',
      'udp',
      [
        [4000, 4004],
        [4010, 4010],
      ],
    ],
    ['5000/tcp', 'tcp', [[5000, 5000]]],
  ])('ports %j', (port, protocol, pairs) => {
    const ranges = pairs.map(([first, last]) => ({ first, last }));
    expect(application({ providers: { mpegts: { streams: [{ name: 's', port }] } } }).providers.mpegts?.streams[0]?.port).toEqual({
      protocol,
      ranges,
    });
  });

  test('an empty entry of the stream map for MPEG-TS gets its defaults', () => {
    const { streams } = application({ providers: { mpegts: { streams: [{}] } } }).providers.mpegts ?? {};
    expect(streams).toEqual([{ name: 'stream', port: { protocol: 'udp', ranges: [{ first: 4000, last: 4000 }] } }]);
  });

  test('a program of a transport stream', () => {
    const programs = (program: unknown) => application({ providers: { mpegts: { streams: [{ name: 's', program }] } } }).providers.mpegts;
    expect(programs('7')?.streams[0]?.program).toBe(7);
    expect(() => programs('0')).toThrow(/program/i);
    expect(() => programs('65536')).toThrow(/program/i);
  });

  test.each([
    ['true', true],
    ['FALSE', false],
    [true, true],
    [0, false],
    [1, true],
    ['0', false],
  ])('a boolean given as %j is %j', (rtx, expected) => {
    expect(application({ publishers: { webrtc: { rtx } } }).publishers.webrtc?.rtx).toBe(expected);
  });

  test('numbers may be given as text, words in any case', () => {
    const { llhls } = application({ publishers: { llhls: { segmentDuration: '3', segmentCount: ' 5 ' } } }).publishers;
    expect(llhls).toMatchObject({ segmentDuration: 3, segmentCount: 5 });
    expect(application({ providers: { rtmp: { timestampMode: 'zerobased' } } }).providers.rtmp?.timestampMode).toBe('ZeroBased');
    expect(video({ codec: 'H264_openh264', preset: 'Faster' })().videos[0]).toMatchObject({ codec: 'h264', preset: 'faster' });
  });

  test.each([
    ['h264_x264', undefined, 'h264', 'x264'],
    ['h264_openh264', undefined, 'h264', 'openh264'],
    ['hevc_nvenc', undefined, 'h265', 'nv'],
    ['h264_qsv', 'x264', 'h264', 'x264'],
    ['H265', undefined, 'h265', undefined],
  ])('the codec %j with the modules %j means %j by %j', (codec, modules, expected, by) => {
    const [made] = video({ codec, ...(modules !== undefined && { modules }) })().videos;
    expect([made?.codec, made?.modules]).toEqual([expected, by]);
  });

  test('bypassed tracks and frames may have any size', () => {
    expect(encodes({ videos: [{ bypass: true, width: 853 }], images: [{ codec: 'png', width: 321 }] }).images[0]?.width).toBe(321);
  });

  test('limits of the frame rate of a template have two names', () => {
    const template = (members: object) =>
      profile({ playlists: [{ fileName: 'f', rendition_templates: [{ name: 't', video_template: members }] }] }).playlists[0]
        ?.rendition_templates[0]?.video_template;
    expect(template({ maxFPS: 30, minFPS: 10 })).toMatchObject({ max_framerate: 30, min_framerate: 10 });
    expect(template({ maxFramerate: 30, min_framerate: 10 })).toMatchObject({ max_framerate: 30, min_framerate: 10 });
  });

  test('former elements are mapped to their replacements', () => {
    expect(application({ providers: { rtmp: { useIncomingTimestamp: true } } }).providers.rtmp?.timestampMode).toBe('Original');
    expect(application({ publishers: { rtmpPush: {} } }).publishers.push).toEqual({ connectionTimeout: -1, sendTimeout: -1 });
    const { file } = application({ publishers: { file: { record: { enable: true, recordInfo: '/m.xml' } } } }).publishers;
    expect(file?.streamMap).toEqual({ enable: true, path: '/m.xml' });
  });

  test('the default subtitle is chosen automatically', () => {
    const { mediaOptions } = subtitles({ enable: true, defaultLabel: 'E', rendition: [{ label: 'E', language: 'en' }] })().outputProfiles;
    expect(mediaOptions?.subtitles?.rendition[0]).toEqual({ label: 'E', language: 'en', autoSelect: true, forced: false });
  });
});

describe('echoes', () => {
  test.each([
    ['hlsChunklistPathDepth', 'hLSChunklistPathDepth', '0', 0],
    ['hLSChunklistPathDepth', 'hLSChunklistPathDepth', 2, 2],
    ['webrtcAutoAbr', 'webRtcAutoAbr', 'false', false],
  ])('%s is echoed under the received key with its type', (given, key, value, expected) => {
    const { typed, echo } = readOutputProfile({
      name: 'p',
      outputStreamName: 'o',
      playlists: [{ fileName: 'f', options: { [given]: value } }],
    });
    expect(typed.playlists[0]?.options).toMatchObject({ [key]: expected });
    expect(echo['playlists']).toEqual([{ fileName: 'f', options: { [given]: expected } }]);
  });

  test('either spelling of dVR, dRM, sAR, templates and stream map is read', () => {
    const { llhls } = application({ publishers: { llhls: { dvr: { enable: true }, drm: { enable: true } } } }).publishers;
    expect([llhls?.dVR?.enable, llhls?.dRM?.enable]).toEqual([true, true]);
    expect(video({ bypassIfMatch: { sar: 'eq' } })().videos[0]?.bypassIfMatch).toEqual({ sAR: 'eq' });
    const { streams = [] } = application({ providers: { mpegts: { streamMap: { stream: [{ name: 's' }] } } } }).providers.mpegts ?? {};
    expect(streams).toHaveLength(1);
    const [made] = playlist({ renditionTemplates: [{ name: 't', videoTemplate: { maxHeight: 720 } }] })().playlists;
    expect(made?.rendition_templates[0]?.video_template?.max_height).toBe(720);
  });

  test('two spellings of one member are refused', () => {
    expect(messageOf(() => application({ publishers: { llhls: { dVR: {}, dvr: {} } } }))).toBe(
      'application.publishers.llhls.dVR is given twice, the second time as dvr',
    );
  });

  test('relative paths and macros are echoed as written', () => {
    const tls = { certPath: 'a.crt', keyPath: '$' + '{env:KEY:b.key}' };
    const { typed, echo } = readVirtualHost({ name: 'v', host: { names: ['n'], tls } }, { directory: '/etc/millrace' });
    expect(typed.host?.tls).toEqual({ certPath: '/etc/millrace/a.crt', keyPath: '/etc/millrace/$' + '{env:KEY:b.key}' });
    expect(echo['host']).toEqual({ names: ['n'], tls });
  });

  test('null is the same as absent', () => {
    const { typed, echo } = readApplication({ name: 'a', type: 'live', providers: { rtmp: null, srt: {} } });
    expect(Object.keys(typed.providers)).toEqual(['srt']);
    expect(echo['providers']).toEqual({ srt: {} });
  });
});
