/** Requests over HTTP, what proxies put before them, and the JSON and XML inside them. */
import { isIP } from 'node:net';

import { writeJson } from '../../../src/api/json/json-writer.ts';
import { JsonSyntaxError, readJson } from '../../../src/api/json/lenient-json.ts';
import {
  ConfigError,
  ConfigErrors,
  defaultServerXml,
  parseServerConfig,
  readApplication,
  readOutputProfile,
  readVirtualHost,
} from '../../../src/config/index.ts';
import { parseXml } from '../../../src/config/xml.ts';
import { readCuePayload, writeCuePayload } from '../../../src/containers/webvtt/cue-payload.ts';
import { DEFAULT_HTTP_LIMITS } from '../../../src/delivery/http-limits.ts';
import { parseDirectives } from '../../../src/services/hls/view/fmp4/delivery-directives.ts';
import { parseResourceName } from '../../../src/services/hls/wire/fmp4/resource-name.ts';
import { DefinitionFault, readDefinition } from '../../../src/services/multiplex/channel-definition.ts';
import { formatMuxFile, parseMuxFile } from '../../../src/services/multiplex/mux-file.ts';
import { formatScheduleFile, parseScheduleFile } from '../../../src/services/schedule/definition-file.ts';
import { requestPlaceOf } from '../../../src/services/webrtc/signalling/request-place.ts';
import { TrustedProxies } from '../../../src/util/trusted-proxies.ts';
import { acceptsGzip } from '../../../src/wire/http/accept-encoding.ts';
import { readRange } from '../../../src/wire/http/byte-range.ts';
import { readFraming } from '../../../src/wire/http/framing.ts';
import { RequestReader } from '../../../src/wire/http/request-reader.ts';
import { decodePath, hostName, queryValue, splitTarget } from '../../../src/wire/http/request-target.ts';
import { readProxyHeader } from '../../../src/wire/proxy/proxy-header.ts';
import { readSubtitleFile } from '../../support/subtitles.ts';
import type { FuzzTarget } from '../support/fuzz-target.ts';

const PROXIES = new TrustedProxies(['10.0.0.0/8']);
const text = (value: string): Buffer => Buffer.from(value);

const CHROME = [
  'GET /app/stream/chunklist_0_video_j4QYcHK6_llhls.m3u8?session=39_UEt7QoBb&_HLS_msn=11&_HLS_part=3&_HLS_skip=YES HTTP/1.1',
  'Host: live.example.com:3333',
  'Connection: keep-alive, Upgrade',
  'Accept-Encoding: gzip;q=0.5, deflate, *;q=0',
  'Range: bytes=0-99, 200-',
  'Origin: https://player.example.com',
  '\r\n',
].join('\r\n');
const POST =
  'POST /app/stream?direction=whip HTTP/1.1\r\nHost: [::1]:3333\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\nv=0\r\n';
const TARGETS = [
  '/app/stream/seg_0_1_video_x_llhls.m4s?session=1_a%20b',
  '/a%2Fb/../c//d?x=1&x=2&=&y',
  'http://host:80/app/stream',
  '*',
  '/app/part_2_3_video_k_llhls.m4s',
];

const SCHEDULE = `<?xml version="1.0" encoding="UTF-8"?><Schedule>
  <Stream><Name>tv</Name><BypassTranscoder>false</BypassTranscoder><VideoTrack>true</VideoTrack><ErrorToleranceDurationMs>500</ErrorToleranceDurationMs>
    <AudioMap><Item><Name>a &amp; b</Name><Language>de-CH</Language><Characteristics>public.accessibility</Characteristics></Item></AudioMap></Stream>
  <FallbackProgram><Item url="file://slate &#x41;.mp4" start="10" /></FallbackProgram>
  <Program name="night" scheduled="2026-10-25T02:30:00[Europe/Berlin]" repeat="true">
    <Item url="file://films/one.mp4" start="60000" duration="-1" fallbackOnErr="false" /><Item url="stream://default/app/cam" duration="600000" />
  </Program>
  <Program scheduled="2026-11-23T18:00:00.5+01:00"><Item url="file://two.mp4" /></Program>
</Schedule>`;
const CHANNEL = {
  outputStream: { name: 'tv', bypassTranscoder: false },
  sourceStreams: [
    {
      name: 'a & b',
      url: 'stream://default/app/hd',
      trackMap: [{ sourceTrackName: 'bypass_video', newTrackName: 'v', bitrateConf: 4_000_000, framerateConf: 29.97 }],
    },
  ],
  playlists: [
    {
      name: '<ABR>',
      fileName: 'abr',
      options: { webrtcAutoAbr: true, hlsChunklistPathDepth: 0 },
      renditions: [{ name: 'hd', video: 'v', videoIndexHint: 1 }],
    },
  ],
};

