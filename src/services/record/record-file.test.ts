import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { RecordingLogger } from '../../../test/fakes/recording-logger.ts';
import { constantFrames, videoPackets, videoTrack } from '../../../test/fakes/synthetic-media.ts';
import { DocumentFolder } from '../../state/document-folder.ts';
import { KEYED } from '../../state/document-layout.ts';
import { AllowedFolders } from '../../util/allowed-folders.ts';
import { RecordFile } from './record-file.ts';
import { RecordInfoFiles } from './record-info-file.ts';
import { RecordJournal } from './record-journal.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'millrace-record-file-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** A disk that does nothing until it is let go. */
class StuckDisk extends AllowedFolders {
  readonly #gate = Promise.withResolvers<void>();

  override async makeFolder(path: string): Promise<void> {
    await this.#gate.promise;
    await super.makeFolder(path);
  }

  letGo(): void {
    this.#gate.resolve();
  }
}

it('drops whole groups of frames while the disk is stuck, and resumes at a keyframe', async () => {
  const logger = new RecordingLogger();
  const documents = new DocumentFolder({ folder: join(folder, 'notes'), kind: 'open-recording', layout: KEYED, logger });
  await documents.load();
  const folders = new StuckDisk(null, 'nothing');
  const track = videoTrack();
  const packets = videoPackets(track, constantFrames({ rate: 30, gop: 30, seconds: 12 }), 100_000);
  const [first] = packets;
  if (first === undefined) throw new Error('no packets');
  const times = { startTime: 0, sequence: 0 };
  const names = { transactionId: 't', id: 'i', vhost: 'v', app: 'a', sourceStream: 's', stream: 's' };
  const target = join(folder, 'out/file.mp4');
  const file = new RecordFile({
    ...{ tracks: [track], first, container: 'mp4', startAt: 0, key: 'k', folders, logger, count: async () => true },
    note: {
      ...{ task: 'x', temporary: join(folder, 'out/tmp_x'), filePath: target, infoPath: join(folder, 'out/info.xml') },
      ...{ values: { ...names, ...times }, metadata: '', createdTime: 0, moved: null },
    },
    journal: new RecordJournal(documents, new RecordInfoFiles(), logger),
    onError: (error) => {
      throw error;
    },
  });

  for (const packet of packets.slice(0, 9 * 30)) file.push(packet);
  const { dropped } = file;
  expect(dropped).toBeGreaterThan(60);
  // Waiting data is bounded: by the limit and the run that is being gathered.
  expect(file.bytes).toBeLessThan(20 * 1024 * 1024);
  folders.letGo();
  // A keyframe is taken as soon as the disk has caught up.
  await expect
    .poll(() => {
      const before = file.dropped;
      file.push({ ...first, keyframe: true, pts: 9 * 90_000, dts: 9 * 90_000 });
      return file.dropped === before;
    })
    .toBe(true);
  for (const packet of packets.slice(9 * 30 + 1)) file.push(packet);
  expect(await file.finish(1000, true, Promise.resolve())).toMatchObject({ path: target });

  const args = ['-v', 'error', '-of', 'json', '-show_packets', '-show_entries', 'packet=pts_time,size', target];
  const { packets: kept } = JSON.parse(execFileSync('ffprobe', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })) as {
    packets: { pts_time: string; size: string }[];
  };
  const gap = kept.findIndex(({ pts_time }, index) => index > 0 && Number(pts_time) - Number(kept[index - 1]?.pts_time) > 0.5);
  // A keyframe of these packets is four times as large as the others, whose bytes say nothing to a parser.
  expect(kept[gap]).toMatchObject({ pts_time: '9.000000', size: '400000' });
  expect(kept.slice(gap)).toHaveLength(90);
  expect(logger.lines.filter(({ message }) => message.startsWith('the disk is too slow'))).toHaveLength(1);
  expect(logger.lines.some(({ message }) => message.startsWith('packets are missing in the recording'))).toBe(true);
});
