/**
 * Pushes as a service: tasks of the API and of map files send streams to other servers, and are kept in the state folder.
 *
 * A `PushTask` holds a bounded queue, its state and its attempts; a `Destination` is one connection: RTMP(S), or a transport stream over SRT, UDP or TCP.
 *
 * Threads: the main one.
 * Limits: the queue of a task drops to the next keyframe, 5 s to connect and 2 s for a send where the task names no others, 16 unfinished messages
 * a second of the receiver.
 * Specifications: those of `services/rtmp` and `services/srt`.
 */
import { srtMetrics } from '../../transport/srt/srt-metrics.ts';
import type { Service, ServiceContext } from '../service.ts';
import { pushKeeper } from './push-keeper.ts';
import { PushPublisher } from './push-publisher.ts';

/** Returns also the interface for the API. Rejects if the tasks of the last run cannot be read. */
export async function startPushes({
  clock,
  logger,
  queues,
  stateFolder,
  notices,
  secrets,
  originMaps,
  orchestrator,
}: ServiceContext): Promise<Service & { readonly pushes: PushPublisher }> {
  const pushes = new PushPublisher({ clock, logger, queues, stateFolder, notices, secrets, work: originMaps });
  await pushes.start();
  originMaps.addKeeper(pushKeeper(pushes, orchestrator));
  return {
    pushes,
    publishers: [pushes],
    metrics: [...pushes.metrics, srtMetrics([{ direction: 'push', statistics: () => pushes.statistics() }])],
    finish: () => pushes.stop(),
  };
}
