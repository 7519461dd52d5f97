import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { RecordingLogger } from '../../test/fakes/recording-logger.ts';
import { defaultServerXml, parseServerConfig } from '../config/index.ts';
import { findingsOf, logFindings } from './findings.ts';
import { outsidePorts } from './port-findings.ts';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'millrace-findings-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

interface Parts {
  readonly ip?: string;
  readonly bind?: string;
  readonly storage?: string;
  readonly host?: string;
  readonly managers?: string;
  readonly providers?: string;
  readonly publishers?: string;
  readonly profiles?: string;
  readonly sourceLoss?: string;
  readonly head?: string;
}

/** Every part on a line of its own: 3 ip, 4 storage, 5 bind, 6 managers, 9 host, 11 providers, 12 publishers, 13 output profiles. */
function load({
  ip = '<IP>*</IP>',
  bind = '',
  storage = '',
  host = '',
  managers = '',
  providers = '',
  publishers = '',
  profiles = '',
  sourceLoss = '',
  head = '',
}: Parts) {
  const xml = `<Server version="8">
<Type>origin</Type>
${ip}
${storage}${head}
<Bind>${bind}</Bind>
<Managers><Host><Names><Name>*</Name></Names>${managers}</Host></Managers>
<VirtualHosts><VirtualHost>
<Name>v</Name>
<Host><Names><Name>*</Name></Names>${host}</Host>
<Applications><Application><Name>a</Name><Type>live</Type>
<Providers>${providers}</Providers>
<Publishers>${publishers}</Publishers>
<OutputProfiles>${profiles}</OutputProfiles>
<SourceLoss>${sourceLoss}</SourceLoss>
</Application></Applications>
</VirtualHost></VirtualHosts>
</Server>`;
  return parseServerConfig(xml, 'S.xml', { directory: folder });
}

function found(parts: Parts): string[] {
  return findingsOf(load(parts), join(folder, 'state')).all.map(({ severity, text }) => `${severity}: ${text.replaceAll(folder, '')}`);
}

const rtmp = (port: number) => `<Providers><RTMP><Port>${port}</Port></RTMP></Providers>`;
const api = (port: number, ip = '') => `<Managers><API>${ip}<Port>${port}</Port></API></Managers>`;
const BIND = 'Server/Bind';

