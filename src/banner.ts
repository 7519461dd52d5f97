import type { ServerConfig } from './config/index.ts';
import { portsOf } from './server-config.ts';

const INDENT = '  ';

/** What a person who started the server wants to know, as lines of text. */
export function bannerOf(config: ServerConfig, facts: { version: string; accessToken: string; tokenFile: string | null }): string {
  const lines = [`Millrace ${facts.version} is ready`, ''];
  const vhost = config.virtualHosts[0];
  const app = vhost?.applications.find(({ name }) => name !== '*')?.name ?? '<app>';
  const host = config.ip.some((ip) => ip === '*' || ip === '::') ? 'localhost' : (config.ip[0] ?? 'localhost');
  const { rtmp, srt: srtIn, webrtc: ingest } = config.bind.providers;
  const { llhls, hls, srt: srtOut, webrtc } = config.bind.publishers;
  const srt = (port: number): string => `${url('srt', host, port, 0, '')}?streamid=${vhost?.name ?? '<vhost>'}/${app}/<stream>`;
  if (rtmp !== undefined)
    lines.push(row('Publish', url('rtmp', host, rtmp.port, 1935, `/${app}/<stream>`), 'RTMP: server .../app, stream key <stream>'));
  if (srtIn !== undefined) lines.push(row('', srt(portsOf(srtIn.port)[0] ?? 0), 'SRT'));
  const whip = ingest?.signalling?.port;
  if (whip !== undefined) lines.push(row('', url('http', host, whip, 80, `/${app}/<stream>?direction=whip`), 'WebRTC: WHIP'));
  if (llhls?.port !== undefined) lines.push(row('Watch', url('http', host, llhls.port, 80, `/${app}/<stream>/llhls.m3u8`), 'LL-HLS'));
  if (hls?.port !== undefined) lines.push(row('', url('http', host, hls.port, 80, `/${app}/<stream>/ts:playlist.m3u8`), 'HLS'));
  const signalling = webrtc?.signalling?.port;
  if (signalling !== undefined) lines.push(row('', url('ws', host, signalling, 80, `/${app}/<stream>`), 'WebRTC: OvenPlayer, or WHEP'));
  if (srtOut !== undefined) lines.push(row('', srt(portsOf(srtOut.port)[0] ?? 0), 'SRT'));
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