const APPLICATION = {
  name: 'app',
  type: 'live',
  dynamic: false,
  outputProfiles: {
    outputProfile: [
      {
        name: 'p',
        outputStreamName: '${OriginStreamName}',
        encodes: { videos: [{ name: 'v', codec: 'h264', bitrate: 2_000_000, width: 640, framerate: 30 }], audios: [{ bypass: true }] },
      },
    ],
  },
  providers: { rtmp: {}, webrtc: { timeout: 30_000 } },
  publishers: { llhls: { partDuration: 0.5, crossDomains: [{ url: '*' }] }, webrtc: { rtx: true } },
};
const HOST = {
  name: 'default',
  host: { names: ['*', 'example.com'], tls: { certPath: '/a', keyPath: '/b' } },
  applications: [APPLICATION],
};
const JSONS = [[HOST], APPLICATION, { split: false, deep: [[[[{ a: null }]]]], text: '\u00e9\n"\\', number: -1.5e-7 }].map((value) =>
  text(JSON.stringify(value)),
);

/** Keys in `value` and in all values inside it. */
function membersIn(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 1;
  return Object.values(value).reduce<number>((sum, item) => sum + membersIn(item), 1);
}

const isConfigError = (error: unknown): boolean => error instanceof ConfigError || error instanceof ConfigErrors;
const macros = { env: {}, home: '/', currentPath: '/' };

