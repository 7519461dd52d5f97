/** Recordings as a service: tasks of the API and of map files, kept in the state folder. */
import type { Service, ServiceContext } from '../service.ts';
import { FilePublisher } from './file-publisher.ts';

/** With what the API drives. Rejects when the tasks of the last run cannot be read. */
export async function startRecordings({
  clock,
  logger,
  stateFolder,
  writing,
  queues,
  conditions,
}: ServiceContext): Promise<Service & { readonly recordings: FilePublisher }> {
  const recordings = new FilePublisher({ clock, logger, queues, stateFolder, allowed: writing, conditions });
  await recordings.load();
  return {
    recordings,
    publishers: [recordings],
    // A start that fails leaves what the last run left as it was.
    started: () => recordings.recover(),
    finish: () => recordings.stop(),
  };
}