describe('a port used twice', () => {
  const ice = (range: string) => `<WebRTC><Signalling><Port>3333</Port></Signalling><IceCandidates>
<IceCandidate>*:${range}/udp</IceCandidate><TcpRelay>*:3478</TcpRelay></IceCandidates></WebRTC>`;

  test.each([
    [
      `${api(1935)}${rtmp(1935)}`,
      `error: S.xml:5: ${BIND}/Providers/RTMP/Port: TCP port 1935 is already used by ${BIND}/Managers/API/Port (line 5)`,
    ],
    [
      `<Managers><API><Port>8081</Port></API>\n<Metrics><Port>8081</Port></Metrics></Managers>`,
      `error: S.xml:6: ${BIND}/Managers/Metrics/Port: TCP port 8081 is already used by ${BIND}/Managers/API/Port (line 5)`,
    ],
    [
      '<Providers><SRT><Port>9998</Port></SRT></Providers>\n<Publishers><SRT><Port>9990-9999</Port></SRT></Publishers>',
      `error: S.xml:6: ${BIND}/Publishers/SRT/Port: UDP port 9998 is already used by ${BIND}/Providers/SRT/Port (line 5)`,
    ],
    [
      '<Publishers><LLHLS><Port>3333</Port></LLHLS>\n<HLS><TLSPort>3333</TLSPort></HLS></Publishers>',
      `error: S.xml:6: ${BIND}/Publishers/HLS/TLSPort: TCP port 3333 is already used by ${BIND}/Publishers/LLHLS/Port (line 5)`,
    ],
    [
      `<Providers><MPEGTS><Port>10002/udp</Port></MPEGTS></Providers><Publishers>${ice('10000-10004')}</Publishers>`,
      `error: S.xml:5: ${BIND}/Publishers/WebRTC/IceCandidates/IceCandidate: UDP port 10002 is already used by ${BIND}/Providers/MPEGTS/Port (line 5)`,
    ],
    [
      `<Publishers>${ice('10000')}<OVT><Port>10000</Port></OVT></Publishers>`,
      `error: S.xml:5: ${BIND}/Publishers/WebRTC/IceCandidates/IceCandidate: TCP port 10000 is already used by ${BIND}/Publishers/OVT/Port (line 6)`,
    ],
    [
      `${rtmp(9443)}\n<Publishers><OVT><TLSPort>9443</TLSPort></OVT></Publishers>`,
      `error: S.xml:6: ${BIND}/Publishers/OVT/TLSPort: TCP port 9443 is already used by ${BIND}/Providers/RTMP/Port (line 5)`,
    ],
    [
      `${rtmp(3478)}<Publishers>${ice('10000')}</Publishers>`,
      `error: S.xml:5: ${BIND}/Publishers/WebRTC/IceCandidates/TcpRelay: TCP port 3478 is already used by ${BIND}/Providers/RTMP/Port (line 5)`,
    ],
  ])('%s', (bind, expected) => {
    expect(found({ bind })).toEqual([expected]);
  });

  test('is accepted when it is shared, of another protocol or on another address', () => {
    const both = `<Providers>${ice('10000-10004')}</Providers><Publishers>${ice('10000-10004')}<LLHLS><Port>3333</Port></LLHLS></Publishers>`;
    expect(found({ bind: both })).toEqual([]);
    expect(found({ bind: '<Providers><RTMP><Port>9999</Port></RTMP><SRT><Port>9999</Port></SRT></Providers>' })).toEqual([]);
    expect(found({ ip: '<IP>127.0.0.1</IP>', bind: `${api(1935, '<IP>127.0.0.2</IP>')}${rtmp(1935)}` })).toEqual([]);
    expect(found({ ip: '<IP>127.0.0.1</IP>', bind: `${api(1935, '<IP>*</IP>')}${rtmp(1935)}` })).toHaveLength(1);
  });

  test('the shipped configuration has no findings', () => {
    expect(findingsOf(parseServerConfig(defaultServerXml(), 'S.xml'), folder).all).toEqual([]);
  });
});

test("a missing folder of a schedule's media is reported, the folder of its files is created", () => {
  writeFileSync(join(folder, 'taken'), '');
  mkdirSync(join(folder, 'media'));
  const schedule = (media: string, files: string) => ({
    providers: `<Schedule><MediaRootDir>${media}</MediaRootDir><ScheduleFilesDir>${files}</ScheduleFilesDir></Schedule>`,
  });
  const at = 'S.xml:11: Server/VirtualHosts/VirtualHost/Applications/Application/Providers/Schedule';
  expect(found(schedule('media', 'missing'))).toEqual([]);
  expect(found(schedule('missing', 'taken'))).toEqual([
    `warn: ${at}/MediaRootDir: /missing is not a folder: scheduled files cannot be played`,
    `warn: ${at}/ScheduleFilesDir: /taken is not a folder`,
  ]);
});

test('a stand-in that is missing, or outside of its folder, is reported', () => {
  mkdirSync(join(folder, 'media', 'deep'), { recursive: true });
  writeFileSync(join(folder, 'media', 'slate one.mp4'), '');
  writeFileSync(join(folder, 'secret.mp4'), '');
  symlinkSync(join(folder, 'secret.mp4'), join(folder, 'media', 'link.mp4'));
  const standIn = (url: string) => ({ sourceLoss: `<StandIn><Url>${url}</Url><MediaRootDir>media</MediaRootDir></StandIn>` });
  const at =
    'warn: S.xml:14: Server/VirtualHosts/VirtualHost/Applications/Application/SourceLoss/StandIn/Url: the stand-in cannot be played:';
  expect(found(standIn('file:///slate%20one.mp4'))).toEqual([]);
  expect(found(standIn('stream://v/a/s'))).toEqual([]);
  expect(found(standIn('file:///none.mp4'))).toEqual([expect.stringContaining(`${at} ENOENT`)]);
  expect(found(standIn('file:///deep'))).toEqual([`${at} /media/deep is not a file`]);
  expect(found(standIn('file:///link.mp4'))).toEqual([`${at} /media/link.mp4 leads out of /media through a symbolic link`]);
});

