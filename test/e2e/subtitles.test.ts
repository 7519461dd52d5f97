/** Subtitles from the API and captions in the video, as hls.js shows them in Chromium. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { requireProgram } from '../../scripts/ensure-tools.ts';
import { AnnexbCursor } from '../../src/codecs/nal/nal-cursor.ts';
import { apiPath } from '../harness/api-client.ts';
import { openBrowser, type PlayerBrowser } from '../harness/browser.ts';
import { Child } from '../harness/child.ts';
import { mediaPlaylists } from '../harness/event-viewer.ts';
import { until } from '../harness/poll.ts';
import { publish } from '../harness/publisher.ts';
import { startServer, type TestServer } from '../harness/server.ts';
import { burntBefore, dateAt, endOfNextPart, seenCues, watchCues } from '../harness/subtitle-viewer.ts';
import { captionUnit, popOn } from '../support/captions.ts';

const DEADLINE = { deadlineMs: 30_000 };
/** Tolerance between the frame times of players and playlists, ms: an audio frame, and rounding. */
const TOLERANCE_MS = 50;

let server: TestServer;
let media: string;
let browser: PlayerBrowser;
const cleanups: (() => unknown)[] = [];

const RENDITIONS = `<MediaOptions><Subtitles>
    <Enable>true</Enable><DefaultLabel>English</DefaultLabel>
    <Rendition><Language>en</Language><Label>English</Label></Rendition>
    <Rendition><Language>ko</Language><Label>Korean</Label></Rendition>
  </Subtitles></MediaOptions>`;

/** An encoded output beside the watched stream. */
const ENCODED = `<OutputProfile>
    <Name>encoded</Name><OutputStreamName>\${OriginStreamName}_encoded</OutputStreamName>
    <Encodes>
      <Video><Name>v</Name><Codec>h264</Codec><Width>160</Width><Height>90</Height><Bitrate>200000</Bitrate><Framerate>30</Framerate></Video>
      <Audio><Name>a</Name><Bypass>true</Bypass></Audio>
    </Encodes>
  </OutputProfile>`;

beforeAll(async () => {
  media = mkdtempSync(path.join(tmpdir(), 'millrace-films-'));
  server = await startServer({
    providers: `<Schedule><MediaRootDir>${media}</MediaRootDir><ScheduleFilesDir>${media}</ScheduleFilesDir></Schedule>`,
    mediaOptions: RENDITIONS + ENCODED,
    segmentCount: 20,
    hlsSegmentCount: 20,
  });
  browser = await openBrowser();
});

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

afterAll(async () => {
  await browser?.close();
  await server?.close();
  rmSync(media, { recursive: true, force: true });
});

async function live(name: string, playlist: string) {
  const encoder = publish({ url: server.rtmp(name), withClock: true });
  cleanups.push(() => encoder.stop());
  await encoder.sent(60);
  const url = server.http(name, playlist);
  await until('playlists', async () => (await mediaPlaylists(url).catch(() => null)) !== null, DEADLINE);
  const player = await browser.play(url);
  cleanups.push(() => player.page.close());
  await player.played(1, 30_000);
  return player;
}

/** Wall clock, ms, at which the server had the subtitles. */
async function send(name: string, label: string, subtitles: readonly object[]): Promise<number> {
  expect(
    await server.api.call('POST', `${apiPath.stream(name)}:sendSubtitles`, { format: 'webvtt', data: [{ label, subtitles }] }),
  ).toEqual({
    status: 200,
    body: { message: 'OK', statusCode: 200 },
  });
  return Date.now();
}