export const TEXT_TARGETS: readonly FuzzTarget[] = [
  {
    name: 'subtitle-file',
    form: 'text',
    seeds: () => [
      text(
        '\ufeffWEBVTT - x\n\nNOTE y\n\nid\n00:01.500 --> 00:00:04.000 line:10%\n<i>Hello</i>\nthere\n\n01:00:00.000 --> 01:00:01.250\nlate\n',
      ),
      text('1\r\n00:00:01,000 --> 00:00:02,500\r\n{\\an8}<font color="#fff">Hi</font>\r\n\r\n2\r\n00:00:03,0 --> 00:00:04,0\r\nx\r\n'),
    ],
    run: (input) => {
      const cues = readSubtitleFile(input);
      for (const { settings, text: shown } of cues) readCuePayload(writeCuePayload({ settings, text: shown }));
      return cues.length;
    },
    most: (length) => length / 20,
  },
  {
    name: 'proxy-header',
    form: 'bytes',
    seeds: () => [
      text('PROXY TCP4 192.0.2.1 198.51.100.1 56324 443\r\nGET / HTTP/1.1\r\n'),
      text('PROXY TCP6 2001:db8::1 2001:db8::2 56324 443\r\n'),
      Buffer.from('0d0a0d0a000d0a515549540a2111000cc0000201c6336401dc0401bb', 'hex'),
      Buffer.from(`0d0a0d0a000d0a515549540a21210024${'00'.repeat(10)}ffffc0000201${'20010db8'.repeat(4)}dc0401bb`, 'hex'),
    ],
    run: (input) => {
      const header = readProxyHeader(input);
      if (header === null) return 0;
      const { client, length } = header;
      if (length > input.length || (client !== null && isIP(client.address) === 0)) throw new Error('a client that is nowhere');
      return 1;
    },
  },
  {
    name: 'forwarded-for',
    form: 'text',
    seeds: () => [text('203.0.113.7, 198.51.100.1, 10.1.2.3'), text('[2001:db8::5]:5000, ::ffff:10.0.0.1'), text('unknown, 192.0.2.1:80')],
    run: (input) => {
      const client = PROXIES.clientOf('10.0.0.1', input.toString('latin1'));
      if (isIP(client) === 0) throw new Error('a client that is nowhere');
      return client.length;
    },
  },
  {
    name: 'http-requests',
    form: 'text',
    seeds: () => [text(CHROME), text(POST), text(`${CHROME}${CHROME}${POST}`)],
    run: (input) => {
      const reader = new RequestReader(DEFAULT_HTTP_LIMITS);
      let heads = 0;
      for (let at = 0; at < input.length; at += 97) {
        reader.push(Buffer.from(input.subarray(at, at + 97)));
        for (let head = reader.next(); head !== null; head = reader.next()) {
          heads += 1;
          readFraming(head);
          acceptsGzip(head.header('accept-encoding'));
          const range = readRange(head.header('range'), 1000);
          const isInside = range === null || range === 'unsatisfiable' || JSON.stringify(range).match(/-\d/) === null;
          if (!isInside) throw new Error(`range ${JSON.stringify(range)}`);
          hostName(head.header('host') ?? '');
        }
      }
      return heads;
    },
    most: (length) => 1 + length / 16,
  },
  {
    name: 'http-targets',
    form: 'text',
    seeds: () => TARGETS.map(text),
    run: (input) => {
      const target = input.toString('latin1');
      const { path, query } = splitTarget(target) as { path: string; query: string };
      requestPlaceOf(target, 'host:80', () => 'default');
      parseDirectives((key) => queryValue(query, key));
      parseResourceName(path.slice(path.lastIndexOf('/') + 1));
      return decodePath(path).length;
    },
    most: (length) => 1 + length,
  },
  {
    name: 'json-bodies',
    form: 'text',
    seeds: () => [...JSONS, text('{a:1,/*x*/"b":[1,2,],}'), text(`${'['.repeat(400)}${']'.repeat(400)}`)],
    run: (input) => {
      const value = readJson(input.toString('utf8'));
      writeJson(value);
      return membersIn(value);
    },
    most: (length) => 2 + length,
    expects: (error) => error instanceof JsonSyntaxError,
  },
  {
    name: 'api-resources',
    form: 'text',
    seeds: () => JSONS,
    run: (input) => {
      let value: unknown;
      try {
        value = readJson(input.toString('utf8'));
      } catch (error) {
        if (error instanceof JsonSyntaxError) return 0;
        throw error;
      }
      for (const read of [readVirtualHost, readApplication, readOutputProfile]) {
        for (const item of Array.isArray(value) ? value.slice(0, 4) : [value]) {
          try {
            read(item);
          } catch (error) {
            if (!isConfigError(error)) throw error;
          }
        }
      }
      return 1;
    },
    cost: 4,
  },
  {
    name: 'xml',
    form: 'text',
    seeds: () => [
      text(defaultServerXml()),
      text('<?xml version="1.0"?><Server version="8"><Name>&amp;&#65;</Name><!-- x --><A b="1"/><![CDATA[<]]></Server>'),
    ],
    run: (input) => membersIn(parseXml(input.toString('utf8'), 'Server.xml')),
    most: (length) => 64 + 4 * length,
    expects: isConfigError,
    cost: 4,
  },
  {
    name: 'server-xml',
    form: 'text',
    seeds: () => [text(defaultServerXml())],
    run: (input) => {
      parseServerConfig(input.toString('utf8'), 'Server.xml', { macros, directory: '/nonexistent' });
      return 1;
    },
    expects: isConfigError,
    cost: 15,
  },
  {
    name: 'schedule-file',
    form: 'text',
    seeds: () => [text(SCHEDULE), text(formatScheduleFile(parseScheduleFile(SCHEDULE, 'tv', 'tv.sch')))],
    run: (input) => {
      const written = formatScheduleFile(parseScheduleFile(input.toString('utf8'), 'tv', 'tv.sch'));
      // A schedule that the API writes must be read equally after a restart.
      if (formatScheduleFile(parseScheduleFile(written, 'tv', 'tv.sch')) !== written)
        throw new Error('the file changes when it is written again');
      return written.length;
    },
    expects: (error) => isConfigError(error) || (error instanceof Error && /^line \d+: /.test(error.message)),
    cost: 20,
  },
  {
    name: 'mux-file',
    form: 'text',
    seeds: () => [text(formatMuxFile(readDefinition(CHANNEL)))],
    run: (input) => {
      const written = formatMuxFile(parseMuxFile(input.toString('utf8'), 'ch.mux'));
      // A file that the server writes must have the same meaning when it is read.
      if (formatMuxFile(parseMuxFile(written, 'ch.mux')) !== written) throw new Error('the file changes when it is written again');
      return written.length;
    },
    expects: (error) => error instanceof DefinitionFault || isConfigError(error),
    cost: 4,
  },
];
