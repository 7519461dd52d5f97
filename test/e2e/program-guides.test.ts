/** The commands of docs/guide/encoders.md and players.md, with the shipped configuration: they publish and play. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { requireProgram } from '../../scripts/ensure-tools.ts';
import { ApiClient } from '../harness/api-client.ts';
import { Child } from '../harness/child.ts';
import { PageBrowser } from '../harness/page-browser.ts';
import { until } from '../harness/poll.ts';
import { publish } from '../harness/publisher.ts';
import { ROOT } from '../harness/server.ts';
import { type ShippedServer, startShippedServer } from '../harness/shipped-server.ts';

const WAIT = { deadlineMs: 60_000, everyMs: 200 };
const STREAMS = '/v1/vhosts/default/apps/app/streams';
const FRAMES = 30;
/** More than fit into a segment, at the end of which players of LL-HLS can stall. */
const FRAMES_OF_A_SEGMENT = 250;
/** Replacements for devices that the test machine lacks, and for options that would overload it. */
const STAND_INS: readonly (readonly [string | RegExp, string])[] = [
  ['-f v4l2 -framerate 30 -video_size 1280x720 -i /dev/video0', '-re -f lavfi -i testsrc2=size=320x180:rate=30'],
  ['-f alsa -i default', '-f lavfi -i sine=frequency=440'],
  ['width=1280,height=720', 'width=320,height=180'],
];
/** ffplay without a screen or a sound card. */
const FFPLAY = 'SDL_VIDEODRIVER=dummy SDL_AUDIODRIVER=dummy ffplay';
/** VLC counts frames; it refuses to run as root. */
const VLC = `${process.getuid?.() === 0 ? 'setpriv --reuid=65534 --regid=65534 --clear-groups env HOME=/tmp ' : ''}vlc -I oldrc --rc-fake-tty --vout dummy --aout dummy`;
/** Players' output that proves video and audio. */
const PLAYING: Readonly<Record<string, readonly RegExp[]>> = {
  // The distance of audio and video in its status line.
  ffplay: [/\d A-V: *-?\d/, /h264/, /aac/],
  // Not every element prints its caps, but one always prints that audio was decoded.
  'gst-launch-1.0': [/rendered: [3-9]\d, dropped/, /caps = audio\/x-raw/],
  vlc: [/frames displayed *: *([3-9]\d|\d{3})/, /buffers played *: *([3-9]\d|\d{3})/],
};

function blocks(guide: string, language: string): string[] {
  const text = readFileSync(path.join(ROOT, 'docs/guide', guide), 'utf8');
  return [...text.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, 'gms'))].map(([, block = '']) => block);
}

/** Adapts a command for the server under test, with its own stream. */
function adapted(text: string, { ports }: ShippedServer, stream: string): string {
  const port = { 1935: ports.RTMP_PROV, 3333: ports.WEBRTC_SIGNALLING, 9998: ports.SRT_PUB, 9999: ports.SRT_PROV };
  return Object.entries(port)
    .reduce((done, [documented, ours]) => done.replaceAll(`HOST:${documented}`, `127.0.0.1:${ours}`), text)
    .replaceAll('app/live', `app/${stream}`);
}

function temporaryFolder(): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'millrace-guide-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Runs a command of the guide. */
function typed(command: string, cwd: string): Child {
  const child = new Child('bash', ['-c', `exec ${command}`], { cwd, ownGroup: true });
  onTestFinished(async () => {
    child.signalGroup('SIGKILL');
    await child.exited;
  });
  return child;
}