test('ports of stream maps without a listener are reported', () => {
  const map = '<MPEGTS><StreamMap><Stream><Name>s</Name><Port>4000,4001-4004,4010</Port></Stream></StreamMap></MPEGTS>';
  const at = 'warn: S.xml:11: Server/VirtualHosts/VirtualHost/Applications/Application/Providers/MPEGTS/StreamMap/Stream/Port';
  expect(found({ providers: map, bind: '<Providers><MPEGTS><Port>4000/udp</Port></MPEGTS></Providers>' })).toEqual([
    `${at}: nothing listens on port 4001-4004, 4010: Server/Bind/Providers/MPEGTS/Port opens 4000 only`,
  ]);
  expect(found({ providers: map })).toEqual([
    `${at}: nothing listens on port 4000-4004, 4010: Server/Bind/Providers/MPEGTS/Port is missing`,
  ]);
  const srt = '<SRT><Port>9999</Port><StreamMap><Stream><Port>9000</Port><StreamPath>v/a/s</StreamPath></Stream></StreamMap></SRT>';
  expect(found({ bind: `<Providers>${srt}</Providers>` })).toEqual([
    'warn: S.xml:5: Server/Bind/Providers/SRT/StreamMap/Stream/Port: nothing listens on port 9000: Server/Bind/Providers/SRT/Port opens 9999 only',
  ]);
});

test('a channel folder that is a file is reported, a missing folder is created', () => {
  writeFileSync(join(folder, 'taken'), '');
  const multiplex = (path: string) => ({ providers: `<Multiplex><MuxFilesDir>${path}</MuxFilesDir></Multiplex>` });
  const at = 'S.xml:11: Server/VirtualHosts/VirtualHost/Applications/Application/Providers/Multiplex/MuxFilesDir';
  expect(found(multiplex('taken'))).toEqual([`warn: ${at}: /taken is not a folder`]);
  expect(found(multiplex('missing'))).toEqual([]);
});

test('missing media and map files, and paths that will be refused, are reported', () => {
  mkdirSync(join(folder, 'media'));
  writeFileSync(join(folder, 'media/there.mp4'), '');
  const stream = (path: string) => `<Stream><Name>s</Name><Path>${path}</Path></Stream>`;
  const file = `<FILE><RootPath>media</RootPath><StreamMap>${stream('there.mp4')}${stream('gone.mp4')}</StreamMap></FILE>`;
  const dump =
    '<Dumps><Dump><Enable>true</Enable><TargetStreamName>*</TargetStreamName><OutputPath>/out/${StreamName}</OutputPath></Dump></Dumps>';
  const dvr = '<DVR><Enable>true</Enable><TempStoragePath>/out</TempStoragePath></DVR>';
  const app = 'S.xml:11: Server/VirtualHosts/VirtualHost/Applications/Application/Providers';
  const pub = 'S.xml:12: Server/VirtualHosts/VirtualHost/Applications/Application/Publishers';
  const outside = 'is outside of the folders that Server/Storage/AllowedRoots allows';
  const parts = {
    providers: file,
    publishers: `<FILE><FilePath>/out/x.mp4</FilePath><StreamMap><Enable>true</Enable><Path>map.xml</Path></StreamMap></FILE>
<LLHLS>${dump}${dvr}</LLHLS>`,
    storage: '<Storage><AllowedRoots><Path>recordings</Path></AllowedRoots></Storage>',
  };
  expect(found(parts)).toEqual([
    `warn: ${pub}/FILE/FilePath: "/out/x.mp4" ${outside}`,
    `warn: ${pub.replace(':12', ':13')}/LLHLS/DVR/TempStoragePath: "/out" ${outside}`,
    `warn: ${pub.replace(':12', ':13')}/LLHLS/Dumps/Dump/OutputPath: "/out/\${StreamName}" ${outside}`,
    `warn: ${app}/FILE/StreamMap/Stream[2]/Path: the file of stream 's' cannot be played: ENOENT: no such file or directory, stat '/media/gone.mp4'`,
    `warn: ${pub}/FILE/StreamMap/Path: the map file cannot be read: ENOENT: no such file or directory, stat '/map.xml'`,
  ]);
  expect(found({ ...parts, storage: '' })).toHaveLength(2);
  // Whatever lies in a RootPath that is not allowed: the RootPath is what has to be changed.
  const publishers = '<FILE><RootPath>/out</RootPath><FilePath>/x.mp4</FilePath></FILE>';
  const root = found({ publishers, storage: parts.storage });
  expect(root).toEqual([`warn: ${pub}/FILE/RootPath: "/out" ${outside}`]);
  expect(found({ publishers: publishers.replace('/out', join(folder, 'state/recordings/out')), storage: parts.storage })).toEqual([]);
});

