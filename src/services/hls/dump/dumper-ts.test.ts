import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { FakeDelivery } from '../../../../test/fakes/fake-delivery.ts';
import { FakeStream } from '../../../../test/fakes/fake-stream.ts';
import { ManualClock } from '../../../../test/fakes/manual-clock.ts';
import { RecordingLogger } from '../../../../test/fakes/recording-logger.ts';
import { encodeMedia } from '../../../../test/support/encoded-media.ts';
import { Urgency } from '../../../core/urgency.ts';
import { AllowedFolders } from '../../../util/allowed-folders.ts';
import { Conditions } from '../../../util/conditions.ts';
import { HlsPublisher } from '../packager/ts/hls-publisher.ts';
import type { HlsStream } from '../packager/ts/hls-stream.ts';
import { HlsView } from '../view/ts/hls-view.ts';
import type { DumpSettings, HlsSettings } from '../wire/settings.ts';
import type { HlsViewSettings } from '../wire/view-settings.ts';
import { DumpFolder } from './dump-folder.ts';
import { Dumper } from './dumper.ts';
import { FolderClaims } from './folder-claims.ts';

// The free space on the disk must not matter to the tests.
vi.mock('../../../util/disk-space.ts', () => ({ hasRoom: async () => true }));

const SECONDS = 9;
const SAMPLE = encodeMedia({ seconds: SECONDS, video: 'libx264', audio: 'aac', rate: 25, gop: 25, extra: ['-bf', '2'] });
const WANTED: DumpSettings = {
  enable: true,
  targetStreamName: 'str*',
  outputPath: '${StreamName}/${AppName}',
  playlists: { playlist: ['playlist'] },
};

let folder: string;
let logger: RecordingLogger;
let dumper: Dumper;
let clock: ManualClock;
let conditions: Conditions;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'millrace-ts-dump-'));
  logger = new RecordingLogger();
  clock = new ManualClock();
  conditions = new Conditions();
  dumper = new Dumper({ clock, conditions, logger, stateFolder: folder, allowed: new AllowedFolders([folder], 'the setting') });
});
afterEach(async () => {
  await dumper.close();
  rmSync(folder, { recursive: true, force: true });
});

let source: FakeStream;

function open(dump: readonly DumpSettings[]): HlsStream {
  const delivery = new FakeDelivery((given, context) => new HlsView(given as HlsViewSettings, context));
  const settings: HlsSettings = { segmentDuration: 2, segmentCount: 3, createDefaultPlaylist: true, dumps: { dump } };
  const publisher = new HlsPublisher(delivery, dumper);
  source = new FakeStream();
  source.tracks = SAMPLE.tracks;
  const playlist = publisher.defaultPlaylist(SAMPLE.tracks, settings);
  if (playlist === null) throw new Error('no playlist');
  source.playlists = [playlist, { ...playlist, fileName: 'other' }];
  const stream = publisher.attach(source, settings);
  stream.onTracks(SAMPLE.tracks);
  return stream;
}

function send(stream: HlsStream, from: number, to: number): void {
  for (const packet of SAMPLE.packets) {
    const at = packet.dts / packet.track.timebase.den;
    if (at >= from && at < to) stream.onPacket(packet);
  }
}

const end = (stream: HlsStream): void => stream.close({ code: 'peer-left', detail: 'gone' });
const files = (path: string): string[] => readdirSync(join(folder, path)).sort();

/** Numbers of video and audio packets that ffprobe finds. */
function packets(path: string): { video: number; audio: number } {
  const args = ['-v', 'error', '-of', 'csv=p=0', '-show_entries', 'packet=codec_type', path];
  const lines = execFileSync('ffprobe', args, { encoding: 'utf8' }).split('\n');
  const count = (type: string): number => lines.filter((line) => line.startsWith(type)).length;
  return { video: count('video'), audio: count('audio') };
}

test('a dump of the configuration holds the whole stream, to the frame, and only the playlists it names', async () => {
  expect(open([]).urgency).toBe(Urgency.NONE);
  const stream = open([WANTED]);
  expect([stream.urgency, source.comings]).toEqual([Urgency.LOW_LATENCY, 1]);
  send(stream, 0, SECONDS + 1);
  end(stream);
  await dumper.close();
  const names = files('stream/app');
  expect(names.filter((name) => name.endsWith('.ts'))).toHaveLength(5);
  expect(names.filter((name) => name.endsWith('.m3u8')).map((name) => name.replace(/_\d+_/, '_N_'))).toEqual([
    'medialist_N_hls.m3u8',
    'playlist.m3u8',
  ]);
  const sent = (type: string): number => SAMPLE.packets.filter(({ track }) => track.type === type).length;
  const found = packets(join(folder, 'stream/app/playlist.m3u8'));
  expect(found.video).toBe(sent('video'));
  // Audio before the first frame belongs to no segment.
  expect(found.audio).toBeGreaterThan(sent('audio') - 8);
});

