import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  ConfigErrors,
  defaultServerFile,
  defaultServerXml,
  formatConfigProblem,
  type LoadedServer,
  loadServerConfig,
  parseServerConfig,
} from './index.ts';

const FIXTURES = new URL('../../test/fixtures/config/', import.meta.url);
const macros = { env: { PORT: '1936', EMPTY: '' }, home: '/opt/millrace', currentPath: '/work' };

function document(inner: string, head = '<Server version="8">'): string {
  return `${head}\n<Type>origin</Type>\n<IP>*</IP>\n<Bind/>\n${inner}\n</Server>`;
}

function load(inner: string): LoadedServer {
  return parseServerConfig(document(inner), 'Server.xml', { macros });
}

function errorsOf(action: () => unknown): string[] {
  try {
    action();
  } catch (error) {
    if (error instanceof ConfigErrors) return error.errors.map(formatConfigProblem);
    throw error;
  }
  return [];
}

const host = (inner: string) => `<VirtualHosts><VirtualHost><Name>v</Name>${inner}</VirtualHost></VirtualHosts>`;
const live = (name: string, inner = '') => `<Application><Name>${name}</Name><Type>live</Type>${inner}</Application>`;

describe('the shipped configuration', () => {
  const { config, virtualHosts, warnings } = parseServerConfig(defaultServerXml(), defaultServerFile, { macros });

  test('loads without a warning', () => {
    expect(warnings).toEqual([]);
  });

  test('has the API on loopback only, with the token from the environment', () => {
    expect(config.bind.managers.api).toEqual({ ip: ['127.0.0.1'], port: 8081, workerCount: 1 });
    expect(config.managers.api.accessToken).toBe('');
    const env = { MILLRACE_ACCESS_TOKEN: 'secret' };
    expect(parseServerConfig(defaultServerXml(), defaultServerFile, { macros: { ...macros, env } }).config.managers.api.accessToken).toBe(
      'secret',
    );
  });

  test('has a read-only token when the environment contains one', () => {
    const tokens = (env: NodeJS.ProcessEnv) =>
      parseServerConfig(defaultServerXml(), defaultServerFile, { macros: { ...macros, env } }).config.managers.api.accessTokens;
    expect(tokens({})).toEqual([{ name: 'reader', value: '', access: 'read' }]);
    expect(tokens({ MILLRACE_READ_TOKEN: 'look' })).toEqual([{ name: 'reader', value: 'look', access: 'read' }]);
  });

  test('has one application that serves LL-HLS and HLS', () => {
    const [shipped] = virtualHosts;
    expect(shipped?.typed).toMatchObject({ name: 'default', host: { names: ['*'] } });
    const [app] = shipped?.applications ?? [];
    expect(app?.typed.publishers.llhls).toMatchObject({ chunkDuration: 0.5, partHoldBack: 1.5, segmentDuration: 6, segmentCount: 10 });
    expect(app?.typed.publishers.hls).toMatchObject({ segmentDuration: 4, segmentCount: 4 });
    expect(app?.echo['name']).toBe('app');
    expect(config.bind).toMatchObject({ providers: { rtmp: { port: 1935 } }, publishers: { llhls: { port: 3333 }, hls: { port: 3333 } } });
  });
});

