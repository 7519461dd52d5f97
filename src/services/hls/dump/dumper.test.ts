import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { XMLParser } from 'fast-xml-parser';
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { FakeDelivery } from '../../../../test/fakes/fake-delivery.ts';
import { FakeStream } from '../../../../test/fakes/fake-stream.ts';
import { ManualClock } from '../../../../test/fakes/manual-clock.ts';
import { RecordingLogger } from '../../../../test/fakes/recording-logger.ts';
import { type EncodedMedia, encodeMedia } from '../../../../test/support/encoded-media.ts';
import { parseMediaPlaylist } from '../../../../test/support/playlist/media-playlist.ts';
import { DEFAULT_SETTINGS } from '../../../../test/validator/llhls-simulation.ts';
import { Urgency } from '../../../core/urgency.ts';
import type { Packet } from '../../../media/packet.ts';
import { AllowedFolders } from '../../../util/allowed-folders.ts';
import { Conditions } from '../../../util/conditions.ts';
import { LlhlsPublisher } from '../packager/fmp4/llhls-publisher.ts';
import type { LlhlsStream } from '../packager/fmp4/llhls-stream.ts';
import { LlhlsView } from '../view/fmp4/llhls-view.ts';
import { TAIL_MARK } from '../wire/fmp4/update.ts';
import type { LlhlsViewSettings } from '../wire/view-settings.ts';
import type { DumpRequest } from './dump.ts';
import { DumpFolder } from './dump-folder.ts';
import { DumpInfo } from './dump-info.ts';
import { Dumper, MAX_DUMPS } from './dumper.ts';

// The free space on the disk must not matter to the tests.
vi.mock('../../../util/disk-space.ts', () => ({ hasRoom: async () => true }));

const SECONDS = 10;
let sample: EncodedMedia;
let folder: string;
let dumper: Dumper;
let stream: LlhlsStream;
let source: FakeStream;
let logger: RecordingLogger;
let delivery: FakeDelivery;
let clock: ManualClock;
let conditions: Conditions;

beforeAll(() => {
  const extra = ['-x264-params', 'scenecut=0:bframes=2:b-adapt=0'];
  sample = encodeMedia({ seconds: SECONDS, video: 'libx264', audio: 'aac', rate: 25, gop: 25, extra });
});

function open(withDumps = false): void {
  folder = mkdtempSync(join(tmpdir(), 'millrace-dump-'));
  logger = new RecordingLogger();
  delivery = new FakeDelivery((settings, context) => new LlhlsView(settings as LlhlsViewSettings, context));
  const allowed = new AllowedFolders([folder], 'the setting');
  clock = new ManualClock();
  conditions = new Conditions();
  dumper = new Dumper({ clock, conditions, logger, stateFolder: folder, allowed });
  const publisher = new LlhlsPublisher(delivery, dumper);
  source = new FakeStream();
  const configured = [
    { enable: true, targetStreamName: 'st*', outputPath: '${StreamName}_${YYYY}', id: 'conf', playlists: { playlist: ['llhls'] } },
    { enable: false, targetStreamName: '*', outputPath: 'disabled' },
    { enable: true, targetStreamName: 'other', outputPath: 'other' },
    { enable: true, targetStreamName: '*', outputPath: '/etc/refused' },
  ];
  const settings = { ...DEFAULT_SETTINGS, segmentDuration: 2, segmentCount: 3, ...(withDumps && { dumps: { dump: configured } }) };
  stream = publisher.attach(source, settings);
  source.tracks = sample.tracks;
  const playlist = publisher.defaultPlaylist(sample.tracks, settings);
  source.playlists = playlist === null ? [] : [playlist, { ...playlist, fileName: 'master' }];
  stream.onTracks(sample.tracks);
}

beforeEach(() => open());
afterEach(async () => {
  vi.restoreAllMocks();
  stream.close({ code: 'peer-left', detail: 'gone' });
  await dumper.close();
  rmSync(folder, { recursive: true, force: true });
});

function wish(id: string, more: Partial<DumpRequest> = {}): DumpRequest {
  return { id, outputPath: join(folder, id), playlists: [], infoFile: join(folder, `${id}.info`), userData: '', ...more };
}

