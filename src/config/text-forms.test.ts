/** Texts that become headers, URLs and names are refused where they are accepted, with the place of the fault. */
import { describe, expect, test } from 'vitest';
import { ConfigError, ConfigErrors, parseServerConfig, readApplication, readVirtualHost } from './index.ts';
import { type TextForm, textFault } from './text-forms.ts';

const CASES: Readonly<Record<TextForm, { readonly good: readonly string[]; readonly bad: readonly string[] }>> = {
  'header-name': {
    good: ['X-My-Header', 'access-control-allow-origin', "!#$%&'*+.^_`|~1aZ"],
    bad: ['', 'Bad Name', 'a:b', 'ü', 'a\r\nb', 'Content-Length', 'transfer-encoding', 'Connection', 'Upgrade', ':status'],
  },
  'header-value': { good: ['', 'no-store', 'a\tb', 'caf\u00e9'], bad: ['a\r\nSet-Cookie: b', 'a\nb', '\0', '\u007f', '\u20ac'] },
  quoted: { good: ['', 'pass "word"'], bad: ['a\nb', '\u20ac'] },
  host: { good: ['*', '*.example.org', '192.0.2.1', '::1', 'localhost', 'a?b', ''], bad: ['a b', 'http://a', 'a/b', 'a@b', '\u202ea'] },
  origin: { good: ['*', 'null', 'https://*.example.org', '*.example.org:8080', ''], bad: ['a b', 'https://ü', 'a\r\nb'] },
  'host-name': { good: ['origin-1.example', '192.0.2.1', '[2001:db8::1]'], bad: ['', 'a b', 'a:80', 'a/b', 'user@a', 'a\u0085'] },
  location: { good: ['/app/stream', '/', ''], bad: ['/a b', '/a\r\n', '/\u202e'] },
  source: { good: ['origin:9000/app/stream', 'u:p@h/x?y=z', '[::1]:9000', 'evening show.mp4'], bad: ['', 'h/a\r\nb', 'h\u2066'] },
  'ice-server': {
    good: ['stun:a:3478', 'turn:[::1]:3478?transport=tcp', '192.0.2.1:3478'],
    bad: ['', 'turn:a>;b', 'turn:ü', 'turn:a b', 'turn:a\r\nb'],
  },
  url: { good: ['', 'http://c', 'https://c/x?y'], bad: ['c', 'ftp://c', 'http://', 'http://c d', 'http://c/\u0007'] },
  'written-path': {
    good: ['', '/${Stream}.mp4', 'a/..b/c d.ts'],
    bad: ['/${Stream}\0.mp4', '../x.mp4', 'a/../../b.ts', '/a\u202e.mp4', '/a\r\n.xml'],
  },
  'stream-name': { good: ['stream', 'stream_${Port}'], bad: ['', '..', 'a/b', 'a_${Other:x}', 'a\u009bb'] },
};

describe.each(Object.entries(CASES))('%s', (form, { good, bad }) => {
  test.each(good)('accepts %j', (text) => {
    expect(textFault(form as TextForm, text)).toBeUndefined();
  });
  test.each(bad)('refuses %j', (text) => {
    expect(textFault(form as TextForm, text)?.text).toMatch(/^must /);
  });
});

function messageOf(action: () => unknown): string {
  try {
    action();
  } catch (error) {
    if (error instanceof ConfigError) return error.message;
    throw error;
  }
  return 'accepted';
}

const app = (members: object) => () => readApplication({ name: 'a', type: 'live', ...members });
const vhost = (members: object) => () => readVirtualHost({ name: 'v', ...members });
const crossDomains = (members: object) => ({ crossDomains: { urls: ['*'], ...members } });
const BAD_KEY = crossDomains({ headers: [{ key: 'Bad Name', value: 'x' }] });
const origin = (location: string, scheme: string, url: string) => ({
  origins: { origin: [{ location, pass: { scheme, urls: { url: [url] } } }] },
});
const profile = (members: object) => ({
  outputProfiles: { outputProfile: [{ name: 'p', outputStreamName: 'o', encodes: { videos: [{ bypass: true }] }, ...members }] },
});