/** A player without a screen, which logs what it plays. */
function headless(line: string): string {
  const [program = ''] = line.split(' ');
  if (program === 'ffplay') return line.replace('ffplay', `env ${FFPLAY}`);
  if (program === 'vlc') return `bash -c ${quoted(`while sleep 1; do echo stats; done | ${line.replace('vlc', VLC)}`)}`;
  if (program !== 'gst-launch-1.0') return line;
  return `${line} -v video-sink=${quoted('fpsdisplaysink text-overlay=false video-sink=fakesink')} audio-sink=fakesink`;
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** The codecs of the inbound stream. */
async function codecsOf(api: ApiClient, stream: string): Promise<string[]> {
  const { status, body } = await api.call('GET', `${STREAMS}/${stream}`);
  if (status !== 200) return [];
  const { tracks } = (body as { response: { input: { tracks: { video?: { codec: string }; audio?: { codec: string } }[] } } }).response
    .input;
  return tracks.map(({ video, audio }) => (video ?? audio)?.codec).filter((codec) => codec !== undefined);
}

test('every command of encoders.md publishes H.264 and AAC', { timeout: 120_000 }, async () => {
  const folder = temporaryFolder();
  const made = ['-f', 'lavfi', '-i', 'testsrc2=size=320x180:rate=30', '-f', 'lavfi', '-i', 'sine', '-t', '4'];
  const codecs = ['-c:v', 'libx264', '-preset', 'ultrafast', '-pix_fmt', 'yuv420p', '-g', '30', '-bf', '0', '-c:a', 'aac'];
  const film = new Child(requireProgram('ffmpeg'), ['-v', 'error', ...made, ...codecs, path.join(folder, 'film.mp4')]);
  expect((await film.ended(60_000)).code, film.stderr).toBe(0);
  const server = await startShippedServer();
  const api = new ApiClient(`http://127.0.0.1:${server.ports.API}`, server.token);
  const commands = blocks('encoders.md', 'sh');
  expect(commands.map((command) => command.split(' ')[0])).toEqual(['ffmpeg', 'ffmpeg', 'ffmpeg', 'gst-launch-1.0', 'gst-launch-1.0']);
  await Promise.all(
    commands.map(async (command, n) => {
      const line = STAND_INS.reduce((done, [what, by]) => done.replaceAll(what, by), command);
      // Programs give up a connection after three seconds, which is too short on a loaded machine: the command is repeated, as a user would
      // do.
      let child = typed(adapted(line, server, `s${n}`), folder);
      let told = '';
      const look = async (): Promise<readonly string[] | null> => {
        const codecs = await codecsOf(api, `s${n}`);
        if (codecs.length >= 2) return codecs.toSorted();
        if (child.exit !== null) {
          told = child.output.slice(-1000);
          child = typed(adapted(line, server, `s${n}`), folder);
        }
        return null;
      };
      const codecs = await until(`the stream of ${command}`, look, WAIT).catch((error: unknown) => {
        throw new Error(`${command}: ${told}`, { cause: error });
      });
      expect(codecs, command).toEqual(['AAC', 'H264']);
    }),
  );
});

test('every command and page of players.md plays video and audio', { timeout: 120_000 }, async () => {
  const folder = temporaryFolder();
  const server = await startShippedServer();
  const encoder = publish({ url: `rtmp://127.0.0.1:${server.ports.RTMP_PROV}/app/live`, width: 320, height: 180, videoKbps: 300 });
  onTestFinished(async () => void (await encoder.stop()));
  const playlist = adapted('http://HOST:3333/app/live/llhls.m3u8', server, 'live');
  await until('the stream', async () => (await fetch(playlist)).status === 200, WAIT);

  const commands = blocks('players.md', 'sh');
  const programs = ['vlc', 'vlc', 'ffplay', 'ffplay', 'ffprobe', 'gst-launch-1.0', 'gst-launch-1.0'];
  expect(commands.map((command) => command.split(' ')[0])).toEqual(programs);
  const pages = blocks('players.md', 'html');
  expect(pages).toHaveLength(3);
  const typing = commands.map(async (command) => {
    const line = headless(adapted(command, server, 'live').trim());
    const child = typed(line, folder);
    onTestFinished(() => child.signalGroup('SIGKILL'));
    const shown = PLAYING[command.split(' ')[0] ?? ''];
    if (shown !== undefined) {
      await until(`picture and sound of ${command}`, () => shown.every((each) => each.test(child.output)), WAIT).catch((error: unknown) => {
        throw new Error(child.output.slice(-2000), { cause: error });
      });
      // Frees the machine for the other tests.
      child.signalGroup('SIGKILL');
      return;
    }
    expect((await child.ended(WAIT.deadlineMs)).code, `${line}\n${child.output}`).toBe(0);
    for (const codec of ['h264', 'aac']) expect(child.output, line).toContain(codec);
  });
  const opening = pages.map(async (page, n) => {
    const file = path.join(folder, `${n}.html`);
    writeFileSync(file, adapted(page, server, 'live'));
    const browser = await PageBrowser.start({
      page: path.relative(path.join(ROOT, 'test/harness'), file),
      scripts: {
        '/ovenplayer.js': 'ovenplayer/dist/ovenplayer.js',
        '/hls.min.js': 'hls.js/dist/hls.min.js',
        '/video.min.js': 'video.js/dist/video.min.js',
      },
      switches: ['--allow-loopback-in-peer-connection'],
    });
    onTestFinished(() => browser.close());
    const shown = await browser.open({ width: 640, height: 360 });
    const frames = async (): Promise<number> =>
      Number(await shown.evaluate("document.querySelector('video')?.getVideoPlaybackQuality().totalVideoFrames ?? 0"));
    const enough = page.includes('videojs') ? FRAMES_OF_A_SEGMENT : FRAMES;
    await until(`frames of ${page}`, async () => (await frames()) >= enough, WAIT);
  });
  await Promise.all([...typing, ...opening]);
});
