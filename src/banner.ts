import type { ServerConfig } from './config/index.ts';
import { portsOf } from './server-config.ts';

const INDENT = '  ';

/** What a person who started the server wants to know, as lines of text: the ports open, and what works with the first application there. */
export function bannerOf(config: ServerConfig, facts: { version: string; accessToken: string; tokenFile: string | null }): string {
  const lines = [`Millrace ${facts.version} is ready`, ''];
  const vhost = config.virtualHosts[0];
  const application = vhost?.applications.find(({ name }) => name !== '*');
  const app = application?.name ?? '<app>';
  // Without an application there may be one with anything.
  const takes = (kind: 'rtmp' | 'srt' | 'webrtc'): boolean => application === undefined || application.providers[kind] !== undefined;
  const serves = (kind: 'llhls' | 'hls' | 'srt' | 'webrtc'): boolean =>
    application === undefined || application.publishers[kind] !== undefined;
  const host = config.ip.some((ip) => ip === '*' || ip === '::') ? 'localhost' : (config.ip[0] ?? 'localhost');
  const { rtmp, srt: srtIn, webrtc: ingest } = config.bind.providers;
  const { llhls, hls, srt: srtOut, webrtc } = config.bind.publishers;
  const srt = (port: number): string => `${url('srt', host, port, 0, '')}?streamid=${vhost?.name ?? '<vhost>'}/${app}/<stream>`;
  const http = (port: number, path: string): string => url('http', host, port, 80, `/${app}/<stream>${path}`);
  const publish: [string, string][] = [];
  if (rtmp !== undefined && takes('rtmp'))
    publish.push([url('rtmp', host, rtmp.port, 1935, `/${app}/<stream>`), 'RTMP: server .../app, stream key <stream>']);
  if (srtIn !== undefined && takes('srt')) publish.push([srt(portsOf(srtIn.port)[0] ?? 0), 'SRT']);
  const whip = ingest?.signalling?.port;
  if (whip !== undefined && takes('webrtc')) publish.push([http(whip, '?direction=whip'), 'WebRTC: WHIP']);
  const watch: [string, string][] = [];
  if (llhls?.port !== undefined && serves('llhls')) watch.push([http(llhls.port, '/llhls.m3u8'), 'LL-HLS']);
  if (hls?.port !== undefined && serves('hls')) watch.push([http(hls.port, '/ts:playlist.m3u8'), 'HLS']);
  const signalling = webrtc?.signalling?.port;
  if (signalling !== undefined && serves('webrtc'))
    watch.push([url('ws', host, signalling, 80, `/${app}/<stream>`), 'WebRTC: OvenPlayer, or WHEP']);
  if (srtOut !== undefined && serves('srt')) watch.push([srt(portsOf(srtOut.port)[0] ?? 0), 'SRT']);
  for (const [label, rows] of [['Publish', publish] as const, ['Watch', watch] as const]) {
    for (const [n, [value, remark]] of rows.entries()) lines.push(row(n === 0 ? label : '', value, remark));
  }
  const { api } = config.bind.managers;
  if (api?.port !== undefined) {
    const address = api.ip[0] ?? host;
    lines.push(
      row(
        'API',
        url('http', address === '*' || address === '::' ? 'localhost' : address, api.port, 80, '/v1'),
        'Authorization: Basic <base64 of the token>',
      ),
    );
    lines.push(
      facts.tokenFile === null ? row('', 'token: as configured', '') : row('', `token: ${facts.accessToken}`, `kept in ${facts.tokenFile}`),
    );
  } else {
    lines.push(row('API', 'off', 'Bind/Managers/API names no port'));
  }
  return `${lines.join('\n')}\n\n`;
}

function url(scheme: string, host: string, port: number, usual: number, path: string): string {
  const name = host.includes(':') ? `[${host}]` : host;
  return `${scheme}://${name}${port === usual ? '' : `:${port}`}${path}`;
}

function row(label: string, value: string, remark: string): string {
  return `${INDENT}${label.padEnd(9)}${value}${remark === '' ? '' : `   (${remark})`}`;
}
