/** Events on a live stream as players and receivers get them: ID3, cues, splices, the end of live playlists. */
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { requireProgram } from '../../scripts/ensure-tools.ts';
import { parseSplice } from '../../src/containers/markers/splice-info.ts';
import { apiPath } from '../harness/api-client.ts';
import { openBrowser, type PlayerBrowser } from '../harness/browser.ts';
import { Child } from '../harness/child.ts';
import { dataPackets, keyframeTimes, marked, mediaPlaylists, seenMetadata, watchMetadata } from '../harness/event-viewer.ts';
import { until } from '../harness/poll.ts';
import { freePorts } from '../harness/ports.ts';
import { decode } from '../harness/probe.ts';
import { type FfmpegPublisher, publish } from '../harness/publisher.ts';
import { startServer, type TestServer } from '../harness/server.ts';

const DEADLINE = { deadlineMs: 30_000 };

let server: TestServer;
let browser: PlayerBrowser;
let egress = 0;
let ingestPort = 0;
let encoder: FfmpegPublisher;
const cleanups: (() => unknown)[] = [];
/** An SEI message every half second. */
const RULES = `<EventInfo><Event><Enable>true</Enable><SourceStreamName>generated</SourceStreamName><Interval>500</Interval>
  <EventFormat>sei</EventFormat><EventType>video</EventType><Values><Data>made at \${EpochTime}</Data></Values></Event></EventInfo>`;
let folder = '';

beforeAll(async () => {
  const [ingest = 0, srt = 0] = await freePorts(2);
  egress = srt;
  ingestPort = ingest;
  folder = mkdtempSync(path.join(tmpdir(), 'events-'));
  const rules = path.join(folder, 'rules.xml');
  writeFileSync(rules, RULES);
  server = await startServer({
    hostNames: ['127.0.0.1'],
    segmentDuration: 3,
    segmentCount: 20,
    hlsSegmentDuration: 3,
    hlsSegmentCount: 20,
    srt: { ingest, egress },
    push: '',
    application: `<EventGenerator><Enable>true</Enable><Path>${rules}</Path></EventGenerator>`,
  });
  browser = await openBrowser();
});

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

afterAll(async () => {
  await browser?.close();
  await server?.close();
  rmSync(folder, { recursive: true, force: true });
});

async function live(name: string): Promise<void> {
  encoder = publish({ url: server.rtmp(name) });
  cleanups.push(() => encoder.stop());
  await encoder.sent(60);
  await until('playlists', async () => (await mediaPlaylists(server.http(name, 'llhls.m3u8')).catch(() => null)) !== null, DEADLINE);
}

async function send(name: string, body: object): Promise<void> {
  expect(await server.api.call('POST', `${apiPath.stream(name)}:sendEvent`, body)).toEqual({
    status: 200,
    body: { message: 'OK', statusCode: 200 },
  });
}

const id3 = (info: string, data: string) => ({ eventFormat: 'id3v2', eventType: 'video', events: [{ frameType: 'TXXX', info, data }] });

test('hls.js sees the ID3 tags of an event and the date range of a splice', async () => {
  await live('seen');
  const player = await browser.play(server.http('seen', 'llhls.m3u8'));
  cleanups.push(() => player.page.close());
  await player.played(1, 30_000);
  await watchMetadata(player);
  await send('seen', {
    ...id3('quiz', 'question 1'),
    events: [
      { frameType: 'TXXX', info: 'quiz', data: 'question 1' },
      { frameType: 'PRIV', info: 'me', data: 'x' },
    ],
  });
  await send('seen', { eventFormat: 'scte35', events: [{ id: 77, type: 'out', duration: 3000 }] });
  const cue = await until('the cue', async () => (await seenMetadata(player)).cues.find(({ key }) => key === 'TXXX'), DEADLINE);
  expect(cue).toMatchObject({ type: 'https://aomedia.org/emsg/ID3', data: 'question 1' });
  const range = await until(
    'the end of the break',
    async () => {
      const found = (await seenMetadata(player)).ranges['77'];
      return found !== undefined && 'SCTE35-IN' in found ? found : null;
    },
    DEADLINE,
  );
  const out = Buffer.from(String(range['SCTE35-OUT']).slice(2), 'hex');
  expect(parseSplice(out)).toMatchObject({ id: 77, type: 'out', duration: 270_000, autoReturn: true });
  expect(range['PLANNED-DURATION']).toBe('3.000');
  // An event of one track only, because hls.js counts the events of each track.
  const { samples } = await seenMetadata(player);
  expect(samples.filter(({ text }) => text.includes('question 1'))).toHaveLength(1);
});

