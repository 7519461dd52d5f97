/** Sends the recorded requests of viewers, and compares status, headers and the structure of playlists with the reference server's. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { loadServerConfig } from '../../src/config/index.ts';
import type { IngestStream } from '../../src/core/ingest.ts';
import { Orchestrator } from '../../src/core/orchestrator.ts';
import { QueueRegistry } from '../../src/core/queue-registry.ts';
import { DeliveryPool } from '../../src/delivery/pool/delivery-pool.ts';
import { VIEWS } from '../../src/delivery-views.ts';
import { LlhlsPublisher } from '../../src/services/hls/packager/fmp4/llhls-publisher.ts';
import { HlsPublisher } from '../../src/services/hls/packager/ts/hls-publisher.ts';
import { systemClock } from '../../src/util/clock.ts';
import { RecordingLogger } from '../fakes/recording-logger.ts';
import { audioPacket, audioTrack, videoPacket, videoTrack } from '../fakes/source.ts';
import { exchange, MemoryStore, parseAnswer, type RawAnswer } from './harness.ts';
import { PLAYBACK_DIFFERENCES, type PlaybackDifference } from './playback-differences.ts';
import { answerText, type Exchange, recordedPlayback, requestBytes } from './recorded.ts';

/** Exchanges that do not concern LL-HLS and HLS over plain HTTP. */
const ELSEWHERE: Readonly<Record<number, string>> = {
  583: 'thumbnail: output-profiles.test.ts',
  584: 'thumbnail: output-profiles.test.ts',
  595: 'TLS port: src/delivery/delivery-tls.test.ts',
  596: 'WebRTC signalling: src/services/webrtc',
  598: 'WHIP',
  599: 'WHIP',
  600: 'WHIP',
  601: 'WHIP',
  622: 'a virtual host made through the API',
  718: 'a playlist that was concluded',
};
/** Headers that depend on the moment, on the media or on the connection. */
const VARYING_HEADERS = new Set(['date', 'content-length', 'connection', 'keep-alive']);
const SERVER_XML = fileURLToPath(new URL('../fixtures/config/server.xml', import.meta.url));
/** Long enough for the segments that the recorded requests name. */
const SECONDS = 80;

describe('recorded exchanges of viewers', () => {
  let pool: DeliveryPool;
  let orchestrator: Orchestrator;
  let port: number;
  let names: { key: string; session: string };

  beforeAll(async () => {
    const logger = new RecordingLogger();
    pool = new DeliveryPool({ threads: 0, views: VIEWS, clock: systemClock, logger });
    const publishers = [new LlhlsPublisher(pool), new HlsPublisher(pool)] as const;
    orchestrator = new Orchestrator({
      clock: systemClock,
      logger,
      queues: new QueueRegistry(systemClock),
      store: new MemoryStore(),
      publishers: new Map(publishers.map((publisher) => [publisher.kind, publisher])),
      onHostsChanged: (hosts) => pool.setHosts(hosts.map(({ name, hostNames }) => ({ name, hostNames }))),
    });
    await pool.start();
    port = (await pool.listen({ host: '127.0.0.1', port: 0, tls: false })).port;
    const { config, virtualHosts } = loadServerConfig(SERVER_XML);
    pool.setDefaultCrossDomains(config.defaults.crossDomains ?? { urls: [], headers: [] });
    for (const host of virtualHosts) {
      const applications = host.applications.map(({ typed, echo }) => ({ name: typed.name, config: typed, echo }));
      orchestrator.restore({ name: host.typed.name, config: host.typed, echo: host.echo }, applications, { readOnly: true });
    }
    const ingest = orchestrator.openIngest(
      { host: '127.0.0.1', app: 'app' },
      { streamName: 'stream', provider: 'rtmp', sourceType: 'Rtmp', sourceUrl: 'TCP://127.0.0.1:1', onClose: () => undefined },
    );
    ingest.setTracks([videoTrack(), audioTrack()]);
    await publish(ingest);
    const master = parseAnswer(await exchange(port, 'GET /app/stream/llhls.m3u8 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'), false);
    const [, key = '', session = ''] = /_([0-9A-Za-z]{8})_llhls\.m3u8\?session=([\w-]+)/.exec(master.body) ?? [];
    names = { key, session };
  });
  afterAll(async () => {
    await orchestrator.close({ code: 'shutdown', detail: 'end of the test' });
    await pool.stop();
  });

  for (const recorded of recordedPlayback().filter(({ n }) => !(n in ELSEWHERE))) {
    test(`${recorded.n} ${recorded.name}`, async () => {
      const request = here(requestBytes(recorded).toString('latin1'), names);
      const answer = parseAnswer(await exchange(port, request), recorded.request.line.startsWith('HEAD '));
      expect(differenceOf(recorded, answer)).toEqual(documented(recorded.n));
    });
  }

  test('playlists are compressed when the client accepts it, and Vary names Accept-Encoding', async () => {
    const chunklist = `chunklist_0_video_${names.key}_llhls.m3u8?session=${names.session}`;
    for (const file of ['llhls.m3u8', chunklist]) {
      for (const coding of ['gzip', 'identity']) {
        const request = `GET /app/stream/${file} HTTP/1.1\r\nHost: x\r\nAccept-Encoding: ${coding}\r\nConnection: close\r\n\r\n`;
        const { headers } = parseAnswer(await exchange(port, request), false);
        expect(headers.get('content-encoding')).toBe(coding);
        expect(headers.get('vary')).toBe('Origin, Accept-Encoding');
      }
    }
  });
});

