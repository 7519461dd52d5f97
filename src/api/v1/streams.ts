import { IngestRefused } from '../../core/ingest.ts';
import { type PullDefinition, PullFailed, schemeOf } from '../../core/pull.ts';
import type { WaitingStream } from '../../core/pull-registry.ts';
import { internalAppName, isAddressableName } from '../../core/stream-address.ts';
import { streamInformation, waitingStreamInformation } from '../../monitoring/stream-info.ts';
import { PathRefused } from '../../util/allowed-folders.ts';
import { showHidden } from '../../util/hidden-characters.ts';
import { Type } from '../../util/typebox.ts';
import { type Answer, acknowledge, ok } from '../envelope.ts';
import { ApiError, causedBy, type ErrorCode } from '../errors.ts';
import { isJsonObject, memberOf } from '../json/json-value.ts';
import { refuseMembers } from '../json/member-check.ts';
import { okList } from '../long-answers.ts';
import { requireObject } from '../refusals.ts';
import type { AppRequest, Route } from '../route.ts';
import { PullRequest, StreamInformation } from '../schemas.ts';

const COLLECTION = '/v1/vhosts/{vhost}/apps/{app}/streams';
const ITEM = `${COLLECTION}/{stream}`;

/** Inbound streams of an application, including pulled streams that wait for their source. */
export const streamRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: COLLECTION,
    level: 'app',
    summary: 'Names of all inbound streams',
    response: Type.Array(Type.String()),
    handle: ({ control, app }) => okList([...app.streams, ...control.waitingStreams(app)], ({ name }) => name),
  },
  {
    method: 'POST',
    path: COLLECTION,
    level: 'app',
    summary: 'Pull a stream',
    body: PullRequest,
    success: 201,
    handle: pull,
  },
  {
    method: 'GET',
    path: ITEM,
    level: 'app',
    summary: 'Information about a stream',
    missing: 'APP_OR_STREAM_NOT_FOUND',
    response: StreamInformation,
    handle: information,
  },
  {
    method: 'DELETE',
    path: ITEM,
    level: 'app',
    summary: 'Terminate a stream',
    handle: async (request) => {
      const { control, app } = request;
      await control.deleteStream(app.stream(request.parameter('stream')) ?? waitingStream(request, 'STREAM_NOT_FOUND'));
      return acknowledge();
    },
  },
];

function information(request: AppRequest): Answer {
  const { server, app } = request;
  const masked = server.privacyProtection;
  const stream = app.stream(request.parameter('stream'));
  if (stream !== undefined) return ok(streamInformation(stream, { masked }));
  return ok(waitingStreamInformation(waitingStream(request, 'APP_OR_STREAM_NOT_FOUND'), { masked }));
}

/** A pulled stream that waits for its source: it exists until it is deleted. Throws `missing` if there is none. */
function waitingStream({ control, vhost, app, parameter }: AppRequest, missing: ErrorCode): WaitingStream {
  const name = parameter('stream');
  const waiting = control.waitingStreams(app).find((stream) => stream.name === name);
  if (waiting === undefined) throw new ApiError(missing, vhost.name, internalAppName(vhost.name, app.name), name);
  return waiting;
}

async function pull({ control, vhost, app, body, url }: AppRequest): Promise<Answer> {
  const definition = pullDefinition(requireObject(body), vhost.definition.config.origins?.properties);
  const { name } = definition;
  if (app.hasStream(name) || control.waitingStreams(app).some((waiting) => waiting.name === name)) throw new ApiError('STREAM_EXISTS');
  try {
    await control.pullStream(app, definition);
  } catch (error) {
    if (error instanceof PullFailed) throw pullFailure(error, url);
    if (error instanceof IngestRefused) throw refused(error, { vhost: vhost.name, app: app.name, url });
    throw error;
  }
  return acknowledge(201);
}

/** A forbidden path is the client's fault; everything else is the source's. */
function pullFailure(error: PullFailed, url: string): ApiError {
  for (let cause: unknown = error; cause instanceof Error; cause = cause.cause) {
    if (cause instanceof PathRefused) return new ApiError('STREAM_PATH_REFUSED', cause.message);
  }
  return causedBy(new ApiError('STREAM_PULL_FAILED', url), error);
}

function refused(error: IngestRefused, { vhost, app, url }: { vhost: string; app: string; url: string }): ApiError {
  if (error.code === 'duplicate-name') return new ApiError('STREAM_EXISTS');
  return error.code === 'no-application'
    ? new ApiError('APP_NOT_FOUND', vhost, app)
    : causedBy(new ApiError('STREAM_PULL_FAILED', url), error);
}

/** Settings of virtual hosts for pulled streams. */
interface OriginProperties {
  readonly noInputFailoverTimeout?: number;
  readonly unusedStreamDeletionTimeout?: number;
  readonly retryCount?: number;
}

function pullDefinition(body: unknown, origin: OriginProperties = {}): PullDefinition {
  const { name, urls } = pullRequest(body);
  const given = memberOf(body, 'properties');
  return {
    name,
    urls,
    properties: {
      persistent: memberOf(given, 'persistent') === true,
      noInputFailoverTimeoutMs: positive(memberOf(given, 'noInputFailoverTimeoutMs'), origin.noInputFailoverTimeout ?? 3000),
      unusedStreamDeletionTimeoutMs: positive(
        memberOf(given, 'unusedStreamDeletionTimeoutMs'),
        origin.unusedStreamDeletionTimeout ?? 60_000,
      ),
      ignoreRtcpSRTimestamp: memberOf(given, 'ignoreRtcpSRTimestamp') === true,
      retryCount: retries(memberOf(given, 'retryCount'), isJsonObject(given) ? 1 : (origin.retryCount ?? 1)),
      relay: memberOf(given, 'relay') === true,
    },
  };
}

/** Times of 0 and less count as absent. */
function positive(value: unknown, otherwise: number): number {
  return typeof value === 'number' && value > 0 ? value : otherwise;
}

function retries(value: unknown, otherwise: number): number {
  return typeof value === 'number' && value >= 0 ? Math.floor(value) : otherwise;
}

function pullRequest(body: unknown): { readonly name: string; readonly urls: readonly string[] } {
  const name = memberOf(body, 'name');
  const urls = memberOf(body, 'urls');
  if (typeof name !== 'string' || !Array.isArray(urls)) throw new ApiError('STREAM_REQUEST_INCOMPLETE');
  if (urls.length === 0) throw new ApiError('STREAM_URLS_EMPTY');
  const texts = urls.map((url) => {
    if (typeof url !== 'string') throw new ApiError('STREAM_URL_WRONG');
    return url;
  });
  refuseMembers(body, PullRequest);
  if (new Set(texts.map(schemeOf)).size > 1) throw new ApiError('STREAM_URLS_DIFFER');
  if (!isAddressableName(name)) throw new ApiError('STREAM_NAME_INVALID', showHidden(name));
  return { name, urls: texts };
}