describe('files of the reference server', () => {
  test.each(['server.xml', 'server-hooks.xml'])('%s loads without a warning', (name) => {
    expect(loadServerConfig(new URL(name, FIXTURES).pathname).warnings).toEqual([]);
  });

  test('an origin of a cluster, with everything that has an element, includes and the environment', () => {
    const env = { SECOND_HOST: 'two.test', OME_RTMP_PROV_PORT: '2935', OME_WEBRTC_CANDIDATE_IP: '192.0.2.7' };
    const { config, virtualHosts, warnings } = loadServerConfig(new URL('cluster-origin.xml', FIXTURES).pathname, {
      macros: { ...macros, env },
    });
    expect(warnings.map(({ message }) => message)).toEqual([expect.stringMatching(/PersistentStreams is deprecated/)]);
    expect(virtualHosts.map(({ typed, applications }) => [typed.name, applications.map((app) => app.typed.name)])).toEqual([
      ['second', ['show']],
      ['default', ['app', '*']],
    ]);
    expect(config.bind.providers.rtmp).toMatchObject({ port: 2935, tlsPort: 1936 });
    expect(config.bind.providers.mpegts?.port).toEqual({ protocol: 'udp', ranges: [{ first: 4000, last: 4005 }] });
    expect(virtualHosts[0]?.typed.host?.names).toEqual(['two.test']);
    expect(virtualHosts[0]?.applications[0]?.typed.publishers.llhls?.segmentDuration).toBe(4);
    const [app] = virtualHosts[1]?.applications ?? [];
    const [profile] = app?.typed.outputProfiles.outputProfile ?? [];
    expect(profile?.encodes.videos.map(({ bitrate }) => bitrate)).toEqual([undefined, 5_024_000, 2 * 1024 * 1024]);
    expect(virtualHosts[1]?.typed.origins?.origin[0]).toMatchObject({ location: '/app/stream', relay: true, pass: { scheme: 'ovt' } });
  });

  test('an edge of a cluster loads without managers and with one template', () => {
    const { config, virtualHosts, warnings } = loadServerConfig(new URL('edge.xml', FIXTURES).pathname, { macros });
    expect(warnings).toEqual([]);
    expect([config.type, config.ip, config.bind.managers.api]).toEqual(['edge', ['*'], undefined]);
    expect(config.bind.publishers.llhls).toMatchObject({ port: 3333, workerCount: 2 });
    expect(virtualHosts[0]?.applications[0]?.typed).toMatchObject({ name: '*', publishers: { llhls: { originMode: true } } });
    expect(virtualHosts[0]?.typed.origins?.origin[0]?.pass.urls.url).toEqual(['192.0.2.10:9000/']);
  });

  test('alerts and hooks are read', () => {
    const { config } = loadServerConfig(new URL('server-hooks.xml', FIXTURES).pathname);
    expect(config.alert).toMatchObject({
      url: 'http://127.0.0.1:9595/alert',
      timeout: 3000,
      rules: {
        ingress: { streamStatus: {}, minBitrate: 2_000_000, maxWidth: 320, minFramerate: 60, longKeyFrameInterval: {}, hasBFrames: {} },
        egress: { llhlsReady: {}, hlsReady: {}, transcodeStatus: {} },
        internalQueueCongestion: {},
      },
    });
    expect(config.virtualHosts[1]?.admissionWebhooks?.enables.publishers).toEqual(['webrtc', 'llhls', 'hls', 'thumbnail', 'srt']);
    expect(config.virtualHosts[0]?.applications[0]?.outputProfiles.outputProfile[0]?.encodes.audios[0]?.name).toBe('audio_0');
  });
});