/** Publishes 80 s of video, 30 frames a second with a keyframe each second, and audio. */
async function publish(ingest: IngestStream): Promise<void> {
  for (let second = 0; second < SECONDS; second += 1) {
    for (let index = second * 30; index < (second + 1) * 30; index += 1) ingest.push(videoPacket(index));
    for (let index = Math.ceil(second * 46.875); index < (second + 1) * 46.875; index += 1) ingest.push(audioPacket(index));
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
  await new Promise<void>((resolve) => setTimeout(resolve, 50));
}

/** The request with this server's stream key, session and track numbers. */
function here(request: string, { key, session }: { key: string; session: string }): string {
  return request
    .replace(/_[0-9A-Za-z]{8}_llhls/, `_${key}_llhls`)
    .replace(/session=[\w-]+/, `session=${session}`)
    .replace('_2_audio', '_1_audio');
}

/** The differences from the recording; empty if there are none. */
function differenceOf(recorded: Exchange, answer: RawAnswer): PlaybackDifference {
  const { status, headers = [] } = recorded.response;
  const expected = new Map(headers.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 2)]));
  expected.set('server', 'Millrace');
  const changed: Record<string, string | null> = {};
  for (const name of new Set([...expected.keys(), ...answer.headers.keys()])) {
    const value = answer.headers.get(name);
    if (!VARYING_HEADERS.has(name) && value !== expected.get(name)) changed[name] = value ?? null;
  }
  const isText = answer.headers.get('content-type') === 'application/vnd.apple.mpegurl';
  const [before, after] = isText ? [linesOf(answerText(recorded)), linesOf(answer.body)] : [[], []];
  const less = before.filter((line) => !after.includes(line));
  const more = after.filter((line) => !before.includes(line));
  return {
    ...(answer.status !== status && { status: answer.status }),
    ...(Object.keys(changed).length > 0 && { headers: changed }),
    ...(less.length > 0 && { less }),
    ...(more.length > 0 && { more }),
  };
}

/** The kinds of lines in a playlist: tags with the names of their attributes, URIs with placeholders. */
function linesOf(text: string): string[] {
  const lines = text.split('\n').map((line) => {
    const uri = /^[^#]|URI="[^"]+"/.exec(line) === null ? '' : ` ${uriShape(/URI="([^"]+)"/.exec(line)?.[1] ?? line)}`;
    if (!line.startsWith('#')) return uri.trim();
    const [tag = '', list = ''] = line.split(/:(.*)/);
    const attributes = [...list.matchAll(/([A-Z-]+)=(?:"[^"]*"|[^,]*)/g)].map(([, name]) => name).sort();
    return `${tag}${attributes.length > 0 ? `:${attributes.join(',')}` : ''}${uri}`;
  });
  return [...new Set(lines)].filter((line) => line !== '');
}

function uriShape(uri: string): string {
  return uri
    .replace(/session=[\w-]+/, 'session=S')
    .replace(/_[0-9A-Za-z]{8}_llhls/, '_KEY_llhls')
    .replace(/\d+/g, 'N');
}

/** The documented differences of exchange `n`, merged. */
function documented(n: number): PlaybackDifference {
  const all = Object.values(PLAYBACK_DIFFERENCES).flatMap((byNumber) => byNumber[n] ?? []);
  const headers = Object.assign({}, ...all.map((difference) => difference.headers));
  const status = all.find((difference) => difference.status !== undefined)?.status;
  const less = all.flatMap((difference) => difference.less ?? []);
  const more = all.flatMap((difference) => difference.more ?? []);
  return {
    ...(status !== undefined && { status }),
    ...(Object.keys(headers).length > 0 && { headers }),
    ...(less.length > 0 && { less }),
    ...(more.length > 0 && { more }),
  };
}

test('the documentation names every difference, and only these', () => {
  const page = readFileSync(new URL('../../docs/reference/playback-differences.md', import.meta.url), 'utf8');
  const named = [...page.matchAll(/^\| `([a-z0-9-]+)` \|/gm)].map(([, id]) => id);
  expect(named).toEqual(Object.keys(PLAYBACK_DIFFERENCES));
});
