import { describe, expect, test } from 'vitest';
import {
  type ApplicationConfig,
  ConfigError,
  ConfigErrors,
  type EncodesConfig,
  type OutputProfileConfig,
  parseServerConfig,
  readApplication,
  readOutputProfile,
  readVirtualHost,
  type ServerConfig,
  type VirtualHostConfig,
} from './index.ts';

function application(members: object): ApplicationConfig {
  return readApplication({ name: 'app', type: 'live', ...members }).typed;
}

function virtualHost(members: object): VirtualHostConfig {
  return readVirtualHost({ name: 'v', ...members }).typed;
}

function profile(members: object): OutputProfileConfig {
  return readOutputProfile({ name: 'p', outputStreamName: 'o', ...members }).typed;
}

function encodes(members: object): EncodesConfig {
  return profile({ encodes: members }).encodes;
}

const video = (members: object) => () => encodes({ videos: [{ codec: 'h264', bitrate: 1, ...members }] });
const playlist = (members: object) => () => profile({ playlists: [{ fileName: 'f', ...members }] });
const subtitles = (members: object) => () => application({ outputProfiles: { mediaOptions: { subtitles: members } } });

function server(inner: string): ServerConfig {
  return parseServerConfig(`<Server version="8"><Type>origin</Type><IP>*</IP>${inner}</Server>`, 'Server.xml', {}).config;
}

