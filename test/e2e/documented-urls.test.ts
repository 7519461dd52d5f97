/**
 * Every player URL in README and guides delivers video and audio, with the shipped configuration and in an application made by the API.
 */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { Audio, PeerConnection, type Track as PeerTrack, Video } from 'node-datachannel';
import { expect, onTestFinished, test } from 'vitest';
import { requireProgram } from '../../scripts/ensure-tools.ts';
import { ApiClient } from '../harness/api-client.ts';
import { Child } from '../harness/child.ts';
import { ConsoleBrowser } from '../harness/console-browser.ts';
import { until } from '../harness/poll.ts';
import { publish } from '../harness/publisher.ts';
import { ROOT } from '../harness/server.ts';
import { type ShippedServer, startShippedServer } from '../harness/shipped-server.ts';
import { SocketViewer } from '../harness/socket-viewer.ts';

/** Enough packets of each kind to prove that media flows. */
const ENOUGH = 30;
const WAIT = { deadlineMs: 40_000, everyMs: 100 };
const PLAYED = /\b(?:https?|wss?|srt):\/\/(?:HOST|localhost):(?:3333|9998)[^\s'"`<>|)]*(?:APP\/STREAM|app\/live)[^\s'"`<>|)]*/g;
const SENT_OR_STILL = /direction=(?:whip|send)|thumb\./;
/** The example of a ladder has its own stream. */
const MASTERS = ['http://HOST:3333/APP/STREAM/master.m3u8', 'http://HOST:3333/APP/STREAM/ts:master.m3u8'];
/** The address of a stream alone leads to the page that plays it. */
const PAGE = /^http:\/\/[^/]+\/[^/?]+\/[^/?]+$/;
/** Script for that page: number of frames so far, and whether audio is present now. */
const LOOK = `(() => {
  const video = document.querySelector('video');
  if (!(video?.srcObject instanceof MediaStream) || video.srcObject.getAudioTracks().length === 0) return { frames: 0, isLoud: false };
  if (window.analyser === undefined) {
    const context = new AudioContext();
    window.analyser = context.createAnalyser();
    context.createMediaStreamSource(video.srcObject).connect(window.analyser);
  }
  const samples = new Uint8Array(window.analyser.fftSize);
  window.analyser.getByteTimeDomainData(samples);
  return { frames: video.getVideoPlaybackQuality().totalVideoFrames, isLoud: samples.some((sample) => Math.abs(sample - 128) > 2) };
})()`;
const WHEP_MASTER = 'http://HOST:3333/APP/STREAM/master?direction=whep';

/** URLs with `HOST`, `APP` and `STREAM`, without repetitions. */
function documented(): string[] {
  const guides = readdirSync(path.join(ROOT, 'docs/guide')).map((name) => path.join('docs/guide', name));
  const texts = ['README.md', ...guides].map((file) => readFileSync(path.join(ROOT, file), 'utf8'));
  const written = texts.flatMap((text) => text.match(PLAYED) ?? []).filter((url) => !SENT_OR_STILL.test(url));
  const generic = written.map((url) => url.replace('localhost', 'HOST').replace('app/live', 'APP/STREAM'));
  return [...new Set(generic)].sort();
}

/** Received packets of video and audio. */
interface Heard {
  readonly video: number;
  readonly audio: number;
}

/** Tracks that ffmpeg finds in a few seconds of media. */
async function readByFfmpeg(url: string): Promise<Heard> {
  if (url.startsWith('http')) await until(url, async () => (await fetch(url)).status === 200, WAIT);
  const output = ['-map', '0:v:0', '-map', '0:a:0', '-t', '3', '-c', 'copy', '-f', 'framecrc', '-'];
  const reader = new Child(requireProgram('ffmpeg'), ['-v', 'error', '-nostdin', '-i', url, ...output]);
  onTestFinished(async () => void (await reader.kill()));
  const { code } = await reader.ended(WAIT.deadlineMs);
  if (code !== 0) throw new Error(`${url}: ${reader.stderr.slice(-1000)}`);
  const packets = (stream: number): number => reader.stdout.match(new RegExp(`^${stream},`, 'gm'))?.length ?? 0;
  return { video: packets(0), audio: packets(1) };
}

class CountingViewer extends SocketViewer {
  /** Packets by payload type. */
  readonly counts = new Map<number, number>();

  protected override onRtp(packet: Buffer): void {
    super.onRtp(packet);
    const type = packet.readUInt8(1) & 0x7f;
    this.counts.set(type, (this.counts.get(type) ?? 0) + 1);
  }
}

async function playedOverSocket(url: string): Promise<Heard> {
  const viewer = new CountingViewer();
  onTestFinished(() => viewer.close());
  await viewer.play(url);
  const heard = (): Heard => ({ video: viewer.counts.get(98) ?? 0, audio: viewer.counts.get(110) ?? 0 });
  await until(`${url}: video and audio`, () => Math.min(heard().video, heard().audio) >= ENOUGH, WAIT);
  return heard();
}

async function playedOverWhep(url: string): Promise<Heard> {
  const peer = new PeerConnection('player', { iceServers: [] });
  onTestFinished(() => peer.close());
  const [video, audio] = [new Video('0', 'RecvOnly'), new Audio('1', 'RecvOnly')];
  video.addH264Codec(96, 'profile-level-id=42e01f;packetization-mode=1;level-asymmetry-allowed=1');
  audio.addOpusCodec(111);
  const heard = { video: 0, audio: 0 };
  const tracks: PeerTrack[] = [peer.addTrack(video), peer.addTrack(audio)];
  tracks[0]?.onMessage(() => {
    heard.video += 1;
  });
  tracks[1]?.onMessage(() => {
    heard.audio += 1;
  });
  peer.setLocalDescription();
  await until('candidates', () => peer.gatheringState() === 'complete', WAIT);
  const response = await fetch(url, { method: 'POST', body: peer.localDescription()?.sdp ?? '' });
  const text = await response.text();
  if (response.status !== 201) throw new Error(`${url}: ${response.status} ${text}`);
  peer.setRemoteDescription(text, 'answer');
  await until(`${url}: video and audio`, () => Math.min(heard.video, heard.audio) >= ENOUGH, WAIT);
  // The tracks have no other user.
  for (const track of tracks) track.close();
  return heard;
}

/** Media that the page plays; each sample with audible audio counts as a packet. */
async function playedByPage(url: string): Promise<Heard> {
  const browser = await ConsoleBrowser.start();
  onTestFinished(() => browser.close());
  const { page } = await browser.open(url, { token: null });
  let heard: Heard = { video: 0, audio: 0 };
  const look = async (): Promise<boolean> => {
    const { frames, isLoud } = (await page.evaluate(LOOK)) as { readonly frames: number; readonly isLoud: boolean };
    heard = { video: frames, audio: heard.audio + (isLoud ? 1 : 0) };
    return Math.min(heard.video, heard.audio) >= ENOUGH;
  };
  await until(`${url}: video and audio`, look, WAIT);
  return heard;
}

async function play(url: string): Promise<Heard> {
  if (PAGE.test(url)) return await playedByPage(url);
  if (url.startsWith('ws')) return await playedOverSocket(url);
  return await (url.includes('direction=whep') ? playedOverWhep(url) : readByFfmpeg(url));
}

async function expectMedia(urls: readonly string[]): Promise<void> {
  const heard = await Promise.all(urls.map(async (url) => ({ url, ...(await play(url)) })));
  for (const { url, video, audio } of heard) {
    expect(video, url).toBeGreaterThanOrEqual(ENOUGH);
    expect(audio, url).toBeGreaterThanOrEqual(ENOUGH);
  }
}

function onOurPorts(url: string, { ports }: ShippedServer, host = '127.0.0.1'): string {
  return url
    .replace('APP/STREAM', 'app/live')
    .replace('HOST:3333', `${host}:${ports.WEBRTC_SIGNALLING}`)
    .replace('HOST:9998', `${host}:${ports.SRT_PUB}`);
}

async function publishTo({ ports }: ShippedServer, host = '127.0.0.1'): Promise<void> {
  const encoder = publish({ url: `rtmp://${host}:${ports.RTMP_PROV}/app/live`, width: 320, height: 180, videoKbps: 300 });
  onTestFinished(async () => void (await encoder.stop()));
  const playlist = `http://${host}:${ports.WEBRTC_SIGNALLING}/app/live/llhls.m3u8`;
  // A transcoder that is not ready after 5 s of media does not delay the stream; its audio joins later.
  const hasAudio = async (): Promise<boolean> => {
    const lists = codecsIn(await (await fetch(playlist)).text());
    return lists.length > 0 && lists.every((list) => list.length === 2);
  };
  await until('the stream with all its audio', hasAudio, WAIT);
}

/** Codecs of each rendition in a master playlist. */
function codecsIn(text: string): string[][] {
  return [...text.matchAll(/CODECS="([^"]*)"/g)].map(([, list = '']) => list.split(','));
}

test('every documented URL of the shipped configuration plays audio and video', { timeout: 180_000 }, async () => {
  const urls = documented();
  expect(urls.filter((url) => url.startsWith('srt:')).length).toBeGreaterThanOrEqual(2);
  expect(urls).toEqual(expect.arrayContaining(['ws://HOST:3333/APP/STREAM/master', 'http://HOST:3333/APP/STREAM/ts:playlist.m3u8']));
  const server = await startShippedServer();
  await publishTo(server);
  await expectMedia([...urls, ...MASTERS, WHEP_MASTER].map((url) => onOurPorts(url, server)));
});

test('an application created by name alone plays audio and video, with AAC over LL-HLS', { timeout: 90_000 }, async () => {
  const server = await startShippedServer();
  const api = new ApiClient(`http://127.0.0.1:${server.ports.API}`, server.token);
  const host = '127.0.0.2';
  expect((await api.call('POST', '/v1/vhosts', [{ name: 'made', host: { names: [host] } }])).status).toBe(200);
  expect((await api.call('POST', '/v1/vhosts/made/apps', [{ name: 'app', type: 'live' }])).status).toBe(200);
  await publishTo(server, host);
  const http = onOurPorts('http://HOST:3333/APP/STREAM', server, host);
  const text = await (await fetch(`${http}/llhls.m3u8`)).text();
  const codecs = codecsIn(text).map((list) => list.at(-1));
  expect(codecs).toEqual(['mp4a.40.2', 'opus']);
  await expectMedia([`${http}/llhls.m3u8`, http.replace('http', 'ws'), `${http}?direction=whep`]);
});
