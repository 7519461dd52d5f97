/** Every command in README and the guides works as described, on one server with the shipped configuration. */
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { requireProgram } from '../../scripts/ensure-tools.ts';
import { ApiClient } from '../harness/api-client.ts';
import { Child } from '../harness/child.ts';
import { COMPILED } from '../harness/compiled-code.ts';
import { until } from '../harness/poll.ts';
import { startRtspServer } from '../harness/rtsp-server.ts';
import { MAIN } from '../harness/server.ts';
import { type ShippedServer, startShippedServer } from '../harness/shipped-server.ts';
import { blocksIn, PAGES, type PageBlock } from '../support/page-blocks.ts';

const WAIT = { deadlineMs: 60_000, everyMs: 200 };
/** players.md, encoders.md and record.md have their own tests. */
const OTHERS = /\/(players|encoders|record)\.md$/;
/** Command lines that run until they are stopped. */
const ENDLESS = /^(?:ffmpeg|ffplay|srt-live-transmit|curl -N)\b/;
/** The output of a working command line. */
const SHOWN: readonly (readonly [RegExp, RegExp])[] = [
  [/^ffplay/, /\d A-V: *-?\d/],
  [/v1\/events/, /^event: hello$/m],
  [/v2\/logs/, /./],
];
/** `npm start` and an installed `millrace` run the server of these sources; curl reports a status of 400 or more by its exit code. */
const PREAMBLE = `set -euo pipefail
millrace() { "$NODE" "$MAIN" "$@"; }
npm() { shift; [ "$1" = -- ] && shift; millrace "$@"; }
curl() { command curl -sS --fail-with-body "$@"; echo; }
ffplay() { SDL_VIDEODRIVER=dummy SDL_AUDIODRIVER=dummy command ffplay "$@"; }
`;

/** Settings of the guides that the shipped configuration does not have. */
function withSettings(media: string): (xml: string) => string {
  const [block] = blocksIn('docs/guide/subtitles.md', 'xml');
  const options = block?.text.replace('<OutputProfiles>', '').replace(/^ *…$/m, '') ?? '';
  const providers = `<Schedule><MediaRootDir>${media}</MediaRootDir><ScheduleFilesDir>schedules</ScheduleFilesDir></Schedule>
<Multiplex><MuxFilesDir>channels</MuxFilesDir></Multiplex><FILE><RootPath>${media}</RootPath></FILE>`;
  return (xml) =>
    xml
      .replace('<OutputProfiles>', `<OutputProfiles>${options}`)
      .replace('<RTSPPull />', `<RTSPPull />${providers}`)
      // Paths in definitions that the API writes are relative to the configuration.
      .replace('<Path>recordings</Path>', `<Path>recordings</Path><Path>${media}</Path>`);
}

/** Sources of pulled streams. */
interface Sources {
  readonly camera: string;
  /** Another server, over OVT, because a server does not pull from itself. */
  readonly origin: string;
}