test('unusable overlay maps are reported, and so are their images', () => {
  const profiles = (path: string) => `<MediaOptions><Overlays><Enable>true</Enable>${path}</Overlays></MediaOptions>`;
  const at = 'warn: S.xml:13: Server/VirtualHosts/VirtualHost/Applications/Application/OutputProfiles/MediaOptions/Overlays';
  expect(found({ profiles: profiles('') })).toEqual([`${at}: overlays are enabled, but Path names no map file`]);
  const map = join(folder, 'overlays.xml');
  const parts = { profiles: profiles(`<Path>${map}</Path>`) };
  expect(found(parts)).toEqual([expect.stringContaining(`${at}/Path: the overlay map cannot be used: ENOENT`)]);
  const write = (overlays: string): void => {
    const entry = `<OverlayInfo><Enable>true</Enable><OutputStreamName>*</OutputStreamName>${overlays}</OverlayInfo>`;
    writeFileSync(map, `<OverlayMap>${entry}</OverlayMap>`);
  };
  write('<Overlay><Url>logo.png</Url><Left>LEFT</Left></Overlay>');
  expect(found(parts)).toEqual([
    expect.stringContaining(`${at}/Path: the overlay map cannot be used: /overlays.xml:1: OverlayInfo/Overlay/Left has "LEFT"`),
  ]);
  write(['logo.png', 'gone.png', 'http://192.0.2.1/a.png'].map((url) => `<Overlay><Url>${url}</Url></Overlay>`).join(''));
  writeFileSync(join(folder, 'logo.png'), '');
  expect(found(parts)).toEqual([
    expect.stringContaining(`${at}/Path: the overlay 'gone.png' of /overlays.xml cannot be used: ENOENT`),
    expect.stringContaining(`${at}/Path: the overlay 'http://192.0.2.1/a.png' of /overlays.xml cannot be used: only files are taken`),
  ]);
  const storage = '<Storage><AllowedRoots><Path>recordings</Path></AllowedRoots></Storage>';
  expect(found({ ...parts, storage })).toEqual([
    expect.stringContaining('is outside of the folders that Server/Storage/AllowedRoots allows'),
  ]);
});

test('an unreadable certificate authority for origins with TLS is reported', () => {
  const bind = (file: string): string => `<Providers><OVT><CaPath>${file}</CaPath></OVT></Providers>`;
  writeFileSync(join(folder, 'text.pem'), 'no certificate');
  const at = `warn: S.xml:5: ${BIND}/Providers/OVT/CaPath: the certificates cannot be read: `;
  expect(found({ bind: bind('gone.pem') })).toEqual([`${at}ENOENT: no such file or directory, open '/gone.pem'`]);
  expect(found({ bind: bind('text.pem') })).toEqual([expect.stringContaining(at)]);
});

