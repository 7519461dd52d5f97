import { bracketed, isLoopback } from '../util/client-address.ts';
import type { ServerConfig } from './index.ts';
import { portsOf } from './server-config.ts';

const INDENT = '  ';
/** Limit of the machine's own addresses in the banner. */
const MAX_HOSTS = 3;

/** Facts that the banner shows beside the configuration. */
export interface BannerFacts {
  readonly version: string;
  /** Null: hidden from this reader. */
  readonly accessToken: string | null;
  /** Null: the token is in the configuration. */
  readonly tokenFile: string | null;
  /** Addresses of the machine for its URLs, if the server listens on all addresses. */
  readonly hosts: readonly string[];
  /** Ports reachable from other machines. */
  readonly ports: string;
}

/** Lines of text for the person who started the server: the open ports, and how to use the first application. */
export function bannerOf(config: ServerConfig, facts: BannerFacts): string {
  const lines = [`Millrace ${facts.version} is ready`, ''];
  const vhost = config.virtualHosts[0];
  const application = vhost?.applications.find(({ name }) => name !== '*');
  const app = application?.name ?? '<app>';
  // Without an application the banner shows everything: one may be created later.
  const takes = (kind: 'rtmp' | 'srt' | 'webrtc'): boolean => application === undefined || application.providers[kind] !== undefined;
  const serves = (kind: 'llhls' | 'hls' | 'srt' | 'webrtc'): boolean =>
    application === undefined || application.publishers[kind] !== undefined;
  const host = config.ip.some((ip) => ip === '*' || ip === '::') ? 'localhost' : (config.ip[0] ?? 'localhost');
  const { rtmp, srt: srtIn, webrtc: ingest } = config.bind.providers;
  const { llhls, hls, srt: srtOut, webrtc } = config.bind.publishers;
  const srt = (port: number): string => `${url('srt', host, port, 0, '')}?streamid=${vhost?.name ?? '<vhost>'}/${app}/<stream>`;
  /** The plain port is preferred: it works without a certificate. */
  const http = (ports: WebPorts | undefined, path: string, schemes: readonly [string, string] = ['http', 'https']): string | null =>
    webUrl(schemes, host, ports, `/${app}/<stream>${path}`);
  const publish: [string, string][] = [];
  if (rtmp !== undefined && takes('rtmp'))
    publish.push([url('rtmp', host, rtmp.port, 1935, `/${app}/<stream>`), 'RTMP: server .../app, stream key <stream>']);
  if (srtIn !== undefined && takes('srt')) publish.push([srt(portsOf(srtIn.port)[0] ?? 0), 'SRT']);
  const whip = http(ingest?.signalling, '?direction=whip');
  if (whip !== null && takes('webrtc')) publish.push([whip, 'WebRTC: WHIP']);
  const watch: [string, string][] = [];
  const [lowLatency, plain] = [http(llhls, '/llhls.m3u8'), http(hls, '/ts:playlist.m3u8')];
  const page = http(serves('webrtc') ? (webrtc?.signalling ?? llhls) : llhls, '');
  if (page !== null && (serves('webrtc') || serves('llhls')) && config.modules.playerPage.enable) watch.push([page, 'in a browser']);
  if (lowLatency !== null && serves('llhls') && config.modules.llhls.enable) watch.push([lowLatency, 'LL-HLS']);
  if (plain !== null && serves('hls')) watch.push([plain, 'HLS']);
  const signalling = http(webrtc?.signalling, '', ['ws', 'wss']);
  if (signalling !== null && serves('webrtc')) watch.push([signalling, 'WebRTC: OvenPlayer, or WHEP']);
  if (srtOut !== undefined && serves('srt')) watch.push([srt(portsOf(srtOut.port)[0] ?? 0), 'SRT']);
  for (const [label, rows] of [['Publish', publish] as const, ['Watch', watch] as const]) {
    for (const [n, [value, remark]] of rows.entries()) lines.push(row(n === 0 ? label : '', value, remark));
  }
  const { api } = config.bind.managers;
  const address = api?.ip[0] ?? host;
  const control = webUrl(['http', 'https'], address === '*' || address === '::' ? 'localhost' : address, api, '/v1');
  if (control !== null) {
    const isHidden = isLoopback(address) && facts.hosts[0] !== undefined;
    const port = api?.port ?? api?.tlsPort;
    const tunnel = isHidden ? `; from another machine after ssh -L ${port}:${bracketed(address)}:${port} ${facts.hosts[0]}` : '';
    lines.push(row('Console', control.replace(/v1$/, 'console/'), `log in with the token${tunnel}`));
    lines.push(row('API', control, 'Authorization: Bearer <token>, or Basic'));
    if (facts.tokenFile === null) lines.push(row('', 'token: as configured', ''));
    else if (facts.accessToken === null) lines.push(row('', `token: in ${facts.tokenFile}`, ''));
    else lines.push(row('', `token: ${facts.accessToken}`, `kept in ${facts.tokenFile}`));
  } else {
    lines.push(row('API', 'off', 'Bind/Managers/API names no port'));
  }
  const hosts = facts.hosts.slice(0, MAX_HOSTS).map(bracketed);
  if (hosts.length > 0 && lines.some((line) => line.includes('//localhost')))
    lines.push(row('Hosts', hosts.join(', '), 'for other machines, in place of localhost'));
  if (facts.ports !== '') lines.push(row('Ports', facts.ports, 'for a firewall'));
  return `${lines.join('\n')}\n\n`;
}

interface WebPorts {
  readonly port?: number | undefined;
  readonly tlsPort?: number | undefined;
}

/** The URL with the plain port, else with the TLS port; null without ports. */
function webUrl([plain, secure]: readonly [string, string], host: string, ports: WebPorts | undefined, path: string): string | null {
  if (ports?.port !== undefined) return url(plain, host, ports.port, 80, path);
  return ports?.tlsPort === undefined ? null : url(secure, host, ports.tlsPort, 443, path);
}

function url(scheme: string, host: string, port: number, usual: number, path: string): string {
  return `${scheme}://${bracketed(host)}${port === usual ? '' : `:${port}`}${path}`;
}

function row(label: string, value: string, remark: string): string {
  return `${INDENT}${label.padEnd(9)}${value}${remark === '' ? '' : `   (${remark})`}`;
}
