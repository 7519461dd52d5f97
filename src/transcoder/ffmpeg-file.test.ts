/** Media files that a process reads: their packets, and the life of the process. */
import { execFileSync } from 'node:child_process';
import { closeSync, existsSync, openSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { RecordingLogger } from '../../test/fakes/recording-logger.ts';
import { TranscodeLab } from '../../test/fakes/transcode-run.ts';
import { until } from '../../test/harness/poll.ts';
import { EncodedFiles } from '../../test/support/encoded-files.ts';
import type { SourceTrack } from '../core/ingest.ts';
import { toSeconds } from '../media/timebase.ts';
import type { FfmpegFile, FfmpegFileEvent } from './ffmpeg-file.ts';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

const SECONDS = 3;
const RATE = 25;
const SOURCE = [
  ...['-f', 'lavfi', '-i', `testsrc2=size=160x90:rate=${RATE}`, '-f', 'lavfi', '-i', 'sine=sample_rate=44100'],
  ...['-t', `${SECONDS}`, '-threads', '1'],
];
const ONE_KEYFRAME_A_SECOND = ['-g', `${RATE}`];
const H264 = ['-c:v', 'libx264', '-preset', 'ultrafast', '-bf', '2', ...ONE_KEYFRAME_A_SECOND];
const VP9 = ['-c:v', 'libvpx-vp9', '-deadline', 'realtime', '-cpu-used', '8', ...ONE_KEYFRAME_A_SECOND];
/** Without a compiler there is no sandbox. */
const sandboxed = existsSync(new URL('../../native/build/millrace-sandbox', import.meta.url));
/** Patience with a machine that has other things to do. */
const PATIENT_MS = 30_000;

let encoded: EncodedFiles;
let folder: string;
beforeAll(() => {
  encoded = new EncodedFiles(SOURCE);
  folder = encoded.folder;
});
afterAll(() => encoded.close());

const labs: TranscodeLab[] = [];
const closings: (() => void)[] = [];
afterEach(async () => {
  for (const close of closings.splice(0)) close();
  for (const lab of labs.splice(0)) await lab.close();
});

function lab(options: ConstructorParameters<typeof TranscodeLab>[0] = {}): TranscodeLab {
  const made = new TranscodeLab({ fileHangMs: PATIENT_MS, ...options });
  labs.push(made);
  return made;
}

function encode(name: string, options: readonly string[]): string {
  return encoded.encode(name, options);
}

interface Opened {
  readonly file: FfmpegFile;
  readonly logger: RecordingLogger;
  readonly close: () => void;
}

async function open(path: string, from = lab()): Promise<Opened> {
  const closing = new AbortController();
  const descriptor = openSync(path, 'r');
  const close = (): void => closing.abort();
  closings.push(close);
  const logger = new RecordingLogger();
  try {
    return { file: await from.supervisor.openFile({ descriptor, closed: closing.signal }, logger), logger, close };
  } finally {
    closeSync(descriptor);
  }
}

type PacketEvent = Extract<FfmpegFileEvent, { type: 'packet' }>;
const at = ({ packet, timebase }: PacketEvent): number => toSeconds(packet.dts, timebase);

async function readAll(file: FfmpegFile): Promise<{ tracks: readonly SourceTrack[]; packets: PacketEvent[] }> {
  let tracks: readonly SourceTrack[] = [];
  const packets: PacketEvent[] = [];
  for (let event = await file.next(); event !== null; event = await file.next()) {
    if (event.type === 'tracks') tracks = event.tracks;
    else packets.push(event);
  }
  return { tracks, packets };
}

function alive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

describe('a file in a process', () => {
  it.each([
    ['Matroska', 'a.mkv', [...VP9, '-c:a', 'libvorbis'], ['VP9', 'AAC']],
    ['Matroska with frames out of order', 'b.mkv', [...H264, '-c:a', 'ac3'], ['H264', 'AAC']],
    ['WebM', 'a.webm', ['-c:v', 'libvpx', '-deadline', 'realtime', ...ONE_KEYFRAME_A_SECOND, '-c:a', 'libopus'], ['VP8', 'OPUS']],
    ['AVI', 'a.avi', ['-c:v', 'mpeg4', '-bf', '2', ...ONE_KEYFRAME_A_SECOND, '-c:a', 'libmp3lame'], ['H264', 'MP3']],
    ['AVI with frames out of order', 'b.avi', [...H264, '-c:a', 'aac'], ['H264', 'AAC']],
    ['FLV', 'a.flv', [...H264, '-c:a', 'aac'], ['H264', 'AAC']],
    ['QuickTime', 'a.mov', ['-c:v', 'prores', '-c:a', 'pcm_s16le'], ['H264', 'AAC']],
    ['a program stream', 'a.mpg', ['-c:v', 'mpeg2video', '-c:a', 'mp2'], ['H264', 'AAC']],
    ['MXF', 'a.mxf', ['-c:v', 'mpeg2video', '-c:a', 'pcm_s16le', '-ar', '48000'], ['H264', 'AAC']],
    ['WAV', 'a.wav', ['-vn', '-c:a', 'pcm_s16le'], ['AAC']],
    ['MP3', 'a.mp3', ['-vn', '-c:a', 'libmp3lame'], ['MP3']],
    ['Ogg', 'a.ogg', ['-vn', '-c:a', 'libvorbis'], ['AAC']],
    ['ADTS', 'a.aac', ['-vn', '-c:a', 'aac'], ['AAC']],
  ])('%s is read completely, in decoding order, with audio and video aligned, and again', async (_what, name, options, codecs) => {
    const { file } = await open(encode(name, options));
    const { tracks, packets } = await readAll(file);
    expect(tracks.map((track) => (track.type === 'data' ? '' : track.codec))).toEqual(codecs);
    const times = packets.map(at);
    expect(times.filter((time, index) => time < (times[index - 1] ?? time))).toEqual([]);
    for (const { id, type } of tracks) {
      const own = packets.filter(({ packet }) => packet.trackId === id);
      const shown = own.map(({ packet, timebase }) => toSeconds(packet.pts, timebase));
      expect(Math.abs(Math.min(...shown))).toBeLessThan(0.05);
      expect(Math.abs(Math.max(...shown) - SECONDS)).toBeLessThan(0.1);
      if (type !== 'video') continue;
      expect(own.length).toBe(SECONDS * RATE);
      expect(new Set(shown).size).toBe(own.length);
      expect(own[0]?.packet.keyframe).toBe(true);
    }
    expect(await file.length()).toBeCloseTo(SECONDS, 0);
    file.rewind();
    const again = await readAll(file);
    expect(again.tracks).toEqual(tracks);
    // Vorbis begins a block later when it is not at the very beginning.
    expect(Math.abs(again.packets.length - packets.length)).toBeLessThan(2);
  });

  it('seeks to the last keyframe at or before a position', async () => {
    const { file } = await open(encode('seek.mkv', [...VP9, '-c:a', 'libopus']));
    await file.seek(1.7);
    expect((await file.next())?.type).toBe('tracks');
    const { packets } = await readAll(file);
    const video = packets.filter(({ packet }) => packet.trackId === 0);
    expect(video[0]?.packet.keyframe).toBe(true);
    expect(at(video[0]!)).toBeCloseTo(1, 1);
    expect(video.length).toBe((SECONDS - 1) * RATE);
  });

  it('is read at most a few seconds ahead', async () => {
    const path = join(folder, 'long.wav');
    execFileSync('ffmpeg', ['-v', 'error', '-f', 'lavfi', '-i', 'sine=sample_rate=48000', '-t', '600', path]);
    const descriptor = openSync(path, 'r');
    const closing = new AbortController();
    closings.push(() => closing.abort());
    const file = await lab().supervisor.openFile({ descriptor, closed: closing.signal }, new RecordingLogger());
    expect((await file.next())?.type).toBe('tracks');
    const place = (): number => Number(/^pos:\s*(\d+)/.exec(readFileSync(`/proc/self/fdinfo/${descriptor}`, 'utf8'))?.[1]);
    // The reading position is the process's, too. It rests when it has read its allowance.
    let last = -1;
    await until(
      'the process to stop reading',
      () => {
        const rests = place() === last && last > 0;
        last = place();
        return rests;
      },
      { everyMs: 500 },
    );
    const bytesPerSecond = 48_000 * 2;
    expect(last / bytesPerSecond).toBeLessThan(10);
    // Taken packets are released, though other packets wait all the time.
    const first = new WeakRef((await file.next())!);
    for (let count = 0; count < 40; count += 1) await file.next();
    await until('the first packet to be forgotten', () => {
      collectGarbage();
      return first.deref() === undefined;
    });
    for (let count = 0; count < 500; count += 1) await file.next();
    await until('the process to read on', () => place() > last);
    closeSync(descriptor);
  });

  it('logs the tracks that it converts and those that it leaves out', async () => {
    const subtitles = join(folder, 'words.srt');
    writeFileSync(subtitles, '1\n00:00:00,000 --> 00:00:01,000\nhello\n');
    const path = join(folder, 'words.mkv');
    execFileSync('ffmpeg', ['-v', 'error', ...SOURCE.slice(0, 8), '-i', subtitles, '-t', '1', ...VP9, '-c:a', 'ac3', '-c:s', 'srt', path]);
    const { file, logger } = await open(path);
    expect((await readAll(file)).tracks.length).toBe(2);
    expect(logger.lines).toMatchObject([
      { level: 'info', message: expect.stringContaining('encoded anew: audio ac3 to AAC') },
      { level: 'warn', message: expect.stringContaining('stream 2 is neither video nor audio') },
    ]);
  });
});

describe('a process that reads a file', () => {
  it('ends with its file', async () => {
    const { file, close } = await open(encode('end.mkv', [...VP9, '-an']));
    expect(alive(file.pid)).toBe(true);
    close();
    await expect(file.next()).rejects.toThrow('its file is closed');
    await until('the process is gone', () => !alive(file.pid));
  });

  it('that is killed fails the reader at once', async () => {
    const from = lab();
    const { file, logger } = await open(encode('killed.mkv', [...VP9, '-an']), from);
    process.kill(file.pid, 'SIGKILL');
    await expect(readUntilFault(file)).rejects.toThrow('the process that reads the file died: SIGKILL');
    expect(logger.lines.at(-1)).toMatchObject({ level: 'warn', message: expect.stringContaining('died while it read a file') });
    expect(from.supervisor.pids).toEqual([]);
  });

  it('that hangs is killed', async () => {
    const { file } = await open(encode('hangs.mkv', [...VP9, '-an']), lab({ fileHangMs: 1000 }));
    await file.next();
    await file.next();
    process.kill(file.pid, 'SIGSTOP');
    await expect(readUntilFault(file)).rejects.toThrow('the process that reads the file hangs');
    await until('the process is gone', () => !alive(file.pid));
  });

  it('counts towards MaxProcesses', async () => {
    const from = lab({ maxProcesses: 1 });
    const path = encode('room.mkv', [...VP9, '-an']);
    const { file, close } = await open(path, from);
    await expect(open(path, from)).rejects.toThrow('all 1 transcoder processes are taken (Modules/Transcoder/MaxProcesses)');
    close();
    await until('the process is gone', () => !alive(file.pid) && from.supervisor.pids.length === 0);
    await expect(open(path, from)).resolves.toBeDefined();
  });

  it.skipIf(!sandboxed)('has a memory limit, and sees no file but its own', async () => {
    const { file } = await open(encode('bounded.mkv', [...VP9, '-an']));
    const proc = `/proc/${file.pid}`;
    expect(readFileSync(`${proc}/limits`, 'utf8')).toMatch(/^Max data size +3221225472 +3221225472/m);
    expect(readFileSync(`${proc}/status`, 'utf8')).toMatch(/^NoNewPrivs:\s+1$/m);
    const names = readdirSync(`${proc}/fd`).map((number) => readlinkSync(`${proc}/fd/${number}`));
    const files = names.filter((name) => /^\/(?!dev\/|proc\/|usr\/|sys\/)/.test(name) && !name.includes('/node_modules/'));
    // The library has a second handle on it.
    expect(new Set(files)).toEqual(new Set([join(folder, 'bounded.mkv')]));
  });

  it('is killed when it sends too many packets, as a compromised process might', async () => {
    const from = lab({ fileEntry: new URL('../../test/fakes/flooding-file-child.ts', import.meta.url) });
    const { file } = await open(encode('flood.mkv', [...VP9, '-an']), from);
    expect((await file.next())?.type).toBe('tracks');
    await until('the process is gone', () => !alive(file.pid));
    await expect(file.next()).rejects.toThrow('it sent what cannot be read: more packets than may wait');
  });

  it.skipIf(!sandboxed)('has memory enough for 4K on a machine with many cores', async () => {
    const path = join(folder, 'large.mov');
    const source = ['-f', 'lavfi', '-i', 'testsrc2=size=3840x2160:rate=25', '-frames:v', '2'];
    execFileSync('ffmpeg', ['-v', 'error', '-y', ...source, '-c:v', 'prores', path]);
    const { file } = await open(path, lab({ fileEntry: new URL('../../test/fakes/many-cores-file-child.ts', import.meta.url) }));
    expect((await readAll(file)).packets).toHaveLength(2);
  });

  it('is not started for a closed file', async () => {
    const from = lab();
    const closed = AbortSignal.abort(new Error('too late'));
    await expect(from.supervisor.openFile({ descriptor: 0, closed }, new RecordingLogger())).rejects.toThrow('too late');
    expect(from.supervisor.pids).toEqual([]);
  });
});

describe('a file that means harm', () => {
  it.each([
    ['garbage', () => Buffer.alloc(100_000, 'garbage')],
    ['nothing', () => Buffer.alloc(0)],
    ['an HLS playlist', () => '#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:9,\nfile:///etc/passwd\n#EXT-X-ENDLIST\n'],
    ['a DASH manifest', () => '<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static"></MPD>'],
    ['a list for concat', () => `ffconcat version 1.0\nfile ${join(folder, 'a.mkv')}\n`],
    ['a session description', () => 'v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\nm=video 5000 RTP/AVP 96\n'],
    ['a picture', () => readFileSync(encode('picture.png', ['-frames:v', '1']))],
    ['only the beginning of a file', () => readFileSync(encode('whole.mkv', VP9)).subarray(0, 200)],
  ])('and is %s is refused', async (_what, contents) => {
    const path = join(folder, 'harm.mkv');
    writeFileSync(path, contents());
    await expect(open(path)).rejects.toThrow(/no container of video or audio|cannot be understood|nothing|no video or audio/);
  });

  it('with oversized frames is refused', async () => {
    const path = join(folder, 'bomb.mkv');
    const red = ['-f', 'lavfi', '-i', 'color=red:size=15000x15000:rate=25', '-frames:v', '1', '-c:v', 'mjpeg'];
    execFileSync('ffmpeg', ['-v', 'error', '-y', ...red, path]);
    await expect(open(path)).rejects.toThrow(/mjpeg|died|read/);
  });

  it('with days between its frames is played normally', async () => {
    const path = join(folder, 'slow.avi');
    execFileSync('ffmpeg', [
      ...['-v', 'error', '-y', '-f', 'lavfi', '-i', 'testsrc=size=160x90:rate=1/1000000', '-frames:v', '3', '-c:v', 'ffv1', path],
    ]);
    const { file } = await open(path);
    const { packets } = await readAll(file);
    expect(packets.map((packet) => Math.round(at(packet)))).toEqual([0, 1_000_000, 2_000_000]);
  });

  it.each([
    ['Matroska', 'cut.mkv', [...VP9, '-c:a', 'libvorbis']],
    ['AVI', 'cut.avi', ['-c:v', 'mpeg4', '-c:a', 'libmp3lame']],
    ['a program stream', 'cut.mpg', ['-c:v', 'mpeg2video', '-c:a', 'mp2']],
  ])('a truncated %s, and one with wrong bytes, ends or is refused', async (_what, name, options) => {
    const whole = readFileSync(encode(name, options));
    const from = lab();
    for (let round = 0; round < 6; round += 1) {
      const bytes = Buffer.from(whole.subarray(0, Math.floor((whole.length * (round + 1)) / 6)));
      for (let place = 50 + round; place < bytes.length; place += 997) bytes[place] = (bytes[place]! + 13 * round) & 0xff;
      const path = join(folder, `piece-${name}`);
      writeFileSync(path, bytes);
      try {
        const { file, close } = await open(path, from);
        await readAll(file);
        close();
      } catch (error) {
        expect(error).toBeInstanceOf(Error);
        expect((error as Error).message).not.toMatch(/hangs|in time/);
      }
    }
  });
});

async function readUntilFault(file: FfmpegFile): Promise<void> {
  for (;;) {
    if ((await file.next()) === null) file.rewind();
  }
}
