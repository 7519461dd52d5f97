import {
  faultOfUrl,
  isStreamKey,
  PushProtocol,
  type PushRequest,
  pushProtocolOf,
  trimUrl,
  type UrlFault,
} from '../../services/push/push-request.ts';
import { Type } from '../../util/typebox.ts';
import { type Answer, acknowledge, ok } from '../envelope.ts';
import { ApiError, type ErrorCode } from '../errors.ts';
import { textIn } from '../json/json-value.ts';
import { refuseMembers } from '../json/member-check.ts';
import { okList } from '../long-answers.ts';
import { requireObject } from '../refusals.ts';
import type { AppRequest, Route } from '../route.ts';
import { PushRequestSchema, PushTaskSchema, TaskIdSchema } from '../schemas.ts';
import { carriedOut, missingIn, type TaskErrors, taskRequestIn } from './task-answers.ts';

const APP = '/v1/vhosts/{vhost}/apps/{app}';
const ERRORS: TaskErrors = { exists: 'PUSH_EXISTS', limit: 'PUSH_LIMIT', notSaved: 'PUSH_NOT_SAVED' };

/** Push tasks of an application; they survive a restart of the server. */
export const pushRoutes: readonly Route[] = [
  {
    method: 'POST',
    path: `${APP}:startPush`,
    level: 'app',
    summary: 'Push a stream to another server, now or as soon as it starts',
    body: PushRequestSchema,
    response: PushTaskSchema,
    handle: startPush,
  },
  {
    method: 'POST',
    path: `${APP}:stopPush`,
    level: 'app',
    summary: 'End a push task',
    body: TaskIdSchema,
    handle: stopPush,
  },
  {
    method: 'POST',
    path: `${APP}:pushes`,
    reads: true,
    level: 'app',
    summary: 'All push tasks, or the task of an id',
    body: Type.Partial(TaskIdSchema),
    bodyOptional: true,
    response: Type.Array(PushTaskSchema),
    handle: pushes,
  },
  {
    method: 'GET',
    path: `${APP}:pushes`,
    level: 'app',
    summary: 'All push tasks',
    response: Type.Array(PushTaskSchema),
    handle: pushes,
  },
];

const URL_ERRORS: Readonly<Record<UrlFault, ErrorCode>> = {
  malformed: 'PUSH_URL_MALFORMED',
  scheme: 'PUSH_URL_UNSUPPORTED',
  port: 'PUSH_PORT_INVALID',
  mode: 'PUSH_MODE_UNSUPPORTED',
  listen: 'PUSH_LISTEN_UNSUPPORTED',
};

async function startPush(request: AppRequest): Promise<Answer> {
  const { vhost, app, control } = request;
  const wanted = pushRequest(request);
  return ok(await carriedOut(control.pushes.startPush({ vhost: vhost.name, app: app.name }, wanted), wanted.id, ERRORS));
}

async function stopPush({ vhost, app, control, body }: AppRequest): Promise<Answer> {
  const id = textIn(requireObject(body), 'id');
  if (id === '') throw new ApiError('PUSH_INCOMPLETE', ' id');
  const stopped = await carriedOut(control.pushes.stopPush({ vhost: vhost.name, app: app.name }, id), id, ERRORS);
  if (!stopped) throw new ApiError('PUSH_NOT_FOUND', id, vhost.name, app.name);
  return acknowledge();
}

function pushes({ vhost, app, control, body }: AppRequest): Answer | Promise<Answer> {
  const id = textIn(body, 'id');
  return okList(control.pushes.pushes({ vhost: vhost.name, app: app.name }, id === '' ? null : id), (task) => task);
}

/** Required members of a wrong type count as absent, as in the reference server; the protocol is checked first, as there. */
function pushRequest({ vhost, app, body }: AppRequest): PushRequest {
  const json = requireObject(body);
  const protocol = pushProtocolOf(textIn(json, 'protocol'));
  if (protocol === null) throw new ApiError('PUSH_PROTOCOL_UNKNOWN', textIn(json, 'protocol').trim(), vhost.name, app.name);
  if (app.definition.config.publishers.push === undefined) throw new ApiError('PUSH_DISABLED', vhost.name, app.name);
  const common = taskRequestIn(json);
  const url = trimUrl(textIn(json, 'url'));
  const streamKey = textIn(json, 'streamKey').trim();
  const named = { id: common.id, 'stream.name': common.streamName, url };
  const missing = missingIn(protocol === PushProtocol.RTMP ? { ...named, streamKey } : named);
  if (missing !== '') throw new ApiError('PUSH_INCOMPLETE', missing);
  refuseMembers(json, PushRequestSchema);
  const fault = faultOfUrl(protocol, url);
  if (fault !== null) throw new ApiError(URL_ERRORS[fault]);
  if (!isStreamKey(streamKey)) throw new ApiError('PUSH_KEY_INVALID');
  return { ...common, protocol, url, streamKey };
}
