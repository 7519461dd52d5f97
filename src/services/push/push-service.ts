/**
 * Pushes as a service: tasks send streams to other servers. Tasks of the API are kept in the state folder, tasks of map files end with
 * their streams.
 *
 * A `PushTask` holds its state and its attempts, a `PushSession` one attempt with a bounded queue; a `Destination` is one connection:
 * RTMP(S), or a transport stream over SRT, UDP or TCP.
 *
 * Threads: the main one.
 * Limits: 1000 tasks of the API in an application; a queue of 500 packets and 16 MiB, which drops to the next keyframe; 5 s to connect and
 * 2 s for a send unless `Publishers/Push` says otherwise; 16 unfinished messages a second of an RTMP receiver.
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
