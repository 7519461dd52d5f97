import type { Orchestrator } from '../../core/orchestrator.ts';
import type { WorkKeeper } from '../../core/shared-work.ts';
import type { PushPublisher } from './push-publisher.ts';
import { storedPushRequest } from './push-request.ts';

/** Lets other nodes define push tasks here. */
export function pushKeeper(
  pushes: Pick<PushPublisher, 'kept' | 'keeps' | 'adopt' | 'drop'>,
  applications: Pick<Orchestrator, 'application'>,
): WorkKeeper {
  return {
    kind: 'push',
    *definitions(vhost) {
      for (const { task, shared } of pushes.kept(vhost)) {
        yield { work: { kind: 'push', vhost, app: task.app, name: task.request.id }, definition: shared };
      }
    },
    has: (work) => pushes.keeps(work, work.name),
    async adopt(work, { request, createdAt }) {
      const { vhost, app, name } = work;
      const read = storedPushRequest(request);
      if (read === null || read.id !== name || typeof createdAt !== 'number') throw new Error('its definition cannot be read');
      if (applications.application(vhost, app)?.definition.config.publishers.push === undefined) {
        throw new Error(`the publisher Push is not enabled in application '${vhost}/${app}'`);
      }
      await pushes.adopt(work, read, createdAt);
      return true;
    },
    async drop(work) {
      await pushes.drop(work, work.name);
      return true;
    },
  };
}