/** Packets from one second to another. */
function send(from: number, to: number): void {
  for (const packet of sample.packets) {
    const at = packet.dts / packet.track.timebase.den;
    if (at >= from && at < to) stream.onPacket(packet);
  }
}

const end = () => stream.close({ code: 'peer-left', detail: 'gone' });

/** Numbers of video and audio frames that ffprobe finds; fails on any complaint. */
function frames(path: string): { video: number; audio: number } {
  const args = ['-v', 'error', '-of', 'json', '-show_packets', '-show_entries', 'packet=codec_type,dts_time', path];
  const { packets } = JSON.parse(execFileSync('ffprobe', args, { encoding: 'utf8' })) as { packets: { codec_type: string }[] };
  const count = (type: string): number => packets.filter(({ codec_type }) => codec_type === type).length;
  return { video: count('video'), audio: count('audio') };
}

interface Info {
  readonly UserData: string;
  readonly Stream: string;
  readonly Status: string;
  readonly Items: '' | { readonly Item: { readonly Seq: string; readonly Time: string; readonly File: string }[] };
}

function info(id: string): Info {
  const parser = new XMLParser({ isArray: (name) => name === 'Item', parseTagValue: false });
  return (parser.parse(readFileSync(join(folder, `${id}.info`), 'utf8')) as { HLSDumpInfo: Info }).HLSDumpInfo;
}

const files = (id: string): string[] => readdirSync(join(folder, id)).sort();
const isVideo = ({ track }: Packet): boolean => track.type === 'video';