describe('problems', () => {
  test('an unknown element is a warning with its path', () => {
    const { warnings } = load(
      host(
        `<Applications>${live('a', '<Publishers>\n<llhls/>\n<LLHLS><SegmentCuont>3</SegmentCuont></LLHLS></Publishers>')}\n<Bogus/></Applications>`,
      ),
    );
    expect(warnings.map(formatConfigProblem)).toEqual([
      'Server.xml:6: Unknown element: Server/VirtualHosts/VirtualHost/Applications/Application/Publishers/llhls (did you mean LLHLS?)',
      'Server.xml:7: Unknown element: Server/VirtualHosts/VirtualHost/Applications/Application/Publishers/LLHLS/SegmentCuont (did you mean SegmentCount?)',
      'Server.xml:8: Unknown element: Server/VirtualHosts/VirtualHost/Applications/Bogus',
    ]);
  });

  test('all wrong values are reported at once, with file, line, path, value and the permitted values', () => {
    const inner =
      '<PrivacyProtection>maybe</PrivacyProtection>\n<Modules><P2P>\n<MaxClientPeersPerHostPeer>few</MaxClientPeersPerHostPeer></P2P></Modules>';
    expect(errorsOf(() => load(inner))).toEqual([
      'Server.xml:5: Server/PrivacyProtection must be true or false, but got "maybe"',
      'Server.xml:7: Server/Modules/P2P/MaxClientPeersPerHostPeer must be a whole number of at least 0, but got "few"',
    ]);
  });

  test('rules between members carry path and line', () => {
    const profile =
      '<OutputProfiles><OutputProfile><Name>p</Name><OutputStreamName>o</OutputStreamName>\n<Encodes>\n<Video/></Encodes></OutputProfile></OutputProfiles>';
    expect(errorsOf(() => load(host(`<Applications>${live('a')}${live('b', profile)}</Applications>`)))).toEqual([
      'Server.xml:7: Server/VirtualHosts/VirtualHost/Applications/Application[2]/OutputProfiles/OutputProfile/Encodes/Video/Codec: Codec must be specified when bypass is false',
    ]);
  });

  test.each([
    [
      'two equal names',
      `<VirtualHosts>${'<VirtualHost><Name>v</Name></VirtualHost>'.repeat(2)}</VirtualHosts>`,
      /Duplicate virtual host name: v/,
    ],
    ['no name', '<VirtualHosts><VirtualHost/></VirtualHosts>', /VirtualHost\/Name is not optional/],
    ['an empty name', '<VirtualHosts><VirtualHost><Name/></VirtualHost></VirtualHosts>', /VirtualHost\/Name must not be empty/],
  ])('%s', (_title, inner, expected) => {
    expect(errorsOf(() => load(inner)).join('\n')).toMatch(expected);
  });

  test('a TLS port of the API needs a certificate', () => {
    const text = document('').replace('<Bind/>', '<Bind><Managers><API><TLSPort>8082</TLSPort></API></Managers></Bind>');
    expect(errorsOf(() => parseServerConfig(text, 'Server.xml', { macros }))).toEqual([
      'Server.xml:4: Server/Bind/Managers/API/TLSPort needs a certificate: Server/Managers/Host/TLS',
    ]);
  });

  test('names that the API cannot address, repeated and deprecated elements, and stray text are warnings', () => {
    const inner = `${host('<CrossDomains/>').replace('<Name>v</Name>', '<Name>my host</Name>')}<Name>a</Name><Name>b</Name><Modules>x</Modules>`;
    expect(load(inner).warnings.map(({ message }) => message)).toEqual([
      'Server/Name is given more than once; only the first counts',
      'Server/Modules has no value of its own; the text is ignored',
      'Server/VirtualHosts/VirtualHost/Name must not contain "/", "?", "#", ":" or white space, but got "my host"; it cannot be addressed through the API',
      'Server/VirtualHosts/VirtualHost/CrossDomains is deprecated; use Defaults/CrossDomains or CrossDomains of a publisher',
    ]);
  });

  test.each(['7', '11', 'x'])('version %s is refused', (version) => {
    expect(errorsOf(() => parseServerConfig(document('', `<Server version="${version}">`), 'f', { macros }))).toEqual([
      `f:1: Server/@version must be a whole number from 8 to 10, but got "${version}"`,
    ]);
  });

  test.each(['8', '9', '10'])('version %s is read', (version) => {
    expect(parseServerConfig(document('', `<Server version="${version}">`), 'f', { macros }).config.version).toBe(Number(version));
  });

  test.each([
    ['', /no element/],
    ['<Server>', /Unclosed tag 'Server'/],
    ['<Server><Name>', /never closed: <Server>, <Name>/],
    ['<Server></Bogus>', /not well-formed/],
    ['<A/>', /The root element must be <Server>, but is <A>/],
    ['<Server/><Server/>', /There must be one root element/],
    ['<Server><Name>&bogus;</Name></Server>', /Unknown entity: "&bogus;"/],
    ['<!DOCTYPE x [<!ENTITY a "aa"><!ENTITY b "&a;&a;">]><Server><Name>&b;</Name></Server>', /Unknown entity: "&b;"/],
    ['<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/hostname">]><Server><Name>&a;</Name></Server>', /cannot be read/],
    [`${'<Server>'.repeat(50_000)}${'</Server>'.repeat(50_000)}`, /cannot be read/],
    ['<Server><__proto__/></Server>', /cannot be read/],
  ])('%.60s', (xml, expected) => {
    expect(errorsOf(() => parseServerConfig(xml, 'f', { macros })).join('\n')).toMatch(expected);
  });

  test('a missing file', () => {
    expect(errorsOf(() => loadServerConfig('/nonexistent/Server.xml'))[0]).toMatch(
      /^\/nonexistent\/Server\.xml: The file cannot be read: ENOENT/,
    );
  });
});