test('breaks are cut at the same keyframe in all playlists, and end after their duration', async () => {
  await live('breaks');
  await send('breaks', { eventFormat: 'cue', events: [{ cueType: 'out', duration: 4000 }] });
  const lists = async (file: string) => (await mediaPlaylists(server.http('breaks', file))).map(marked);
  const ended = await until(
    'the end of the break',
    async () => {
      const found = [...(await lists('llhls.m3u8')), ...(await lists('ts:playlist.m3u8'))];
      return found.length === 3 && found.every((each) => each.some(({ line }) => line === '#EXT-X-CUE-IN')) ? found : null;
    },
    DEADLINE,
  );
  const [video = [], audio = [], ts = []] = ended;
  expect(audio.map(({ line }) => line)).toEqual(video.map(({ line }) => line));
  // Audio segments begin with whole frames.
  for (const [index, { date }] of audio.entries())
    expect(Math.abs(Date.parse(date) - Date.parse(video[index]?.date ?? ''))).toBeLessThan(25);
  expect(video.map(({ line }) => line.replace(/ElapsedTime=[\d.]+/, 'ElapsedTime=T'))).toEqual([
    '#EXT-X-CUE-OUT:DURATION=4.000',
    ...video.slice(1, -1).map(() => '#EXT-X-CUE-OUT-CONT:ElapsedTime=T,Duration=4.000'),
    '#EXT-X-CUE-IN',
  ]);
  const dates = (each: typeof video) => each.filter(({ line }) => !line.includes('CONT')).map(({ date }) => Date.parse(date));
  const [from = 0, to = 0] = dates(video);
  // Keyframes are a second apart: the break has its announced duration.
  expect(Math.abs(to - from - 4000)).toBeLessThan(100);
  expect(dates(ts).map((date, index) => Math.abs(date - (dates(video)[index] ?? 0)) <= 100)).toEqual([true, true]);
});

test('a receiver of SRT finds timed ID3 and SCTE-35 in its transport stream, and so do segments of HLS', async () => {
  await live('received');
  const file = path.join(server.folder, 'received.ts');
  const url = `srt://127.0.0.1:${egress}?streamid=${encodeURIComponent('default/app/received')}`;
  const receiver = new Child('sh', ['-c', `exec ${requireProgram('srt-live-transmit')} -a no -q '${url}' file://con > '${file}'`], {
    name: 'receiver',
  });
  cleanups.push(() => receiver.kill());
  const received = (): number => statSync(file, { throwIfNoEntry: false })?.size ?? 0;
  await until('media', () => received() > 100_000, DEADLINE);
  await send('received', id3('quiz', 'question 2'));
  await send('received', { eventFormat: 'scte35', events: [{ id: 78, type: 'out', duration: 2000, autoReturn: false }] });
  await send('received', { eventFormat: 'cue', events: [{ cueType: 'in' }] });
  const before = received();
  await until('more media', () => received() > before + 500_000, DEADLINE);
  await receiver.kill();
  const { codecs, packets } = await dataPackets(file);
  expect(codecs.toSorted()).toEqual(['scte_35', 'timed_id3']);
  const [tag, ...tags] = packets.filter(({ codec }) => codec === 'timed_id3');
  expect([tag?.bytes.includes('question 2'), tags.length]).toEqual([true, 0]);
  const [section, ...sections] = packets.filter(({ codec }) => codec === 'scte_35');
  const splice = parseSplice(section?.bytes ?? new Uint8Array(0));
  expect(sections).toHaveLength(0);
  expect(splice).toMatchObject({ id: 78, type: 'out', duration: 180_000, autoReturn: false });
  // The splice is at a keyframe after its announcement.
  const keyframes = await keyframeTimes(file);
  const ahead = (splice?.time ?? 0) / 90_000;
  expect(Math.min(...keyframes.map((time) => Math.abs(time - ahead)))).toBeLessThan(0.02);
  expect(ahead - (tag?.pts ?? 0)).toBeGreaterThan(0.9);

  const playlist = server.http('received', 'ts:playlist.m3u8');
  const listed = await until(
    'the segment with the splice',
    async () => {
      const [text = ''] = await mediaPlaylists(playlist);
      const uris = text.split('\n').filter((line) => line.endsWith('.ts'));
      return text.includes('SCTE35-OUT') ? uris : null;
    },
    DEADLINE,
  );
  const found = (await Promise.all(listed.map((uri) => dataPackets(new URL(uri, playlist).href)))).flatMap(({ packets: data }) => data);
  expect(found.map(({ codec, bytes }) => (codec === 'scte_35' ? parseSplice(bytes)?.id : bytes.includes('question 2'))).toSorted()).toEqual(
    [78, true],
  );
});

test.each([false, true])('live playlists end when a client concludes them, urgent: %s', async (urgent) => {
  const name = `concluded-${urgent}`;
  await live(name);
  const conclude = () => server.api.call('POST', `${apiPath.stream(name)}:concludeHlsLive`, urgent ? { urgent } : undefined);
  expect(await conclude()).toEqual({ status: 200, body: { message: 'OK', statusCode: 200 } });
  expect((await conclude()).status).toBe(200);
  const lists = async () => [
    ...(await mediaPlaylists(server.http(name, 'llhls.m3u8'))),
    ...(await mediaPlaylists(server.http(name, 'ts:playlist.m3u8'))),
  ];
  const ended = await until(
    'the end tag in three playlists',
    async () => {
      const texts = await lists();
      return texts.length === 3 && texts.every((text) => text.endsWith('#EXT-X-ENDLIST\n')) ? texts : null;
    },
    DEADLINE,
  );
  // The encoder continues, and no event is appended.
  await encoder.sent(120);
  expect(await lists()).toEqual(ended);
});

