import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { bannerOf } from './banner.ts';
import { parseServerConfig } from './index.ts';

const FILE = new URL('../../conf/Server.xml', import.meta.url);
const SHIPPED = readFileSync(FILE, 'utf8');

/** The banner of the shipped configuration, changed. */
function bannerWith(change: (xml: string) => string = (xml) => xml, accessToken: string | null = 'secret', hosts: string[] = []): string {
  const { config } = parseServerConfig(change(SHIPPED), FILE.pathname, { macros: { env: {}, home: '/home', currentPath: '/' } });
  return bannerOf(config, { version: '1.2.3', accessToken, tokenFile: 'state/access-token', hosts, ports: 'TCP 1935; UDP 9999' });
}

test('lists the URLs and ports that the shipped configuration opens', () => {
  const banner = bannerWith();
  expect(banner.split('\n').map((line) => line.trim())).toEqual([
    'Millrace 1.2.3 is ready',
    '',
    'Publish  rtmp://localhost/app/<stream>   (RTMP: server .../app, stream key <stream>)',
    'srt://localhost:9999?streamid=default/app/<stream>   (SRT)',
    'http://localhost:3333/app/<stream>?direction=whip   (WebRTC: WHIP)',
    'Watch    http://localhost:3333/app/<stream>   (in a browser)',
    'http://localhost:3333/app/<stream>/llhls.m3u8   (LL-HLS)',
    'http://localhost:3333/app/<stream>/ts:playlist.m3u8   (HLS)',
    'ws://localhost:3333/app/<stream>   (WebRTC: OvenPlayer, or WHEP)',
    'srt://localhost:9998?streamid=default/app/<stream>   (SRT)',
    'Console  http://127.0.0.1:8081/console/   (log in with the token)',
    'API      http://127.0.0.1:8081/v1   (Authorization: Bearer <token>, or Basic)',
    'token: secret   (kept in state/access-token)',
    'Ports    TCP 1935; UDP 9999   (for a firewall)',
    '',
    '',
  ]);
});

test('ports that the application does not use are not promised', () => {
  const banner = bannerWith((xml) => {
    const at = xml.indexOf('<Applications>');
    return xml.slice(0, at) + xml.slice(at).replaceAll('<SRT />', '').replace('<RTMP />', '');
  });
  expect(banner).not.toContain('srt:');
  expect(banner).not.toContain('rtmp:');
  expect(banner).toContain('Publish  http://localhost:3333/app/<stream>?direction=whip');
});

test('lists TLS URLs when there are TLS ports only', () => {
  const banner = bannerWith((xml) =>
    xml
      .replace(/<Port>\$\{env:OME_API_PORT:8081\}<\/Port>/, '<TLSPort>8082</TLSPort>')
      .replace(/<!--\s*(<TLS>\s*<CertPath>api[\s\S]*?<\/TLS>)\s*-->/, '$1')
      .replaceAll(/<Port>\$\{env:OME_(?:LLHLS_STREAM|WEBRTC_SIGNALLING)_PORT:3333\}<\/Port>/g, '<TLSPort>443</TLSPort>'),
  );
  expect(banner).toContain('API      https://127.0.0.1:8082/v1   (Authorization: Bearer <token>, or Basic)');
  expect(banner).toContain('token: secret');
  expect(banner).toContain('Console  https://127.0.0.1:8082/console/');
  expect(banner).toContain('Watch    https://localhost/app/<stream>   (in a browser)');
  expect(banner).toContain('https://localhost/app/<stream>/llhls.m3u8   (LL-HLS)');
  expect(banner).toContain('wss://localhost/app/<stream>   (WebRTC: OvenPlayer, or WHEP)');
  expect(banner).toContain('https://localhost/app/<stream>?direction=whip   (WebRTC: WHIP)');
});

test('names the file of the token when the token is not to be shown', () => {
  const banner = bannerWith(undefined, null);
  expect(banner).toContain('token: in state/access-token\n');
  expect(banner).not.toContain('secret');
});

test('other machines are told own addresses, a few, and the way to a console that only this machine reaches', () => {
  const told = bannerWith(undefined, null, ['192.0.2.7', '2001:db8::7', '10.0.0.7', '10.0.1.7']).split('\n');
  expect(told).toContain('  Hosts    192.0.2.7, [2001:db8::7], 10.0.0.7   (for other machines, in place of localhost)');
  const tunnel = 'from another machine after ssh -L 8081:127.0.0.1:8081 192.0.2.7';
  expect(told).toContain(`  Console  http://127.0.0.1:8081/console/   (log in with the token; ${tunnel})`);
  const open = bannerWith((xml) => xml.replace('<IP>127.0.0.1</IP>', '<IP>*</IP>'), null, ['192.0.2.7']).split('\n');
  expect(open).toContain('  Console  http://localhost:8081/console/   (log in with the token)');
});

test('a server on a single address has nothing to be told in place of localhost', () => {
  const banner = bannerWith((xml) => xml.replace('<IP>*</IP>', '<IP>192.0.2.7</IP>'), null, []);
  expect(banner).toContain('Watch    http://192.0.2.7:3333/app/<stream>');
  expect(banner).not.toContain('Hosts');
});
