/**
 * Recordings as a service: tasks write MP4 or MPEG-TS. Tasks of the API are kept in the state folder, tasks of map files end with their
 * streams.
 *
 * A `RecordTask` follows a stream and splits it by its rules; a `FileSink` writes behind a bounded queue, so that a killed server loses
 * half a second of media while the disk keeps up. `RecordJournal` knows the open files, and the next start finishes them.
 * `RecordingLibrary` serves finished recordings and removes them in time.
 *
 * Threads: the main one, whose writes and syncs are asynchronous; a thread of its own (`finalise.ts`) writes the indexes of MP4 files of
 * 64 MiB and more.
 * Limits: 1000 tasks of the API in an application, 16 MiB that wait for the disk a file, 10,000 names in a sequence, 100,000 files in the
 * library; a full disk pauses a task until there is room.
 * Specifications: ISO/IEC 14496-12 (fragmented while it grows, with a `moov` at the end), ISO/IEC 13818-1.
 */
import type { ApplicationAddress } from '../../core/stream-address.ts';
import type { Service, ServiceContext } from '../service.ts';
import { FilePublisher } from './file-publisher.ts';

/** Returns also the interface for the API. Rejects if the tasks of the last run cannot be read. */
export async function startRecordings({
  clock,
  logger,
  stateFolder,
  writing,
  queues,
  conditions,
  notices,
  orchestrator,
}: ServiceContext): Promise<Service & { readonly recordings: FilePublisher }> {
  const retentionOf = ({ vhost, app }: ApplicationAddress) =>
    orchestrator.application(vhost, app)?.definition.config.publishers.file?.retention ?? null;
  const recordings = new FilePublisher({ clock, logger, queues, stateFolder, allowed: writing, conditions, notices, retentionOf });
  await recordings.load();
  return {
    recordings,
    publishers: [recordings],
    metrics: recordings.metrics,
    // A failed start must not change anything left by the last run.
    started: () => recordings.recover(),
    finish: () => recordings.stop(),
  };
}
