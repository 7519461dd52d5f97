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
      // A rendition takes video from video encodes only.
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
    // An empty text would mean all addresses of the machine.
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