test.each(['llhls.m3u8', 'ts:playlist.m3u8'])('a cue is active while the frames of its time are shown, over %s', async (playlist) => {
  const name = playlist.startsWith('ts') ? 'ts' : 'll';
  const player = await live(name, playlist);
  await watchCues(player, 'Korean');
  const known = await endOfNextPart(server.http(name, 'llhls.m3u8'));
  // A cue that lasts several segments, and a cue after it.
  const sentBy = await send(name, 'Korean', [
    { text: '안녕 <b>a & b</b>', durationMs: 5000, settings: 'line:10%' },
    { text: 'then --> this', startOffset: 500, durationMs: 1500 },
  ]);
  await send(name, 'English', [{ text: 'nobody has chosen it' }]);
  const seen = await until(
    'both cues',
    async () => {
      const cues = await seenCues(player);
      return cues.some(({ text }) => text.startsWith('then')) ? cues : null;
    },
    DEADLINE,
  );
  const [first, second, ...more] = seen;
  expect(more).toEqual([]);
  expect(first).toMatchObject({ text: '안녕 a & b', label: 'Korean', language: 'ko', kind: 'subtitles' });
  expect(second?.text).toBe('then --> this');
  if (first === undefined || second === undefined) return;
  expect(first.end - first.start).toBeCloseTo(5, 1);
  expect(second.start - first.end).toBeCloseTo(0.5, 1);
  expect(second.end - second.start).toBeCloseTo(1.5, 1);
  // The cue starts after the media that existed before it was sent, and no later than the next frame: the frame before the cue was made
  // earlier.
  expect(await dateAt(player, first.start)).toBeGreaterThan(known - TOLERANCE_MS);
  expect(await burntBefore(player, first.start)).toBeLessThanOrEqual(sentBy);
  // The second cue is 5.5 s later by the dates of other segments. It was sent that much in advance, so the player knew it before.
  expect(Math.abs((await dateAt(player, second.start)) - (await dateAt(player, first.start)) - 5500)).toBeLessThan(TOLERANCE_MS);
  expect(second.knownAt).toBeLessThanOrEqual(second.start);
  for (const cue of [first, second]) {
    expect(cue.enteredAt).toBeGreaterThanOrEqual(cue.start - 0.05);
    expect(cue.enteredAt).toBeLessThan(cue.end);
  }
});

/** A film of 30 frames a second, whose frames carry consecutive captions. */
async function captionedFilm(folder: string): Promise<string> {
  const [plain, captioned, film] = ['plain.h264', 'captioned.h264', 'film.flv'].map((name) => path.join(folder, name)) as [
    string,
    string,
    string,
  ];
  const encode = [
    '-c:v',
    'libx264',
    '-profile:v',
    'baseline',
    '-g',
    '30',
    '-sc_threshold',
    '0',
    '-threads',
    '1',
    '-x264-params',
    'slices=1',
  ];
  await ffmpeg(['-f', 'lavfi', '-i', 'testsrc2=size=320x180:rate=30', '-t', '60', ...encode, '-f', 'h264', plain]);
  const captions = popOn('HELLO THERE', 30);
  const units: Uint8Array[] = [];
  const nals = new AnnexbCursor(readFileSync(plain));
  for (let frame = 0; nals.next(); ) {
    const type = (nals.data[nals.start] ?? 0) & 0x1f;
    const triplet = captions[frame % captions.length];
    if (type === 1 || type === 5) frame += 1;
    units.push(...((type === 1 || type === 5) && triplet !== undefined ? [captionUnit('H264', [triplet])] : []), nals.unit());
  }
  writeFileSync(captioned, Buffer.concat(units.flatMap((unit) => [Uint8Array.of(0, 0, 0, 1), unit])));
  const sound = ['-f', 'lavfi', '-i', 'sine=frequency=440:sample_rate=48000', '-shortest', '-c:a', 'aac'];
  await ffmpeg(['-framerate', '30', '-i', captioned, ...sound, '-c:v', 'copy', film]);
  return film;
}

async function ffmpeg(args: readonly string[]): Promise<void> {
  const child = new Child(requireProgram('ffmpeg'), ['-hide_banner', '-loglevel', 'error', '-nostdin', '-y', ...args]);
  try {
    const { code } = await child.ended(60_000);
    if (code !== 0) throw new Error(child.stderr.slice(-1000));
  } finally {
    await child.kill();
  }
}