test('frames have the SEI that a generator makes, and decode', async () => {
  await live('generated');
  const playlist = server.http('generated', 'ts:playlist.m3u8');
  const uri = await until(
    'a second segment',
    async () => {
      const [text = ''] = await mediaPlaylists(playlist);
      return text.split('\n').filter((line) => line.endsWith('.ts'))[1];
    },
    DEADLINE,
  );
  const url = new URL(uri, playlist).href;
  const bytes = Buffer.from(await (await fetch(url)).arrayBuffer());
  // The boundary of a 188-byte packet may cut some texts, but not all.
  const times = [...bytes.toString('latin1').matchAll(/made at (\d{13})/g)].map((match) => Number(match[1]));
  expect(times.length).toBeGreaterThan(2);
  for (const time of times) expect(Math.abs(Date.now() - time)).toBeLessThan(60_000);
  expect((await decode(url, 2)).errors).toBe('');
});

test('a splice pushed over SRT to the server itself is a date range of the copy, at the same frame', async () => {
  await live('sent');
  const url = `srt://127.0.0.1:${ingestPort}?streamid=${encodeURIComponent('default/app/again')}`;
  const push = { id: 'p', stream: { name: 'sent' }, protocol: 'srt', url };
  await server.api.create(`${apiPath.app('default', 'app')}:startPush`, push);
  const lists = async (name: string) => (await mediaPlaylists(server.http(name, 'llhls.m3u8'))).map(marked);
  await until('the stream that was pushed', async () => (await lists('again').catch(() => [])).length === 2, DEADLINE);
  await send('sent', { eventFormat: 'scte35', events: [{ id: 99, type: 'out', duration: 2000 }] });
  const found = await until(
    'both ends of the break',
    async () => {
      const all = await lists('again');
      return all.every((lines) => lines.some(({ line }) => line.includes('SCTE35-IN'))) ? all : null;
    },
    DEADLINE,
  );
  const [video = [], audio = []] = found;
  expect(audio.map(({ line }) => line)).toEqual(video.map(({ line }) => line));
  // The explicit return and the automatic return are one return.
  expect(video.map(({ line }) => /SCTE35-(OUT|IN)/.exec(line)?.[0])).toEqual(['SCTE35-OUT', 'SCTE35-IN']);
  const [first, second] = video.map(({ date }) => Date.parse(date));
  expect(Math.abs((second ?? 0) - (first ?? 0) - 2000)).toBeLessThan(100);
});

test('encodes have a keyframe at the start and end of a break, independent of their own interval', async () => {
  const video = (name: string, height: number) => ({
    ...{ name, codec: 'h264', bitrate: 200_000, width: (height * 16) / 9, height, framerate: 30 },
    ...{ keyFrameInterval: 5000, keyFrameIntervalType: 'time', preset: 'faster' },
  });
  const encodes = { videos: [video('high', 180), video('low', 90)], audios: [{ name: 'a', bypass: true }] };
  const renditions = ['high', 'low'].map((name) => ({ name, video: name, audio: 'a' }));
  const profile = {
    name: 'p',
    outputStreamName: '${OriginStreamName}',
    encodes,
    playlists: [{ name: 'abr', fileName: 'abr', renditions }],
  };
  const publishers = { llhls: { chunkDuration: 0.5, segmentDuration: 5, segmentCount: 20 } };
  const application = { name: 'enc', type: 'live', providers: { rtmp: {} }, publishers, outputProfiles: { outputProfile: [profile] } };
  await server.api.create('/v1/vhosts', [{ name: 'second', host: { names: ['localhost'] } }]);
  await server.api.create(`${apiPath.vhost('second')}/apps`, [application]);
  encoder = publish({ url: server.rtmp('ladder', 'enc', 'localhost'), width: 320, height: 180, videoKbps: 300 });
  cleanups.push(() => encoder.stop());
  const lists = async () => (await mediaPlaylists(server.http('ladder', 'abr.m3u8', 'enc', 'localhost')).catch(() => [])).map(marked);
  await until('the ladder', async () => (await lists()).length === 3, { deadlineMs: 60_000 });
  const event = { eventFormat: 'cue', events: [{ cueType: 'out', duration: 2000 }] };
  await server.api.create(`${apiPath.stream('ladder', 'enc', 'second')}:sendEvent`, event);
  const ended = await until(
    'the end of the break',
    async () => {
      const all = await lists();
      return all.every((lines) => lines.some(({ line }) => line === '#EXT-X-CUE-IN')) ? all : null;
    },
    { deadlineMs: 60_000 },
  );
  const dates = ended.map((lines) => lines.filter(({ line }) => !line.includes('CONT')).map(({ date }) => Date.parse(date)));
  const [[out = 0, back = 0] = []] = dates;
  // The keyframes of the source are five seconds apart.
  expect(Math.abs(back - out - 2000)).toBeLessThan(100);
  for (const [from = 0, to = 0] of dates) expect([Math.abs(from - out) < 60, Math.abs(to - back) < 60]).toEqual([true, true]);
});