test.each([
  [
    'LL-HLS header',
    app({ publishers: { llhls: BAD_KEY } }),
    'application.publishers.llhls.crossDomains.headers[0].key must be the name of a header',
  ],
  ['HLS header', app({ publishers: { hls: BAD_KEY } }), 'application.publishers.hls.crossDomains.headers[0].key must'],
  ['thumbnail header', app({ publishers: { thumbnail: BAD_KEY } }), 'application.publishers.thumbnail.crossDomains.headers[0].key must'],
  ['WebRTC header', app({ providers: { webrtc: BAD_KEY } }), 'application.providers.webrtc.crossDomains.headers[0].key must'],
  [
    'header value',
    app({ publishers: { llhls: crossDomains({ headers: [{ key: 'X', value: 'a\r\nSet-Cookie: b' }] }) } }),
    'application.publishers.llhls.crossDomains.headers[0].value must be the value of a header: one line without control characters, but got "a\\r\\nSet-Cookie: b"',
  ],
  [
    'origin',
    app({ publishers: { llhls: { crossDomains: { urls: ['a b'] } } } }),
    'application.publishers.llhls.crossDomains.urls[0] must be an origin',
  ],
  ['host name', vhost({ host: { names: ['a b'] } }), 'virtualHost.host.names[0] must not contain white space'],
  [
    'name of a virtual host',
    () => readVirtualHost({ name: 'a\u202eb' }),
    'virtualHost.name must not contain characters that cannot be seen, but got "a\\u202eb"',
  ],
  [
    'name with a C1 control',
    () => readVirtualHost({ name: 'a\u009bb' }),
    'virtualHost.name must not contain characters that cannot be seen, but got "a\\u009bb"',
  ],
  [
    'name with half a character',
    () => readVirtualHost({ name: 'a\ud800' }),
    'virtualHost.name must not contain characters that cannot be seen, but got "a\\ud800"',
  ],
  [
    'name of an application',
    () => readApplication({ name: 'a\u2066', type: 'live' }),
    'application.name must not contain characters that cannot be seen',
  ],
  ['location', vhost(origin('/a b', 'ovt', 'h/a/s')), 'virtualHost.origins.origin[0].location must be a path'],
  [
    'source',
    vhost(origin('/a', 'ovt', 'h\r\n/a')),
    'virtualHost.origins.origin[0].pass.urls.url[0] must not contain characters that cannot be seen',
  ],
  [
    'host of the origin map',
    vhost({ originMapStore: { originHostName: 'a b', redisServer: { host: 'r:1' } } }),
    'virtualHost.originMapStore.originHostName must be a host name or an address',
  ],
  [
    'control server',
    vhost({ admissionWebhooks: { controlServerUrl: 'c', secretKey: 's' } }),
    'virtualHost.admissionWebhooks.controlServerUrl must be a URL that begins with http:// or https://',
  ],
  [
    'output stream',
    app(profile({ outputStreamName: 'a\u0085' })),
    'outputProfile.outputStreamName must not contain characters that cannot be seen',
  ],
  ['output stream ..', app(profile({ outputStreamName: '..' })), 'outputProfile.outputStreamName must not be ".."'],
  ['playlist file', app(profile({ playlists: [{ fileName: '../../x' }] })), 'Playlist file name must not contain "/"'],
  ['playlist file ..', app(profile({ playlists: [{ fileName: '..' }] })), 'Playlist file name must not be ".."'],
  [
    'stream of MPEG-TS',
    app({ providers: { mpegts: { streams: { stream: [{ name: 'a/${Port}' }] } } } }),
    'name must not contain "/", "?", "#", ":" or white space, but got "a/${Port}"',
  ],
  [
    'file of recordings',
    app({ publishers: { file: { filePath: '/${Stream}\0.mp4' } } }),
    'application.publishers.file.filePath must not contain characters that cannot be seen, but got "/${Stream}\\u0000.mp4"',
  ],
  [
    'file of information',
    app({ publishers: { file: { infoPath: '/../${Stream}.xml' } } }),
    'application.publishers.file.infoPath must not contain ".."',
  ],
  ['stream of a file', app({ providers: { file: { streamMap: { stream: [{ name: 'a b', path: 'x' }] } } } }), 'must not contain "/"'],
])('the API refuses a bad %s', (_what, read, message) => {
  const said = messageOf(read);
  expect(said).toContain(message);
  expect(said.split('but got').length).toBeLessThan(3);
});

const server = (inner: string) =>
  parseServerConfig(
    `<Server version="8"><Type>origin</Type><IP>*</IP>${inner.includes('<Bind>') ? '' : '<Bind/>'}${inner}</Server>`,
    'S.xml',
    {
      macros: { env: { HEADER: 'Bad Name' }, home: '/', currentPath: '/' },
    },
  );
const llhls = (inner: string) =>
  `<VirtualHosts><VirtualHost><Name>v</Name><Host><Names><Name>*</Name></Names></Host><Applications><Application><Name>a</Name><Type>live</Type>
  <Publishers><LLHLS><CrossDomains>${inner}</CrossDomains></LLHLS></Publishers></Application></Applications></VirtualHost></VirtualHosts>`;

test('a file with an invalid header name is refused, even when a macro contains it', () => {
  for (const key of ['Bad Name', '$' + '{env:HEADER}']) {
    const inner = llhls(`<Url>*</Url><Header><Key>${key}</Key><Value>x</Value></Header>`);
    expect(() => server(inner)).toThrow(ConfigErrors);
    expect(() => server(inner)).toThrow(
      'Header/Key must be the name of a header: letters, digits and -, without blanks, but got "Bad Name"',
    );
  }
});

test('a file with an origin that matches nothing is accepted with a warning', () => {
  const { warnings } = server(llhls('<Url>a b</Url>'));
  expect(warnings.map(({ message }) => message)).toEqual([
    expect.stringContaining('CrossDomains/Url must be an origin such as https://*.example.org, but got "a b"; it cannot be used'),
  ]);
});

test('a file with an ICE server that does not fit a header is refused', () => {
  const inner =
    '<Bind><Providers><WebRTC><IceServers><IceServer><Urls><Url>turn:a b</Url></Urls></IceServer></IceServers></WebRTC></Providers></Bind>';
  expect(() => server(inner)).toThrow('must be a URL such as turn:host:port?transport=tcp');
});

test('macros in the API are not expanded, and refused in fields that exclude their characters', () => {
  const MACRO = '$' + '{env:HOME}';
  const read = vhost({ distribution: MACRO, host: { names: [MACRO], tls: { certPath: MACRO, keyPath: 'k' } } })();
  expect(read.typed).toMatchObject({ distribution: MACRO, host: { names: [MACRO], tls: { certPath: MACRO } } });
  expect(messageOf(() => readVirtualHost({ name: `v_${MACRO}` }))).toBe(
    `virtualHost.name must not contain "/", "?", "#", ":" or white space, but got "v_${MACRO}"`,
  );
  expect(messageOf(app({ publishers: { llhls: { segmentCount: MACRO } } }))).toContain('must be a whole number');
});
