/** Posts the states of tasks that follow streams. */
import type { FollowingTask } from '../tasks/following-task.ts';
import type { TaskRequest } from '../tasks/task-request.ts';
import type { Notices, TaskNotice } from './notice.ts';

/** `#<vhost>#<app>/<stream>`. */
const INTERNAL_PATH = /^#([^#/]*)#([^#/]*)\/(.*)$/;

/** The state of a recording or push as it is now. */
export function postTask(
  notices: Notices,
  task: TaskNotice['task'],
  { vhost, app, request, state, reason }: FollowingTask<TaskRequest> & { readonly state: string; readonly reason: string | null },
): void {
  const { id, streamName: stream } = request;
  notices.post({ type: 'task.changed', vhost, app, stream, task, id, state, ...(reason !== null && { reason }) });
}

/** Posts the state of a dump. `path`: the internal path of its stream. */
export function postDump(
  notices: Notices,
  path: string,
  { id, state, reason }: { readonly id: string; readonly state: string; readonly reason: string | null },
): void {
  const [, vhost = '', app = '', stream = ''] = INTERNAL_PATH.exec(path) ?? [];
  notices.post({ type: 'task.changed', vhost, app, stream, task: 'dump', id, state, ...(reason !== null && { reason }) });
}