function messageOf(action: () => unknown): string {
  try {
    action();
  } catch (error) {
    if (error instanceof ConfigError) return error.message;
    if (error instanceof ConfigErrors) return error.errors[0]?.message ?? '';
    throw error;
  }
  return 'accepted';
}

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

  test('an entry of the stream map for MPEG-TS that says nothing', () => {
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

  test('former elements mean what replaced them', () => {
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

describe('refusals', () => {
  const bind = (inner: string) => () => server(`<Bind>${inner}</Bind>`);
  const multicast = (inner: string) => bind(`<Providers><MPEGTS><Multicast>${inner}</Multicast></MPEGTS></Providers>`);
  const ports = (port: string) => () => application({ providers: { mpegts: { streams: [{ name: 's', port }] } } });
  const match = (members: object) => video({ bypassIfMatch: members });

  test.each<[string, () => unknown]>([
    ['virtualHost.name is not optional', () => readVirtualHost({})],
    ['application.type is not optional', () => readApplication({ name: 'a' })],
    ['outputProfile.outputStreamName is not optional', () => readOutputProfile({ name: 'p' })],
    ['outputProfile.name is not optional', () => application({ outputProfiles: { outputProfile: [{}] } })],
    ['playlists.fileName is not optional', () => profile({ playlists: [{}] })],
    ['virtualHost.host.names is not optional', () => virtualHost({ host: {} })],
    ['Unknown item found: playlists.options.x', playlist({ options: { x: 1 } })],
    ['Unknown item found: videos.x', video({ x: 1 })],
    ['Unknown item found: virtualHost.__proto__', () => readVirtualHost(JSON.parse('{"name":"v","__proto__":{}}'))],
    ['Unknown item found: virtualHost.host.names.x', () => virtualHost({ host: { names: { x: 1 } } })],
    ['outputProfile is not an array', () => application({ outputProfiles: [] })],
    ['Child outputProfile is not an array', () => application({ outputProfiles: { outputProfile: {} } })],
    ['application.name must not be "*": templates can only be declared in the configuration file', () => application({ name: '*' })],
    ['application.providers.rtmp must be an object, but got true', () => application({ providers: { rtmp: true } })],
    ['Unknown type: bogus', () => application({ type: 'bogus' })],
    [
      'Duplicate output profile name: p',
      () => application({ outputProfiles: { outputProfile: [0, 1].map(() => ({ name: 'p', outputStreamName: 'o' })) } }),
    ],
    [
      'Duplicate output stream name: o',
      () => application({ outputProfiles: { outputProfile: ['p', 'q'].map((name) => ({ name, outputStreamName: 'o' })) } }),
    ],
    ['outputProfile.outputStreamName must not be empty', () => profile({ outputStreamName: '' })],
    ['outputProfile.outputStreamName must not contain / : ? # or blanks', () => profile({ outputStreamName: '${OriginStreamName}/hd' })],
    [
      'Unknown macro in outputProfile.outputStreamName: ${Name} (expected: ${OriginStreamName})',
      () => profile({ outputStreamName: '${OriginStreamName}_${Name}' }),
    ],
    ['accepted', () => profile({ outputStreamName: 'x_${OriginStreamName}-${OriginStreamName}' })],
    ['Duplicate application name: a', () => virtualHost({ applications: [0, 1].map(() => ({ name: 'a', type: 'live' })) })],
    [
      'virtualHost.admissionWebhooks.timeout must be a whole number from 1 to 10000, but got "12abc"',
      () => virtualHost({ admissionWebhooks: { controlServerUrl: '', timeout: '12abc' } }),
    ],
    [
      'virtualHost.admissionWebhooks.timeout must be a whole number from 1 to 10000, but got 1.5',
      () => virtualHost({ admissionWebhooks: { controlServerUrl: '', timeout: 1.5 } }),
    ],
    [
      'virtualHost.admissionWebhooks.timeout must be a whole number from 1 to 10000, but got true',
      () => virtualHost({ admissionWebhooks: { controlServerUrl: '', timeout: true } }),
    ],
    [
      'virtualHost.admissionWebhooks.timeout must be a whole number from 1 to 10000, but got 10001',
      () => virtualHost({ admissionWebhooks: { controlServerUrl: '', timeout: 10_001 } }),
    ],
    ['Invalid host format h > it must be host:port', () => virtualHost({ originMapStore: { redisServer: { host: 'h' } } })],
    ['Invalid host format h:65536 > it must be host:port', () => virtualHost({ originMapStore: { redisServer: { host: 'h:65536' } } })],
    ['Invalid host format h:0 > it must be host:port', () => virtualHost({ originMapStore: { redisServer: { host: 'h:0' } } })],
    [
      'originMapStore.sharedWork.group must be 1 to 64 letters, digits, ., _ or -',
      () => virtualHost({ originMapStore: { redisServer: { host: 'h:1' }, sharedWork: { group: '{a}' } } }),
    ],
    [
      'virtualHost.originMapStore.sharedWork.leaseTime must be a whole number from 3000 to 600000, but got 10',
      () => virtualHost({ originMapStore: { redisServer: { host: 'h:1' }, sharedWork: { leaseTime: 10 } } }),
    ],
    ['originMapStore.redisServer needs host or url', () => virtualHost({ originMapStore: { redisServer: {} } })],
    [
      'originMapStore.redisServer takes host or url, not both',
      () => virtualHost({ originMapStore: { redisServer: { host: 'h:1', url: 'redis://h' } } }),
    ],
    [
      "originMapStore.redisServer.url must name servers as host:port, but has 'h:0'",
      () => virtualHost({ originMapStore: { redisServer: { url: 'redis://h:0' } } }),
    ],
    [
      'accepted',
      () => virtualHost({ originMapStore: { redisServer: { url: 'rediss+sentinel://h/m', caPath: '/ca', sentinelAuth: 'x' } } }),
    ],
    [
      'originMapStore.redisServer.username needs auth',
      () => virtualHost({ originMapStore: { redisServer: { host: 'h:1', username: 'u' } } }),
    ],
    [
      'originMapStore.redisServer.caPath needs a url that begins with rediss',
      () => virtualHost({ originMapStore: { redisServer: { url: 'redis://h', caPath: '/ca' } } }),
    ],
    [
      'originMapStore.redisServer.sentinelAuth needs a url that begins with redis+sentinel or rediss+sentinel',
      () => virtualHost({ originMapStore: { redisServer: { host: 'h:1', sentinelAuth: 'x' } } }),
    ],
    [
      'originMapStore.redisServer.sentinelUsername needs sentinelAuth',
      () => virtualHost({ originMapStore: { redisServer: { url: 'redis+sentinel://h/m', sentinelUsername: 'x' } } }),
    ],
    [
      'Unknown scheme: http (expected: ovt, rtsp)',
      () => virtualHost({ origins: { origin: [{ location: '/', pass: { scheme: 'http', urls: { url: [] } } }] } }),
    ],
    ['Invalid TimestampMode value: x (expected: ZeroBased, Original)', () => application({ providers: { rtmp: { timestampMode: 'x' } } })],
    [
      'PacketSilenceTimeoutMs is not supported for this provider type: RtspPull',
      () => application({ providers: { rtspPull: { packetSilenceTimeoutMs: 1 } } }),
    ],
    ['Invalid port: x', ports('x')],
    ['Invalid port: 0', ports('0/udp')],
    ['Invalid port range: 5-4', ports('5-4')],
    ['Invalid port expression: 4000/sctp', ports('4000/sctp')],
    [
      "Invalid value for BWE. Valid values are 'TransportCC' or 'REMB'",
      () => application({ publishers: { webrtc: { bandwidthEstimation: 'x' } } }),
    ],
    ['Codec must be specified when bypass is false', () => encodes({ videos: [{}] })],
    ['Bitrate must be specified when bypass is false', () => encodes({ audios: [{ codec: 'aac' }] })],
    ['Bitrate must be greater than 0', video({ bitrate: 0 })],
    ['Bitrate must not be greater than 1000000000', video({ bitrate: '1000M' })],
    ['outputProfile.encodes.videos[0].framerate must be a number from 0 to 1000, but got 1000000000', video({ framerate: 1e9 })],
    ['outputProfile.encodes.videos[0].width must be a whole number from 0 to 16384, but got 100000', video({ width: 100_000 })],
    ['outputProfile.encodes.videos[0].threadCount must be a whole number from -1 to 64, but got 1000', video({ threadCount: 1000 })],
    ['outputProfile.encodes.videos[0].bitrate must be a bit rate such as 2000000, 128K or 2M, but got "fast"', video({ bitrate: 'fast' })],
    ['Unknown codec: bogus (expected: h264, h265, vp8, av1)', video({ codec: 'bogus' })],
    ['Unknown codec: gif (expected: jpeg, png, webp)', () => encodes({ images: [{ codec: 'gif' }] })],
    ['SkipFrames must be between 0 and 120', video({ skipFrames: 121 })],
    ['SkipFrames must be between 0 and 120', () => encodes({ images: [{ codec: 'png', skipFrames: -1 }] })],
    ['Codec must be specified for images', () => encodes({ images: [{ width: 320 }] })],
    ['Width must be an even number of pixels, but got 853', video({ width: 853 })],
    ['Height must be an even number of pixels, but got 481', video({ codec: 'vp8', width: 854, height: 481 })],
    ['Channel must be between 0 and 8', () => encodes({ audios: [{ codec: 'opus', bitrate: 1, channel: 9 }] })],
    [
      'Unknown Samplerate of aac: 45000 (expected: 8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000, 64000, 88200, 96000)',
      () => encodes({ audios: [{ codec: 'aac', bitrate: 1, samplerate: 45_000 }] }),
    ],
    ['Codec must be specified when bypass is false', () => encodes({ videos: [{ bypassIfMatch: { codec: 'eq' } }] })],
    ['KeyFrameInterval must be between 0 and 600', video({ keyFrameInterval: 601 })],
    ['KeyFrameInterval must be between 0 and 10000', video({ keyFrameInterval: 10_001, keyFrameIntervalType: 'time' })],
    ['KeyFrameIntervalType must be frame or time', video({ keyFrameIntervalType: 'x' })],
    ['BFrames must be between 0 and 16', video({ bFrames: 17 })],
    ['Preset must be slower, slow, medium, fast, or faster', video({ preset: 'x' })],
    ['Profile must be baseline, main or high', video({ profile: 'x' })],
    ['BypassIfMatch.Codec must be specified only eq', match({ codec: 'lte' })],
    ['BypassIfMatch.Width must specified only one of eq, lte, gte', match({ width: 'x' })],
    ['BypassIfMatch.Channel must specified only one of eq, lte, gte', match({ channel: 'x' })],
    ['BypassIfMatch.SAR must specified only one of eq', match({ sAR: 'gte' })],
    ['BypassIfMatch.Bitrate is not yet supported', match({ bitrate: 'eq' })],
    ['Duplicate playlist file name: f', () => profile({ playlists: [{ fileName: 'f' }, { fileName: 'f' }] })],
    ['Duplicate rendition name: r', playlist({ renditions: [{ name: 'r' }, { name: 'r' }] })],
    [
      'Playlist Error: rendition r refers to the video encode v, which the profile does not have',
      playlist({ renditions: [{ name: 'r', video: 'v' }] }),
    ],
    [
      'Playlist Error: rendition r refers to the audio encode a, which the profile does not have',
      playlist({ renditions: [{ name: 'r', audio: 'a' }] }),
    ],
    [
      // An image encode is no video.
      'Playlist Error: rendition r refers to the video encode i, which the profile does not have',
      () =>
        profile({
          encodes: { images: [{ name: 'i', codec: 'jpeg' }] },
          playlists: [{ fileName: 'f', renditions: [{ name: 'r', video: 'i' }] }],
        }),
    ],
    ['Playlist file name must not be empty', playlist({ fileName: '' })],
    ['Playlist file name must not contain chunklist: my_chunklist', playlist({ fileName: 'my_chunklist' })],
    [
      'Invalid EncodingType: x (all, encoded, bypassed)',
      playlist({ rendition_templates: [{ name: 't', video_template: { encoding_type: 'x' } }] }),
    ],
    [
      "Label 'E' is that of more than one subtitle rendition",
      subtitles({
        enable: true,
        rendition: [
          { label: 'E', language: 'en' },
          { label: 'E', language: 'en-GB' },
        ],
      }),
    ],
    ['Subtitle is enabled but no renditions are defined', subtitles({ enable: true })],
    [
      "Default label 'x' not found in subtitle renditions",
      subtitles({ enable: true, defaultLabel: 'x', rendition: [{ label: 'E', language: 'en' }] }),
    ],
    ['Server/Bind is not optional', () => server('')],
    [
      'Server/Bind/Providers/RTMP/Port must be a port of the protocol tcp, but got "1935/udp"',
      bind('<Providers><RTMP><Port>1935/udp</Port></RTMP></Providers>'),
    ],
    [
      'Server/Bind/Providers/RTMP/Port must be a port from 1 to 65535, such as 1935 or 1935/tcp, but got "70000"',
      bind('<Providers><RTMP><Port>70000</Port></RTMP></Providers>'),
    ],
    ['Server/IP[2] must be an IP address, `*` or a host name, but got "300.1.1.1"', () => server('<IP>300.1.1.1</IP><Bind/>')],
    // What is empty would be all addresses of the machine.
    [
      'Server/Bind/Managers/API/IP must be an IP address, `*` or a host name, but got ""',
      bind('<Managers><API><Port>8081</Port><IP>$' + '{env:MILLRACE_NO_SUCH_ADDRESS}</IP></API></Managers>'),
    ],
    ["Group must be a multicast address, but got '192.0.2.1'", multicast('<Group>192.0.2.1</Group>')],
    ["Group must be a multicast address, but got 'ff'", multicast('<Group>ff</Group>')],
    ["Group must be a multicast address, but got 'ff::1'", multicast('<Group>ff::1</Group>')],
    ["Source must be an IPv4 address, as Group is, but got 'fd00::2'", multicast('<Group>232.1.1.1</Group><Source>fd00::2</Source>')],
    ["Source must be an IPv6 address, as Group is, but got 'a.b'", multicast('<Group>ff3e::1%lo</Group><Source>a.b</Source>')],
  ])('%s', (message, action) => {
    expect(messageOf(action)).toBe(message);
  });

  test.each(['', 'a/b', 'a?b', 'a#b', 'a:b', 'a b', 'a\u0000', '..'])('a name of %j', (name) => {
    expect(messageOf(() => virtualHost({ name }))).toMatch(/^virtualHost\.name must not/);
    expect(messageOf(() => application({ name }))).toMatch(/^application\.name must not/);
    expect(messageOf(() => profile({ name }))).toMatch(/^outputProfile\.name must not/);
  });

  test('carry the path of the member', () => {
    const action = () =>
      application({ outputProfiles: { outputProfile: [{ name: 'p', outputStreamName: 'o', encodes: { videos: [{}] } }] } });
    expect(action).toThrow(expect.objectContaining({ path: 'application.outputProfiles.outputProfile[0].encodes.videos[0].codec' }));
  });
});

describe('echoes', () => {
  test.each([
    ['hlsChunklistPathDepth', 'hLSChunklistPathDepth', '0', 0],
    ['hLSChunklistPathDepth', 'hLSChunklistPathDepth', 2, 2],
    ['webrtcAutoAbr', 'webRtcAutoAbr', 'false', false],
  ])('%s is echoed under the key received, as what it is', (given, key, value, expected) => {
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

  test('one member under two spellings is refused', () => {
    expect(messageOf(() => application({ publishers: { llhls: { dVR: {}, dvr: {} } } }))).toBe(
      'application.publishers.llhls.dVR is given twice, the second time as dvr',
    );
  });

  test('relative paths are echoed as written, and macros stay as they are', () => {
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