describe('text', () => {
  test.each([
    ['a &amp; b &lt;c&gt; &#65;&#x42;', 'a & b <c> AB'],
    ['<![CDATA[a &amp; <b>]]>', 'a &amp; <b>'],
    ['  one\n two ', 'one\n two'],
    ['a<!-- no -->b', 'ab'],
    ['$' + '{env:PORT}-$' + '{env:NONE}-$' + '{env:NONE:x:y}-$' + '{env:EMPTY:d}', '1936--x:y-'],
    [
      '$' + '{ome:Home} $' + '{ome:CurrentPath} $' + '{ome:Other} $' + '{OriginStreamName}',
      '/opt/millrace /work $' + '{ome:Other} $' + '{OriginStreamName}',
    ],
    ['$' + '{env:HOSTNAME}', hostname()],
  ])('%j', (written, expected) => {
    expect(load(`<Name>${written}</Name>`).config.name).toBe(expected);
  });

  test('a byte order mark and other line endings are accepted', () => {
    const text = `\uFEFF${document('<PrivacyProtection>x</PrivacyProtection>').replaceAll('\n', '\r\n')}`;
    expect(errorsOf(() => parseServerConfig(text, 'f', { macros }))[0]).toMatch(/^f:5: /);
  });

  test('ignored elements are left out, without a warning', () => {
    const { config, warnings } = load('<Name ignore="true">a</Name><Bogus ignore="TRUE"/>');
    expect([config.name, warnings]).toEqual(['', []]);
  });
});

describe('includes', () => {
  let directory: string;
  const put = (name: string, text: string) => writeFileSync(join(directory, name), text);
  const read = (inner: string) => {
    put('Server.xml', document(inner));
    return loadServerConfig(join(directory, 'Server.xml'));
  };

  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), 'millrace-config-'));
    put('VHost1.xml', `<VirtualHost><Name>one</Name><Applications><Application include="App.xml"/></Applications></VirtualHost>`);
    put('VHost2.xml', '<VirtualHost><Name>two</Name>\n<Distribution>a<b/></Distribution></VirtualHost>');
    put('App.xml', live('shared'));
    put('Modules.xml', '<Modules><HTTP2><Enable>false</Enable></HTTP2></Modules>');
    put('loop.xml', '<VirtualHost include="loop.xml"/>');
  });
  afterAll(() => rmSync(directory, { recursive: true }));

  test('a repeatable element includes all matching files', () => {
    const { config } = read(
      '<VirtualHosts><VirtualHost include="VHost1*.xml"/><VirtualHost include="None*.xml"/><VirtualHost><Name>v</Name></VirtualHost></VirtualHosts>',
    );
    expect(config.virtualHosts.map(({ name }) => name)).toEqual(['one', 'v']);
    expect(config.virtualHosts[0]?.applications[0]?.name).toBe('shared');
  });

  test('another element includes exactly one file', () => {
    expect(read('<Modules include="Modules.xml"/>').config.modules.http2.enable).toBe(false);
    expect(errorsOf(() => read('<Modules include="None.xml"/>'))[0]).toMatch(
      /Server\/Modules must include exactly one file, but "None\.xml" matches 0$/,
    );
  });

  test('errors name the included file and its line', () => {
    expect(errorsOf(() => read('<VirtualHosts><VirtualHost include="VHost2.xml"/></VirtualHosts>'))[0]).toMatch(
      /VHost2\.xml:2: Server\/VirtualHosts\/VirtualHost\/Distribution must be text/,
    );
  });

  test('another root element and endless includes are refused', () => {
    expect(errorsOf(() => read('<VirtualHosts><VirtualHost include="App.xml"/></VirtualHosts>'))[0]).toMatch(
      /must be <VirtualHost>, but is <Application>/,
    );
    expect(errorsOf(() => read('<VirtualHosts><VirtualHost include="loop.xml"/></VirtualHosts>'))[0]).toMatch(/include files without end/);
  });

  test('relative paths start at the directory of the file', () => {
    const { config, virtualHosts } = read(
      host('<Host><Names><Name>*</Name></Names><TLS><CertPath>a.crt</CertPath><KeyPath>/b.key</KeyPath></TLS></Host>'),
    );
    expect(config.virtualHosts[0]?.host?.tls).toEqual({ certPath: join(directory, 'a.crt'), keyPath: '/b.key' });
    expect(virtualHosts[0]?.echo['host']).toEqual({ names: ['*'], tls: { certPath: 'a.crt', keyPath: '/b.key' } });
  });

  test('numbers and booleans are echoed as such, with macros and units resolved; texts stay texts', () => {
    const encodes = '<Audio><Codec>opus</Codec><Bitrate>128K</Bitrate><Channel> 2 </Channel></Audio><Video><Bypass>TRUE</Bypass></Video>';
    const profile = `<OutputProfile><Name>1</Name><OutputStreamName>true</OutputStreamName><Encodes>${encodes}</Encodes></OutputProfile>`;
    const inside = `<OutputProfiles>${profile}</OutputProfiles><Providers><WebRTC><Timeout>\${env:PORT}</Timeout></WebRTC></Providers>`;
    const hooks =
      '<AdmissionWebhooks><ControlServerUrl>http://a</ControlServerUrl><SecretKey>1234</SecretKey><Timeout>30</Timeout></AdmissionWebhooks>';
    const [shown] = load(host(`${hooks}<Applications>${live('7', inside)}</Applications>`)).virtualHosts;
    expect(shown?.echo['admissionWebhooks']).toMatchObject({ secretKey: '1234', timeout: 30 });
    const [app] = shown?.applications ?? [];
    expect(app?.echo).toMatchObject({
      name: '7',
      outputProfiles: {
        outputProfile: [
          {
            name: '1',
            outputStreamName: 'true',
            encodes: { audios: [{ codec: 'opus', bitrate: 131_072, channel: 2 }], videos: [{ bypass: true }] },
          },
        ],
      },
      providers: { webrtc: { timeout: 1936 } },
    });
  });

  test('a container without items is echoed as an empty object', () => {
    expect(read(host('<Host><Names/></Host>')).virtualHosts[0]?.echo['host']).toEqual({ names: {} });
  });
});