/** Adapts a command for the server under test, and for a machine without cameras. */
function adapted(text: string, { ports, config }: ShippedServer, { camera, origin }: Sources): string {
  const folder = path.dirname(config);
  const by: readonly (readonly [string | RegExp, string])[] = [
    [/(?:HOST|127\.0\.0\.1):8081/g, `127.0.0.1:${ports.API}`],
    [/(?:HOST|localhost):3333/g, `127.0.0.1:${ports.WEBRTC_SIGNALLING}`],
    ['HOST:9998', `127.0.0.1:${ports.SRT_PUB}`],
    ['HOST:9999', `127.0.0.1:${ports.SRT_PROV}`],
    ['HOST:4000', `127.0.0.1:${ports.MPEGTS_PROV}`],
    [/rtmp:\/\/(?:localhost|127\.0\.0\.1)\//g, `rtmp://127.0.0.1:${ports.RTMP_PROV}/`],
    ['ffmpeg … -rtmp', 'ffmpeg -re -i film.mp4 -c copy -rtmp'],
    ['size=1280x720', 'size=320x180'],
    ['-b:v 2500k', '-b:v 300k'],
    [/rtsp:\/\/[^"]+/g, camera],
    [/ovt:\/\/[^"]+/g, origin],
    // The original names are taken: the first by a stream, the second until the stopped SRT encoder is missed.
    ['"name": "film"', '"name": "films"'],
    ['"name": "live",\n  "urls"', '"name": "edge",\n  "urls"'],
    ['rtmps://live.example.com/app', `rtmp://127.0.0.1:${ports.RTMP_PROV}/app`],
    ['"outputStream": { "name": "tv" }', '"outputStream": { "name": "both" }'],
    ['/etc/ovenmediaengine/Server.xml', config],
    ['--state /var/lib/millrace', `--state ${folder}/state`],
  ];
  return by.reduce((done, [what, ours]) => done.replaceAll(what, ours), text);
}

/** Command lines as a shell reads them, including continuations after a backslash or in an open quote. */
function linesOf(text: string): string[] {
  const lines: string[] = [];
  let line = '';
  for (const part of text.trim().split('\n')) {
    line = line === '' ? part : `${line}\n${part}`;
    const isOpen = part.endsWith('\\') || (line.match(/'/g)?.length ?? 0) % 2 === 1;
    if (!isOpen) {
      lines.push(line);
      line = '';
    }
  }
  return lines;
}

test('every command of README and the guides gets the documented answer', { timeout: 240_000 }, async () => {
  const media = mkdtempSync(path.join(tmpdir(), 'millrace-media-'));
  onTestFinished(() => rmSync(media, { recursive: true, force: true }));
  const film = path.join(media, 'film.mp4');
  mkdirSync(path.join(media, 'films'), { recursive: true });
  const made = ['-f', 'lavfi', '-i', 'testsrc2=size=320x180:rate=30', '-f', 'lavfi', '-i', 'sine', '-t', '20'];
  const codecs = ['-c:v', 'libx264', '-preset', 'ultrafast', '-pix_fmt', 'yuv420p', '-g', '30', '-bf', '0', '-c:a', 'aac'];
  const encoder = new Child(requireProgram('ffmpeg'), ['-v', 'error', '-nostdin', '-y', ...made, ...codecs, film]);
  expect((await encoder.ended(60_000)).code, encoder.stderr).toBe(0);
  copyFileSync(film, path.join(media, 'films/one.mp4'));

  const rtsp = await startRtspServer();
  onTestFinished(() => rtsp.stop());
  const other = await startShippedServer();
  const server = await startShippedServer(withSettings(media));
  const sources = { camera: rtsp.url('h264-aac'), origin: `ovt://127.0.0.1:${other.ports.ORIGIN}/app/live` };
  const folder = path.dirname(server.config);
  mkdirSync(path.join(folder, 'conf'));
  // The policy from the page about signed URLs, only for the command that reads the key there. The server itself admits everyone.
  const policy = /<SignedPolicy>.*<\/SignedPolicy>/s.exec(blocksIn('docs/guide/access.md', 'xml')[0]?.text ?? '')?.[0] ?? '';
  writeFileSync(
    path.join(folder, 'conf/Server.xml'),
    readFileSync(server.config, 'utf8').replace('<Applications>', `${policy}<Applications>`),
  );
  writeFileSync(path.join(server.state, 'access-token'), server.token);
  copyFileSync(film, path.join(folder, 'film.mp4'));
  const api = new ApiClient(`http://127.0.0.1:${server.ports.API}`, server.token);
  const env: NodeJS.ProcessEnv = {
    ...process.env,
    ...COMPILED,
    NODE: process.execPath,
    MAIN,
    AUTH: `Authorization: Bearer ${server.token}`,
    API: api.base,
    TOKEN: server.token,
    MILLRACE_API: api.base,
    MILLRACE_TOKEN: server.token,
    STREAM_KEY: 'key',
  };
  const typed = (text: string): Child => {
    const child = new Child('bash', ['-c', PREAMBLE + text], { cwd: folder, env, ownGroup: true });
    onTestFinished(async () => {
      child.signalGroup('SIGKILL');
      await child.exited;
    });
    return child;
  };

  const looped = ({ ports }: ShippedServer, name: string): Child =>
    typed(`ffmpeg -v error -re -stream_loop -1 -i film.mp4 -c copy -f flv rtmp://127.0.0.1:${ports.RTMP_PROV}/app/${name}`);
  looped(other, 'live');

  /** Runs a command line that does not end by itself, and waits for its effect. */
  const begun = async (line: string): Promise<void> => {
    let child = typed(line);
    const [, shown] = SHOWN.find(([what]) => what.test(line)) ?? [];
    const file = />\s*(\S+)$/.exec(line)?.[1];
    const published = streamOf(line, server);
    const isThere = async (): Promise<boolean> => {
      if (shown !== undefined) return shown.test(child.output);
      if (file !== undefined) return existsSync(path.join(folder, file)) && statSync(path.join(folder, file)).size > 100_000;
      // Programs give up a connection after three seconds, which is too short on a loaded machine: the command is repeated, as a user would
      // do.
      if (child.exit !== null) child = typed(line);
      return (await api.call('GET', published)).status === 200;
    };
    await until(line, isThere, WAIT).catch((error: unknown) => {
      throw new Error(`${line}: ${child.output.slice(-1000)}`, { cause: error });
    });
    // The following commands use the stream of README.
    if (published !== streamOf('app/live', server)) child.signalGroup('SIGKILL');
  };

  const ran = async ({ page, line, text }: PageBlock): Promise<void> => {
    const commands = linesOf(adapted(text, server, sources));
    const ending = commands.filter((command) => !ENDLESS.test(command));
    for (const command of commands.filter((each) => ENDLESS.test(each))) await begun(command);
    if (ending.length === 0) return;
    // Findings about the test machine are irrelevant.
    const isDoctor = text.includes('-- doctor');
    const child = typed(`${ending.join('\n')}${isDoctor ? ' || [ $? = 1 ]' : ''}`);
    const { code } = await child.ended(60_000);
    expect(code, `${page}:${line}\n${child.output}`).toBe(0);
    if (isDoctor) expect(child.stdout).toMatch(/^ok +ports /m);
  };

  const stateOf = async (channel: string): Promise<string | undefined> => {
    const { body } = await api.call('GET', `/v1/vhosts/default/apps/app/multiplexChannels/${channel}`);
    return (body as { readonly response?: { readonly state?: string } }).response?.state;
  };

  const [own] = blocksIn('README.md', 'sh').filter(({ text }) => text.includes('"name": "mine"'));
  const pages = ['README.md', ...PAGES.filter((page) => page !== 'README.md' && !OTHERS.test(page))];
  let count = 0;
  for (const page of pages) {
    if (page.endsWith('/keys.md')) {
      expect((await api.call('POST', '/v1/vhosts', [{ name: 'show', host: { names: ['show.example'] } }])).status).toBe(200);
      expect((await api.call('POST', '/v1/vhosts/show/apps', [{ name: 'app', type: 'live' }])).status).toBe(200);
    }
    if (page.endsWith('/channels.md')) {
      for (const name of ['hd', 'sd']) looped(server, name);
    }
    // The virtual host of README, which a later command removes.
    if (page.endsWith('/publish.md') && own !== undefined) await ran({ ...own, text: own.text.replace(/^.*-X DELETE.*$/m, '') });
    for (const block of blocksIn(page, 'sh')) {
      await ran(block);
      count += 1;
      if (block.text.includes('ctl drain')) await ran({ ...block, text: 'millrace ctl resume' });
      if (block.text.includes('/multiplexChannels')) await until('the ladder', async () => (await stateOf('both')) === 'Playing', WAIT);
      if (block.text.includes('/scheduledChannels')) await api.call('DELETE', '/v1/vhosts/default/apps/app/scheduledChannels/tv');
    }
  }
  expect(count).toBeGreaterThan(20);
  for (const { text } of blocksIn('docs/guide/events.md', 'json')) {
    for (const body of text.trim().split('\n')) {
      const { status } = await api.call('POST', '/v1/vhosts/default/apps/app/streams/live:sendEvent', JSON.parse(body));
      expect(status, body).toBe(200);
    }
  }
});

/** Path of the API for the stream that a command publishes. */
function streamOf(line: string, { ports }: ShippedServer): string {
  if (line.includes('/show/live')) return '/v1/vhosts/mine/apps/show/streams/live';
  const name = line.includes('udp:') ? `stream_${ports.MPEGTS_PROV}` : /app\/(\w+)/.exec(line)?.[1];
  return `/v1/vhosts/default/apps/app/streams/${name}`;
}
