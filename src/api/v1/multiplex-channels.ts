import type { ApplicationChannels } from '../../services/multiplex/application-channels.ts';
import { DefinitionFault, readDefinition } from '../../services/multiplex/channel-definition.ts';
import { multiplexChannelInformation } from '../../services/multiplex/channel-information.ts';
import type { MultiplexChannel } from '../../services/multiplex/multiplex-channel.ts';
import { DefinitionTooLarge } from '../../state/definition-folder.ts';
import { Type } from '../../util/typebox.ts';
import { MultiplexChannelSchema, MultiplexRequestSchema } from '../channel-schemas.ts';
import { type Answer, acknowledge, ok } from '../envelope.ts';
import { ApiError, causedBy, type ErrorCode, notSaved } from '../errors.ts';
import { isJsonObject } from '../json/json-value.ts';
import { refuseMembers } from '../json/member-check.ts';
import { okList } from '../long-answers.ts';
import type { AppRequest, Route } from '../route.ts';

const COLLECTION = '/v1/vhosts/{vhost}/apps/{app}/multiplexChannels';
const ITEM = `${COLLECTION}/{channel}`;

/** Multiplex channels of an application: each is a file of its `MuxFilesDir`. */
export const multiplexRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: COLLECTION,
    level: 'app',
    summary: 'Names of all multiplex channels',
    response: Type.Array(Type.String()),
    handle: async (request) => okList((await channelsOf(request, 'MUX_APP_NOT_FOUND')).channels, ({ name }) => name),
  },
  {
    method: 'POST',
    path: COLLECTION,
    level: 'app',
    summary: 'Make a stream from tracks of other streams',
    body: MultiplexRequestSchema,
    success: 201,
    handle: create,
  },
  {
    method: 'GET',
    path: ITEM,
    level: 'app',
    summary: 'Information about a multiplex channel',
    missing: 'APP_OR_STREAM_NOT_FOUND',
    response: MultiplexChannelSchema,
    handle: async (request) => {
      const { channel } = await channelOf(request, { disabled: 'MUX_APP_NOT_FOUND', missing: 'APP_OR_STREAM_NOT_FOUND' });
      return ok(multiplexChannelInformation(channel));
    },
  },
  { method: 'DELETE', path: ITEM, level: 'app', summary: 'Delete a multiplex channel', handle: remove },
];

async function create(request: AppRequest): Promise<Answer> {
  const { control, app, body } = request;
  const channels = await channelsOf(request, 'MUX_DISABLED');
  const definition = definitionIn(body);
  const { name } = definition.outputStream;
  if (app.stream(name) !== undefined) throw new ApiError('MUX_EXISTS', name);
  const loop = control.multiplex.loopOf(app, definition);
  if (loop !== null) throw new ApiError('MUX_INVALID', `sourceStreams/url: ${loop}`);
  await durable(channels.save(definition), 'MUX_NOT_SAVED');
  return acknowledge(201);
}

async function remove(request: AppRequest): Promise<Answer> {
  const { channels, channel } = await channelOf(request, { disabled: 'MUX_DISABLED', missing: 'MUX_NOT_FOUND' });
  await durable(channels.remove(channel.name), 'MUX_NOT_DELETED');
  return acknowledge();
}

function definitionIn(body: unknown) {
  if (!isJsonObject(body)) throw new ApiError('MUX_BODY_WRONG');
  try {
    const definition = readDefinition(body);
    refuseMembers(body, MultiplexRequestSchema);
    return definition;
  } catch (error) {
    throw error instanceof DefinitionFault ? new ApiError('MUX_INVALID', error.message) : error;
  }
}

/** The channels of an application, including those of its files. Throws `missing` for an application without multiplex channels. */
async function channelsOf({ control, app }: AppRequest, missing: ErrorCode): Promise<ApplicationChannels> {
  const channels = control.multiplex.of(app);
  if (channels === null) throw causedBy(new ApiError(missing), new Error(`the application '${app.name}' has no Providers/Multiplex`));
  await channels.ready();
  return channels;
}

/** Throws `disabled` for an application without multiplex channels, and `missing` if it has none of this name. */
async function channelOf(
  request: AppRequest,
  { disabled, missing }: { readonly disabled: ErrorCode; readonly missing: ErrorCode },
): Promise<{ readonly channels: ApplicationChannels; readonly channel: MultiplexChannel }> {
  const channels = await channelsOf(request, disabled);
  const name = request.parameter('channel');
  if (name === '') throw new ApiError('MUX_NAME_EMPTY');
  const channel = channels.get(name);
  if (channel === undefined) throw new ApiError(missing, name);
  return { channels, channel };
}

/** The contract has no words for the reason: it is in the log, and in the response if the client can correct it. */
async function durable(change: Promise<void>, failed: ErrorCode): Promise<void> {
  try {
    await change;
  } catch (error) {
    if (error instanceof DefinitionTooLarge) throw new ApiError('MUX_INVALID', error.message);
    throw notSaved(new ApiError(failed), error);
  }
}