test('missing, broken and mismatched certificates are reported; for the API as an error', () => {
  const own = new URL('../../test/fixtures/tls/', import.meta.url);
  for (const name of ['cert.pem', 'key.pem']) writeFileSync(join(folder, name), readFileSync(new URL(name, own)));
  execFileSync('openssl', ['ecparam', '-name', 'prime256v1', '-genkey', '-noout', '-out', join(folder, 'other.pem')], { stdio: 'ignore' });
  const tls = (cert: string, key: string) => `<TLS><CertPath>${cert}</CertPath><KeyPath>${key}</KeyPath></TLS>`;
  const at = 'S.xml:9: Server/VirtualHosts/VirtualHost/Host/TLS';
  expect(found({ host: tls('cert.pem', 'key.pem') })).toEqual([]);
  expect(found({ host: tls('gone.pem', 'key.pem') })).toEqual([
    `warn: ${at}/CertPath: the file cannot be read: ENOENT: no such file or directory, open '/gone.pem'`,
  ]);
  expect(found({ host: tls('cert.pem', 'other.pem') })).toEqual([
    `warn: ${at}/KeyPath: the key /other.pem is not that of the certificate /cert.pem`,
  ]);
  expect(found({ host: tls('key.pem', 'key.pem') })).toEqual([
    expect.stringContaining(`${at}/CertPath: the certificate or key cannot be used`),
  ]);
  writeFileSync(join(folder, 'chain.pem'), 'to be copied here');
  const withChain = tls('cert.pem', 'key.pem').replace('</TLS>', '<ChainCertPath>chain.pem</ChainCertPath></TLS>');
  expect(found({ host: withChain })).toEqual([
    `warn: ${at}/ChainCertPath: the certificate or key cannot be used: there is no certificate in /chain.pem`,
  ]);
  const bind = '<Managers><API><TLSPort>8082</TLSPort></API></Managers>';
  expect(found({ bind, managers: tls('gone.pem', 'key.pem') })).toEqual([
    expect.stringMatching(/^error: S\.xml:6: .*CertPath: the file cannot be read/),
  ]);
});

test('TLS ports without a certificate of any virtual host are reported once each', () => {
  const listener = (tlsPort: number): string => `<Port>80</Port><TLSPort>${tlsPort}</TLSPort>`;
  const bind = `<Providers><RTMP>${listener(1936)}</RTMP></Providers><Publishers><LLHLS>${listener(443)}</LLHLS><HLS>${listener(443)}</HLS></Publishers>`;
  const closed = (path: string, port: number): string =>
    `warn: S.xml:5: ${BIND}/${path}/TLSPort: TLS port ${port} stays closed until a virtual host has a certificate (Host/TLS)`;
  expect(found({ bind: bind.replace('>80<', '>1935<') })).toEqual([closed('Providers/RTMP', 1936), closed('Publishers/LLHLS', 443)]);
});

test('the log of a start contains the findings with their places', () => {
  const logger = new RecordingLogger();
  logFindings(load({ bind: `${api(1935)}${rtmp(1935)}`, host: '<TLS><CertPath>x</CertPath><KeyPath>y</KeyPath></TLS>' }), folder, logger);
  expect(logger.lines).toMatchObject([
    { level: 'error', message: expect.stringContaining('TCP port 1935'), fields: { path: `${BIND}/Providers/RTMP/Port`, line: 5 } },
  ]);
});

test('a file with unusable alert rules is reported with the reason', () => {
  const alert = '<Alert><Url>http://a.test</Url><SecretKey>s</SecretKey><RulesFile>rules.xml</RulesFile></Alert>';
  const at = 'warn: S.xml:4: Server/Alert/RulesFile: the rules cannot be used, no alerts are sent:';
  expect(found({ head: alert })).toEqual([`${at} the file cannot be read: ENOENT: no such file or directory, open '/rules.xml'`]);
  writeFileSync(join(folder, 'rules.xml'), '<Rules>\n<Ingres/>\n<Ingress><MinBitrate>much</MinBitrate></Ingress></Rules>');
  expect(found({ head: alert })).toEqual([
    expect.stringMatching(/S\.xml:4: .*rules\.xml:3: Rules\/Ingress\/MinBitrate/),
    expect.stringMatching(/S\.xml:4: .*rules\.xml:2: Unknown element: Rules\/Ingres/),
  ]);
  writeFileSync(join(folder, 'rules.xml'), '<Rules><InternalQueueCongestion/></Rules>');
  expect(found({ head: alert })).toEqual([]);
});

test('the ports for a firewall leave out ports of loopback addresses', () => {
  const ports =
    '<Managers><API><IP>127.0.0.1</IP><Port>8081</Port></API></Managers><Providers><RTMP><Port>1935</Port></RTMP><SRT><Port>9998-9999</Port></SRT></Providers>';
  expect(outsidePorts(load({ bind: ports }))).toBe('TCP 1935; UDP 9998-9999');
  expect(outsidePorts(load({ ip: '<IP>127.0.0.1</IP>', bind: ports }))).toBe('');
});
