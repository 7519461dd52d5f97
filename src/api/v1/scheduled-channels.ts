import type { JsonObject } from '../../core/definition.ts';
import { internalAppName } from '../../core/stream-address.ts';
import { type ApplicationSchedules, NameTaken } from '../../services/schedule/application-schedules.ts';
import { definitionSteps } from '../../services/schedule/definition-json.ts';
import { type ScheduleDefinition, ScheduleProblem } from '../../services/schedule/schedule-definition.ts';
import { inSlices } from '../../util/in-slices.ts';
import { Type } from '../../util/typebox.ts';
import { ScheduledChannelChangeSchema, ScheduledChannelRequestSchema, ScheduledChannelSchema } from '../channel-schemas.ts';
import { type Answer, acknowledge } from '../envelope.ts';
import { ApiError, causedBy, notSaved } from '../errors.ts';
import { isJsonObject, memberOf } from '../json/json-value.ts';
import { okInSlices, okList } from '../long-answers.ts';
import type { AppRequest, Route } from '../route.ts';

const LIST = '/v1/vhosts/{vhost}/apps/{app}/scheduledChannels';
const ITEM = `${LIST}/{channel}`;

/** Scheduled channels of an application: each is a file, which outlives the server. */
export const scheduledChannelRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: LIST,
    level: 'app',
    summary: 'Names of all scheduled channels',
    response: Type.Array(Type.String()),
    handle: async ({ control, app }) => {
      const schedules = control.schedules.of(app);
      await schedules?.ready();
      return okList(schedules?.names ?? [], (name) => name);
    },
  },
  {
    method: 'POST',
    path: LIST,
    level: 'app',
    summary: 'Make a scheduled channel',
    body: ScheduledChannelRequestSchema,
    success: 201,
    handle: create,
  },
  {
    method: 'GET',
    path: ITEM,
    level: 'app',
    summary: 'A scheduled channel and its present item',
    missing: 'APP_OR_STREAM_NOT_FOUND',
    response: ScheduledChannelSchema,
    handle: information,
  },
  {
    method: 'PATCH',
    path: ITEM,
    level: 'app',
    summary: 'Change the programs of a scheduled channel; an unchanged item on air continues',
    body: ScheduledChannelChangeSchema,
    handle: change,
  },
  {
    method: 'DELETE',
    path: ITEM,
    level: 'app',
    summary: 'End a scheduled channel and remove its file',
    handle: remove,
  },
];

async function create(request: AppRequest): Promise<Answer> {
  const schedules = await schedulesOf(request);
  const { body } = request;
  if (!isJsonObject(body)) throw new ApiError('CHANNEL_BODY_INVALID');
  const definition = await described(body);
  const { name } = definition.stream;
  if (!schedules.canName(name)) throw new ApiError('STREAM_NAME_INVALID', name);
  try {
    await schedules.create(definition);
  } catch (error) {
    if (error instanceof NameTaken) throw new ApiError('CHANNEL_EXISTS', name);
    if (error instanceof ScheduleProblem) throw new ApiError('SCHEDULE_INVALID', error.message);
    throw notSaved(new ApiError('SCHEDULE_NOT_SAVED', schedules.pathOf(name)), error);
  }
  return acknowledge(201);
}

async function information(request: AppRequest): Promise<Answer> {
  const { control, app } = request;
  const schedules = control.schedules.of(app);
  await schedules?.ready();
  const name = request.parameter('channel');
  const channel = schedules?.information(name) ?? null;
  if (channel !== null) return await okInSlices(channel);
  throw new ApiError(app.stream(name) === undefined ? 'APP_OR_STREAM_NOT_FOUND' : 'CHANNEL_OF_ANOTHER_KIND');
}

/** In the contract the answer has status 200, with a body that says 201. */
async function change(request: AppRequest): Promise<Answer> {
  const schedules = await schedulesOf(request);
  const { body } = request;
  if (!isJsonObject(body)) throw new ApiError('CHANNEL_BODY_INVALID');
  const name = existing(request, schedules);
  if ((memberOf(body, 'stream') ?? null) !== null) throw new ApiError('SCHEDULE_STREAM_FIXED');
  try {
    if (!(await schedules.change(name, body))) throw missing(request);
  } catch (error) {
    if (error instanceof ApiError) throw error;
    if (error instanceof ScheduleProblem) throw causedBy(new ApiError('SCHEDULE_PATCH_INVALID'), error);
    throw notSaved(new ApiError('SCHEDULE_NOT_SAVED', schedules.pathOf(name)), error);
  }
  return { ...acknowledge(201), status: 200 };
}

async function remove(request: AppRequest): Promise<Answer> {
  const schedules = await schedulesOf(request);
  const name = existing(request, schedules);
  try {
    await schedules.remove(name);
  } catch (error) {
    throw notSaved(new ApiError('SCHEDULE_NOT_DELETED', schedules.pathOf(name)), error);
  }
  return acknowledge();
}

/** The channels of the application, which must have the provider. */
async function schedulesOf({ control, app }: AppRequest): Promise<ApplicationSchedules> {
  const schedules = control.schedules.of(app);
  if (schedules === null) {
    throw causedBy(new ApiError('PROVIDER_FORBIDDEN'), new Error(`the application '${app.name}' has no Providers/Schedule`));
  }
  await schedules.ready();
  return schedules;
}

/** The name in the path, which must be that of an existing channel. */
function existing(request: AppRequest, schedules: ApplicationSchedules): string {
  const name = request.parameter('channel');
  if (schedules.has(name)) return name;
  throw request.app.stream(name) === undefined ? missing(request) : new ApiError('CHANNEL_NOT_SCHEDULED');
}

function missing({ vhost, app, parameter }: AppRequest): ApiError {
  return new ApiError('STREAM_NOT_FOUND', vhost.name, internalAppName(vhost.name, app.name), parameter('channel'));
}

async function described(body: JsonObject): Promise<ScheduleDefinition> {
  try {
    return await inSlices(definitionSteps(body));
  } catch (error) {
    throw error instanceof ScheduleProblem ? new ApiError('SCHEDULE_INVALID', error.message) : error;
  }
}