test('captions in the video are declared, pass through and are shown, and survive the encoder', async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'millrace-captions-'));
  cleanups.push(() => rmSync(folder, { recursive: true }));
  const film = await captionedFilm(folder);
  const source = ['-re', '-i', film, '-c', 'copy', '-f', 'flv'];
  const encoder = new Child(requireProgram('ffmpeg'), [
    '-hide_banner',
    '-loglevel',
    'error',
    '-nostdin',
    ...source,
    server.rtmp('captions'),
  ]);
  cleanups.push(() => encoder.kill());
  const declared = async (name: string, playlist: string): Promise<string[]> =>
    await until(
      `captions of ${name}`,
      async () => {
        const answer = await fetch(server.http(name, playlist)).catch(() => null);
        const lines = answer?.status === 200 ? (await answer.text()).split('\n').filter((line) => line.includes('CLOSED-CAPTIONS')) : [];
        return lines.length > 0 ? lines : null;
      },
      DEADLINE,
    );
  const expected = [
    '#EXT-X-MEDIA:TYPE=CLOSED-CAPTIONS,GROUP-ID="cc",NAME="CC1",DEFAULT=NO,AUTOSELECT=YES,INSTREAM-ID="CC1"',
    expect.stringMatching(/,CLOSED-CAPTIONS="cc"$/),
  ];
  expect(await declared('captions', 'llhls.m3u8')).toEqual(expected);
  expect(await declared('captions', 'ts:playlist.m3u8')).toEqual(expected);
  expect(await declared('captions_encoded', 'llhls.m3u8')).toEqual(expected);
  // In low-latency mode hls.js 1.7 parses each part anew, and loses cues that span several parts.
  for (const [name, playlist] of [
    ['captions', 'llhls.m3u8?_HLS_legacy=YES'],
    ['captions', 'ts:playlist.m3u8'],
    ['captions_encoded', 'llhls.m3u8?_HLS_legacy=YES'],
  ] as const) {
    const player = await browser.play(server.http(name, playlist));
    await watchCues(player, 'CC1');
    const cue = await until('a caption', async () => (await seenCues(player)).find(({ text }) => text.includes('HELLO THERE')), DEADLINE);
    expect(cue).toMatchObject({ label: 'CC1', kind: 'captions' });
    await player.page.close();
  }
});

test("subtitle files of a channel's films are shown with them, in each repetition", async () => {
  for (const colour of ['black', 'white']) {
    const source = [
      '-f',
      'lavfi',
      '-i',
      `color=${colour}:size=320x180:rate=30`,
      '-f',
      'lavfi',
      '-i',
      'sine=frequency=440:sample_rate=48000',
    ];
    const encode = ['-c:v', 'libx264', '-preset', 'ultrafast', '-g', '30', '-pix_fmt', 'yuv420p', '-c:a', 'aac', '-threads', '1'];
    await ffmpeg([...source, '-t', '4', ...encode, path.join(media, `${colour}.mp4`)]);
  }
  writeFileSync(path.join(media, 'black.en.vtt'), 'WEBVTT\n\n00:00.200 --> 00:03.800 line:5%\nthis is black\n');
  writeFileSync(path.join(media, 'white.srt'), '1\r\n00:00:00,200 --> 00:00:03,800\r\nthis is <font color="red">white</font>\r\n');
  const items = [{ url: 'file://black.mp4' }, { url: 'file://white.mp4' }];
  const scheduled = new Date(Date.now() - 3_600_000).toISOString();
  const channel = { stream: { name: 'films' }, programs: [{ name: 'day', scheduled, repeat: true, items }] };
  expect((await server.api.call('POST', `${apiPath.app('default', 'app')}/scheduledChannels`, channel)).status).toBeLessThan(300);
  const url = server.http('films', 'llhls.m3u8');
  await until('playlists', async () => (await mediaPlaylists(url).catch(() => null)) !== null, DEADLINE);
  const player = await browser.play(url);
  cleanups.push(() => player.page.close());
  await watchCues(player, 'English');
  const seen = await until(
    'both films twice',
    async () => {
      const cues = await seenCues(player);
      return cues.length >= 5 ? cues : null;
    },
    // The cues take 16 s to play.
    { deadlineMs: 60_000 },
  );
  const whole = seen.slice(1, -1);
  for (const { text, start, end, brightness } of whole) {
    expect(text).toMatch(/^this is (black|white)$/);
    expect(brightness > 128).toBe(text.endsWith('white'));
    expect(end - start).toBeCloseTo(3.6, 1);
  }
  for (const [index, { start, text }] of whole.slice(1).entries()) {
    expect(start - (whole[index]?.start ?? 0)).toBeCloseTo(4, 1);
    expect(text).not.toBe(whole[index]?.text);
  }
}, 120_000);
