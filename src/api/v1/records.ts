import type { RecordOwner } from '../../services/record/file-publisher.ts';
import { type RecordRequest, segmentationRuleOf } from '../../services/record/record-request.ts';
import { DailySchedule } from '../../services/record/split-schedule.ts';
import { PathRefused } from '../../util/allowed-folders.ts';
import { Type } from '../../util/typebox.ts';
import { type Answer, ok } from '../envelope.ts';
import { ApiError } from '../errors.ts';
import { memberOf, textIn } from '../json/json-value.ts';
import { refuseMembers } from '../json/member-check.ts';
import { okList } from '../long-answers.ts';
import { requireObject } from '../refusals.ts';
import type { AppRequest, Route } from '../route.ts';
import { RecordRequestSchema, RecordTaskSchema, TaskIdSchema } from '../schemas.ts';
import { carriedOut, missingIn, type TaskErrors, taskRequestIn } from './task-answers.ts';

const APP = '/v1/vhosts/{vhost}/apps/{app}';
const ERRORS: TaskErrors = { exists: 'RECORD_EXISTS', limit: 'RECORD_LIMIT', notSaved: 'RECORD_NOT_SAVED' };

/** Recording tasks of an application; they survive a restart of the server. */
export const recordRoutes: readonly Route[] = [
  {
    method: 'POST',
    path: `${APP}:startRecord`,
    level: 'app',
    summary: 'Record a stream, now or as soon as it starts',
    body: RecordRequestSchema,
    response: RecordTaskSchema,
    handle: startRecord,
  },
  {
    method: 'POST',
    path: `${APP}:stopRecord`,
    level: 'app',
    summary: 'End a recording task',
    body: TaskIdSchema,
    response: RecordTaskSchema,
    handle: stopRecord,
  },
  {
    method: 'POST',
    path: `${APP}:records`,
    reads: true,
    level: 'app',
    summary: 'All recording tasks, or the task of an id',
    body: Type.Partial(TaskIdSchema),
    bodyOptional: true,
    response: Type.Array(RecordTaskSchema),
    handle: records,
  },
  {
    method: 'GET',
    path: `${APP}:records`,
    level: 'app',
    summary: 'All recording tasks',
    response: Type.Array(RecordTaskSchema),
    handle: records,
  },
];

async function startRecord(request: AppRequest): Promise<Answer> {
  const owner = ownerOf(request);
  const wanted = recordRequest(requireObject(request.body));
  try {
    return ok(await carriedOut(request.control.recordings.startRecord(owner, wanted), wanted.id, ERRORS));
  } catch (error) {
    if (error instanceof PathRefused) throw new ApiError('RECORD_PATH_REFUSED', error.message);
    throw error;
  }
}

async function stopRecord(request: AppRequest): Promise<Answer> {
  const owner = ownerOf(request);
  const id = textIn(requireObject(request.body), 'id');
  if (id === '') throw new ApiError('RECORD_INCOMPLETE', ' id');
  const stopped = await carriedOut(request.control.recordings.stopRecord(owner, id), id, ERRORS);
  if (stopped === null) throw new ApiError('RECORD_NOT_FOUND', id);
  return ok(stopped);
}

function records(request: AppRequest): Answer | Promise<Answer> {
  const owner = ownerOf(request);
  const id = textIn(request.body, 'id');
  return okList(request.control.recordings.records(owner, id === '' ? null : id), (task) => task);
}

/** The application with its settings for recordings, which are required. */
function ownerOf({ vhost, app }: AppRequest): RecordOwner {
  const settings = app.definition.config.publishers.file;
  if (settings === undefined) throw new ApiError('RECORD_DISABLED', vhost.name, app.name);
  return { vhost: vhost.name, app: app.name, settings };
}

/** Refuses invalid values; unknown members are ignored unless they resemble a known one. */
function recordRequest(body: unknown): RecordRequest {
  const common = taskRequestIn(body);
  const missing = missingIn({ id: common.id, 'stream.name': common.streamName });
  if (missing !== '') throw new ApiError('RECORD_INCOMPLETE', missing);
  refuseMembers(body, RecordRequestSchema);
  const interval = memberOf(body, 'interval');
  const milliseconds = typeof interval === 'number' && Number.isSafeInteger(interval) && interval > 0 ? interval : 0;
  const schedule = textIn(body, 'schedule').trim();
  if (milliseconds > 0 && schedule !== '') throw new ApiError('RECORD_SPLIT_TWICE');
  if (schedule !== '' && DailySchedule.parse(schedule) === null) throw new ApiError('RECORD_SCHEDULE_INVALID');
  return {
    ...common,
    interval: milliseconds,
    schedule,
    segmentationRule: segmentationRuleOf(memberOf(body, 'segmentationRule')),
    filePath: textIn(body, 'filePath'),
    infoPath: textIn(body, 'infoPath'),
    metadata: textIn(body, 'metadata'),
  };
}