test('a file cut off anywhere is refused with a ConfigErrors', () => {
  const whole = document(host(`<Host><Names><Name>é</Name></Names></Host><Applications>${live('a')}</Applications><!-- c -->`));
  const bytes = Buffer.from(whole);
  for (let length = 0; length < bytes.length; length += 1) {
    const cut = bytes.subarray(0, length).toString();
    expect(() => parseServerConfig(cut, 'f', { macros }), cut).toThrow(ConfigErrors);
  }
  expect(readFileSync(defaultServerFile, 'utf8')).toBe(defaultServerXml());
});

describe('a port for MPEG-TS', () => {
  const fed = (name: string, ...streams: string[]) => {
    const entries = streams.map((port) => `<Stream><Name>s${port}</Name><Port>${port}/udp</Port></Stream>`).join('');
    return live(name, `<Providers><MPEGTS><StreamMap>${entries}</StreamMap></MPEGTS></Providers>`);
  };
  const applications = (...each: string[]) => host(`<Applications>${each.join('')}</Applications>`);

  test('feeds one stream: two streams with one port are named', () => {
    const complaint = (inner: string) => errorsOf(() => load(inner)).join();
    expect(complaint(applications(fed('a', '4000-4004'), fed('b', '4003')))).toMatch(
      /MPEG-TS port 4003 feeds both stream 's4000-4004' of application 'v\/a' and stream 's4003' of application 'v\/b'/,
    );
    expect(complaint(applications(fed('a', '4000', '4000')))).toMatch(/port 4000 .*'v\/a' and .*'v\/a'/);
    expect(complaint(applications(fed('a', '4000'), `\n\n${fed('b', '3999', '4000')}`))).toMatch(
      /^Server\.xml:7: Server\/VirtualHosts\/VirtualHost\/Applications\/Application\[2\]\/Providers\/MPEGTS\/StreamMap\/Stream\[2\]: MPEG-TS port 4000 /,
    );
    expect(complaint(applications(fed('a', '4000'), fed('b', '4001')))).toBe('');
  });
});