test('a dump can be played while it runs', async () => {
  const stream = open([{ ...WANTED, playlists: undefined }]);
  send(stream, 0, 5);
  await expect.poll(() => files('stream/app').filter((name) => name.endsWith('.m3u8')).length).toBe(3);
  await expect.poll(() => packets(join(folder, 'stream/app/other.m3u8')).video).toBe(100);
  const media = files('stream/app').find((name) => name.startsWith('medialist')) ?? '';
  const text = readFileSync(join(folder, 'stream/app', media), 'utf8');
  expect(text).toMatch(/#EXT-X-VERSION:3\n[\s\S]*#EXT-X-MEDIA-SEQUENCE:0\n[\s\S]*#EXT-X-ENDLIST\n$/);
  end(stream);
});

test('a dump resumes when a full disk has room again, and lists the segments it missed as gaps', async () => {
  const stream = open([WANTED]);
  send(stream, 0, 3);
  await expect.poll(() => files('stream/app')).toHaveLength(3);
  const full = Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC', errno: -28 });
  const { write } = DumpFolder.prototype;
  const disk = vi.spyOn(DumpFolder.prototype, 'write').mockRejectedValue(full);
  onTestFinished(() => disk.mockRestore());
  send(stream, 3, 5);
  await expect.poll(() => conditions.reasons).toEqual(['a dump misses segments: no space is left on the disk']);
  disk.mockImplementation(write);
  clock.advance(2000);
  // The first segment makes it look, the second finds that there is room.
  send(stream, 5, 7);
  for (let turn = 0; turn < 10; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  send(stream, 7, SECONDS + 1);
  end(stream);
  await dumper.close();
  expect(conditions.reasons).toEqual([]);
  const media = files('stream/app').find((name) => name.startsWith('medialist')) ?? '';
  const text = readFileSync(join(folder, 'stream/app', media), 'utf8');
  expect(text).toMatch(/^#EXTM3U\n#EXT-X-VERSION:8\n/);
  const listed = [...text.matchAll(/^(#EXT-X-GAP\n)?#EXTINF:.*\n(.*)$/gm)].map(([, gap, uri = '']) => ({ gap: gap !== undefined, uri }));
  expect([listed[0]?.gap, listed.some(({ gap }) => gap), listed.at(-1)?.gap]).toEqual([false, true, false]);
  for (const { gap, uri } of listed) expect(files('stream/app').includes(uri), uri).toBe(!gap);
});

test('a folder in use by another dump is refused, until that dump ends', async () => {
  const claims = new FolderClaims();
  const writer = { enabled: true, over: Promise.withResolvers<void>() };
  // The link is another name of the folder.
  symlinkSync(folder, `${folder}-link`);
  onTestFinished(() => rmSync(`${folder}-link`));
  const claim = await claims.claim(join(`${folder}-link`, 'stream/app'));
  claim.keep({
    get enabled() {
      return writer.enabled;
    },
    over: writer.over.promise,
  });
  dumper = new Dumper({ clock: new ManualClock(), logger, stateFolder: folder, allowed: new AllowedFolders(null, ''), claims });
  const refused = open([WANTED]);
  const reason = 'dump failed: Another dump writes to this folder';
  await expect.poll(() => logger.lines.map(({ message }) => message)).toContain(reason);
  send(refused, 0, SECONDS + 1);
  end(refused);
  writer.enabled = false;
  // The dump waits for the end of the other writer; then both entries want the folder.
  const stream = open([WANTED, WANTED]);
  send(stream, 0, 5);
  expect(readdirSync(folder)).toEqual([]);
  writer.over.resolve();
  await expect.poll(() => logger.lines.filter(({ message }) => message === reason)).toHaveLength(2);
  send(stream, 5, SECONDS + 1);
  end(stream);
  await dumper.close();
  expect(packets(join(folder, 'stream/app/playlist.m3u8')).video).toBe(SAMPLE.packets.filter(({ track }) => track.type === 'video').length);
});

test('a dump that cannot be written logs the reason, and the stream continues', async () => {
  writeFileSync(join(folder, 'file'), '');
  const stream = open([
    { ...WANTED, outputPath: '/etc/refused' },
    { ...WANTED, outputPath: '../up' },
    { ...WANTED, outputPath: 'none', playlists: { playlist: ['nope'] } },
    { ...WANTED, outputPath: 'file' },
    { ...WANTED, enable: false, outputPath: 'disabled' },
    { ...WANTED, targetStreamName: 'x*', outputPath: 'others' },
    WANTED,
  ]);
  send(stream, 0, SECONDS + 1);
  end(stream);
  await dumper.close();
  const errors = logger.lines.filter(({ level }) => level === 'error').map(({ message }) => message);
  expect(errors).toEqual([
    expect.stringContaining('"/etc/refused" is outside of the folders that the setting allows'),
    expect.stringContaining('contains ".."'),
    expect.stringContaining('the stream has no playlist nope.m3u8'),
    expect.stringMatching(/^dump failed: .*EEXIST/),
  ]);
  expect(readdirSync(folder).sort()).toEqual(['file', 'stream']);
  // A failed dump has released its id.
  expect(dumper.list(stream).map(({ enabled }) => enabled)).toEqual([false]);
});

test('an id belongs to one dump of a stream', async () => {
  const stream = open([
    { ...WANTED, id: 'a' },
    { ...WANTED, id: 'a', outputPath: 'second' },
  ]);
  expect(dumper.list(stream).map(({ request }) => request.outputPath)).toEqual(['stream/app']);
  expect(logger.lines.map(({ message }) => message)).toContain('dump of the configuration cannot be started: Duplicate ID');
  end(stream);
});

test('an ended stream notifies an observer that subscribes late', () => {
  const stream = open([]);
  end(stream);
  const streamEnded = vi.fn();
  stream.observe({ segmentFinished: () => undefined, streamEnded });
  expect(streamEnded).toHaveBeenCalledOnce();
});
