/** Pushes as a service: tasks of the API and of map files, kept in the state folder. */
import type { Service, ServiceContext } from '../service.ts';
import { PushPublisher } from './push-publisher.ts';

/** With what the API drives. Rejects when the tasks of the last run cannot be read. */
export async function startPushes({
  clock,
  logger,
  queues,
  stateFolder,
}: ServiceContext): Promise<Service & { readonly pushes: PushPublisher }> {
  const pushes = new PushPublisher({ clock, logger, queues, stateFolder });
  await pushes.start();
  return {
    pushes,
    publishers: [pushes],
    srtLinks: [{ direction: 'push', statistics: () => pushes.statistics() }],
    finish: () => pushes.stop(),
  };
}