describe('a dump', () => {
  it('that was started before the stream contains all of it, to the frame', async () => {
    await dumper.start(stream, wish('all', { userData: '<a & b>' }));
    expect(info('all')).toEqual({ UserData: '<a & b>', Stream: '#default#app/stream', Status: 'Running', Items: '' });
    send(0, SECONDS);
    expect(dumper.list(stream)[0]?.enabled).toBe(true);
    end();
    await dumper.close();
    for (const name of ['llhls.m3u8', 'master.m3u8']) {
      expect(frames(join(folder, 'all', name)).video, name).toBe(sample.packets.filter(isVideo).length);
      expect(frames(join(folder, 'all', name)).audio, name).toBeGreaterThan(sample.packets.filter((packet) => !isVideo(packet)).length - 6);
      const text = readFileSync(join(folder, 'all', name), 'utf8');
      expect(['/', '?', TAIL_MARK].filter((mark) => text.includes(mark))).toEqual([]);
    }
    const { Status, Items } = info('all');
    expect(Status).toBe('Completed');
    const items = Items === '' ? [] : Items.Item;
    expect(items.map(({ Seq }) => Number(Seq))).toEqual(items.map((_, index) => index));
    expect(items.map(({ File }) => File).sort()).toEqual(files('all').map((name) => join(folder, 'all', name)));
    for (const name of files('all').filter((file) => file.startsWith('chunklist'))) {
      const text = readFileSync(join(folder, 'all', name), 'utf8');
      const playlist = parseMediaPlaylist(text);
      expect(playlist).toMatchObject({ mediaSequence: 0, ended: true, version: 6 });
      expect(text).toContain('#EXT-X-PLAYLIST-TYPE:VOD');
      for (const { duration, uri, map } of playlist.segments) {
        expect(Math.round(duration ?? 99)).toBeLessThanOrEqual(playlist.targetDuration ?? 0);
        expect(existsSync(join(folder, 'all', uri ?? ''))).toBe(true);
        expect(existsSync(join(folder, 'all', map ?? ''))).toBe(true);
      }
    }
  });

  it('that starts in mid-stream has aligned tracks from the newest segment on, and is playable while it runs', async () => {
    send(0, 6.5);
    await dumper.start(stream, wish('late', { playlists: ['llhls.m3u8'] }));
    await dumper.start(stream, wish('other', { infoFile: '' }));
    expect(frames(join(folder, 'late/llhls.m3u8')).video).toBeGreaterThan(20);
    const firsts = files('late')
      .filter((file) => file.startsWith('chunklist'))
      .map((file) => parseMediaPlaylist(readFileSync(join(folder, 'late', file), 'utf8')).segments[0]?.uri?.split('_')[2]);
    expect(new Set(firsts).size).toBe(1);
    expect(files('late')).not.toContain('master.m3u8');
    dumper.stop(stream, 'late');
    await dumper.list(stream)[0]?.settled;
    const before = files('late');
    send(6.5, SECONDS);
    end();
    await dumper.close();
    expect(files('late')).toEqual(before);
    expect(frames(join(folder, 'other/master.m3u8')).video).toBeGreaterThan(frames(join(folder, 'late/llhls.m3u8')).video);
    expect(info('late').Status).toBe('Completed');
    expect(existsSync(join(folder, 'other.info'))).toBe(false);
  });

  it('keeps its id after its end; a second stop is accepted, an unknown id is refused', async () => {
    delivery.feed.watched = false;
    expect(stream.urgency).toBe(Urgency.NONE);
    await dumper.start(stream, wish('a'));
    await dumper.start(stream, wish('b'));
    expect([stream.urgency, source.comings]).toEqual([Urgency.LOW_LATENCY, 2]);
    dumper.stop(stream, null);
    await expect.poll(() => stream.urgency).toBe(Urgency.NONE);
    dumper.stop(stream, 'a');
    expect(dumper.list(stream).map(({ request, enabled }) => [request.id, enabled])).toEqual([
      ['a', false],
      ['b', false],
    ]);
    await expect(dumper.start(stream, wish('a'))).rejects.toThrow('Duplicate ID');
    expect(() => dumper.stop(stream, 'zzz')).toThrow('Could not find dump info');
  });

  it('frees the text of its info file after its end', async () => {
    const cleared = vi.spyOn(DumpInfo.prototype, 'clear');
    await dumper.start(stream, wish('done'));
    await dumper.start(stream, wish('bad'));
    rmSync(join(folder, 'bad'), { recursive: true });
    send(0, 5);
    for (const dump of dumper.list(stream)) await dump.stop();
    await Promise.all(dumper.list(stream).map(({ over }) => over));
    expect(info('done').Items).not.toBe('');
    const kept = new Set(cleared.mock.contexts.map((about) => (about as DumpInfo).text('Completed')));
    expect([...kept].map((text) => text.includes('<Item>'))).toEqual([false]);
    cleared.mockRestore();
  });

  it('that has ended is removed when the list is full, the oldest first', async () => {
    for (const id of ['done', 'runs', 'over']) await dumper.start(stream, wish(id, { infoFile: '' }));
    for (const id of ['done', 'over']) dumper.stop(stream, id);
    const more = Array.from({ length: MAX_DUMPS - 2 }, (_, index) => dumper.start(stream, wish(`m${index}`, { infoFile: '' })));
    await Promise.all(more);
    const ids = () => dumper.list(stream).map(({ request }) => request.id);
    expect([ids().length, ...ids().slice(0, 3)]).toEqual([MAX_DUMPS, 'runs', 'over', 'm0']);
    await dumper.start(stream, wish('done', { infoFile: '' }));
    await expect(dumper.start(stream, wish('much', { infoFile: '' }))).rejects.toThrow(`The stream has ${MAX_DUMPS} dumps`);
    expect([ids().length, ...ids().slice(0, 2), ids().at(-1)]).toEqual([MAX_DUMPS, 'runs', 'm0', 'done']);
  });

  it('is refused before anything is made', async () => {
    writeFileSync(join(folder, 'taken.info'), 'x');
    await expect(dumper.start(stream, wish('x', { infoFile: join(folder, 'taken.info') }))).rejects.toThrow('Duplicate info file');
    await expect(dumper.start(stream, wish('y', { playlists: ['nope.m3u8'] }))).rejects.toThrow('Could not dump master playlist');
    expect(existsSync(join(folder, 'y'))).toBe(false);
    for (const outputPath of ['/etc/x', join(folder, '../x'), `${folder}/a/../../x`, '../x']) {
      await expect(dumper.start(stream, wish('z', { outputPath })), outputPath).rejects.toMatchObject({ name: 'PathRefused' });
    }
    await expect(dumper.start(stream, wish('z', { infoFile: '../../x' }))).rejects.toMatchObject({ name: 'PathRefused' });
    writeFileSync(join(folder, 'file'), '');
    await expect(dumper.start(stream, wish('z', { outputPath: join(folder, 'file/x') }))).rejects.toThrow(
      /^Could not dump init segment: (ENOTDIR|EEXIST): /,
    );
    expect(dumper.list(stream)).toEqual([]);
    await dumper.start(stream, wish('z'));
  });

  it('has its folder for itself, until it has ended', async () => {
    const shared = { outputPath: join(folder, 'shared') };
    const [first, second] = await Promise.allSettled([
      dumper.start(stream, wish('a', shared)),
      dumper.start(stream, wish('b', { outputPath: `${shared.outputPath}/` })),
    ]);
    expect([first.status, second.status]).toEqual(['fulfilled', 'rejected']);
    await expect(dumper.start(stream, wish('b', shared))).rejects.toThrow('Another dump writes to this folder');
    expect(existsSync(join(folder, 'b.info'))).toBe(false);
    dumper.stop(stream, 'a');
    await dumper.start(stream, wish('b', shared));
  });

  it('can be started again after a failed start', async () => {
    mkdirSync(join(folder, 'again/llhls.m3u8'), { recursive: true });
    send(0, 5);
    await expect(dumper.start(stream, wish('again'))).rejects.toThrow(/^Could not dump segment: (EISDIR|ENOTEMPTY|EEXIST)/);
    expect(existsSync(join(folder, 'again.info'))).toBe(false);
    rmSync(join(folder, 'again'), { recursive: true });
    await dumper.start(stream, wish('again'));
  });

  it('that cannot be written ends with Error, while other dumps continue', async () => {
    await dumper.start(stream, wish('bad'));
    await dumper.start(stream, wish('good'));
    rmSync(join(folder, 'bad'), { recursive: true });
    send(0, SECONDS);
    await expect.poll(() => dumper.list(stream)[0]?.enabled).toBe(false);
    await dumper.list(stream)[0]?.over;
    expect(info('bad').Status).toBe('Error');
    expect(logger.lines.some(({ level, message }) => level === 'error' && message.startsWith('dump failed: ENOENT'))).toBe(true);
    end();
    await dumper.close();
    expect(info('good').Status).toBe('Completed');
    expect(frames(join(folder, 'good/llhls.m3u8')).video).toBe(sample.packets.filter(isVideo).length);
  });

  it('resumes when a full disk has room again, and lists the segments it missed as gaps', async () => {
    await dumper.start(stream, wish('d'));
    const settled = async (): Promise<void> => dumper.list(stream)[0]?.settled;
    send(0, 3);
    await settled();
    const full = Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC', errno: -28 });
    const { write } = DumpFolder.prototype;
    const disk = vi.spyOn(DumpFolder.prototype, 'write').mockRejectedValue(full);
    send(3, 7);
    await settled();
    expect([dumper.list(stream)[0]?.enabled, info('d').Status]).toEqual([true, 'Error']);
    expect(conditions.reasons).toEqual(['a dump misses segments: no space is left on the disk']);
    disk.mockImplementation(write);
    clock.advance(2000);
    // The first segment makes it look, the next ones find that there is room.
    send(7, 9);
    await settled();
    send(9, SECONDS);
    end();
    await dumper.close();
    expect([info('d').Status, conditions.reasons]).toEqual(['Completed', []]);
    const lists = files('d').filter((name) => name.startsWith('chunklist'));
    expect(lists).toHaveLength(2);
    for (const name of lists) {
      const text = readFileSync(join(folder, 'd', name), 'utf8');
      const playlist = parseMediaPlaylist(text);
      const gaps = playlist.segments.map(({ gap }) => gap);
      expect([gaps[0], gaps.includes(true), gaps.at(-1)], text).toEqual([false, true, false]);
      // The list is complete, and so are its files.
      expect(playlist.segments.reduce((sum, { duration }) => sum + (duration ?? 0), 0)).toBeGreaterThan(SECONDS - 0.2);
      for (const { uri, gap } of playlist.segments) expect(existsSync(join(folder, 'd', uri ?? '')), uri ?? '').toBe(!gap);
    }
    const errors = logger.lines.filter(({ level }) => level === 'error').map(({ message }) => message);
    expect(errors).toEqual(['dump paused: ENOSPC: no space left on device; segments are missing until the disk can be written again']);
  });

  it('that ends while the disk is full has the status Error', async () => {
    await dumper.start(stream, wish('d'));
    send(0, 3);
    await dumper.list(stream)[0]?.settled;
    const full = Object.assign(new Error('EROFS: read-only file system'), { code: 'EROFS', errno: -30 });
    vi.spyOn(DumpFolder.prototype, 'write').mockRejectedValue(full);
    send(3, SECONDS);
    end();
    await dumper.close();
    expect([info('d').Status, conditions.reasons]).toEqual(['Error', []]);
  });

  it('with an internal fault ends without disturbing its stream and other dumps', async () => {
    await dumper.start(stream, wish('bad'));
    await dumper.start(stream, wish('good'));
    vi.spyOn(stream, 'copyOf').mockImplementationOnce(() => {
      throw new RangeError('a bug');
    });
    send(0, SECONDS);
    end();
    await dumper.close();
    expect(info('bad').Status).toBe('Error');
    expect(logger.lines.some(({ fields }) => fields['err'] instanceof RangeError)).toBe(true);
    expect(info('good').Status).toBe('Completed');
    expect(frames(join(folder, 'good/llhls.m3u8')).video).toBe(sample.packets.filter(isVideo).length);
  });

  it('interrupted by a kill has the status Error after the next start; the status of other dumps does not change', async () => {
    await dumper.start(stream, wish('done'));
    await dumper.start(stream, wish('cut', { userData: '<Status>Running</Status>' }));
    send(0, 5);
    await dumper.list(stream)[0]?.stop();
    await dumper.list(stream)[1]?.settled;
    await expect.poll(() => readdirSync(join(folder, 'dumps'))).toHaveLength(1);
    // Nothing is closed: this process counts as killed.
    const allowed = new AllowedFolders([folder], 'the setting');
    const next = new Dumper({ clock: new ManualClock(), logger, stateFolder: folder, allowed });
    await next.load();
    // The next start may still fail.
    expect(info('cut').Status).toBe('Running');
    next.recover();
    await next.close();
    expect(info('cut')).toMatchObject({ Status: 'Error', UserData: '<Status>Running</Status>' });
    expect(info('done').Status).toBe('Completed');
    expect(readdirSync(join(folder, 'dumps'))).toEqual([]);
    expect(frames(join(folder, 'cut/llhls.m3u8')).video).toBeGreaterThan(90);
  });

  it('of a stream that ends while it is prepared is complete at once', async () => {
    const starting = dumper.start(stream, wish('late'));
    end();
    await starting;
    await dumper.close();
    expect(info('late').Status).toBe('Completed');
  });

  it('is started by the configuration for the streams it names', async () => {
    rmSync(folder, { recursive: true });
    open(true);
    await expect.poll(() => dumper.list(stream).map(({ request }) => request.id)).toEqual(['conf']);
    expect(logger.lines.filter(({ level }) => level === 'error').map(({ message }) => message)).toEqual([
      expect.stringContaining('"/etc/refused" is outside of the folders that the setting allows'),
    ]);
    send(0, SECONDS);
    expect(dumper.find({ vhost: 'default', app: 'app', stream: 'stream' })).toBe(stream);
    end();
    expect(dumper.find({ vhost: 'default', app: 'app', stream: 'stream' })).toBeUndefined();
    await dumper.close();
    const [name = ''] = readdirSync(folder);
    expect(name).toMatch(/^stream_20\d\d$/);
    expect(frames(join(folder, name, 'llhls.m3u8')).video).toBe(sample.packets.filter(isVideo).length);
    expect(files(name)).not.toContain('master.m3u8');
  });

  it('writes into an existing folder', async () => {
    mkdirSync(join(folder, 'here'));
    await dumper.start(stream, wish('here', { outputPath: 'here', infoFile: 'deep/info.xml' }));
    expect(files('here')).toEqual(['deep']);
  });
});
