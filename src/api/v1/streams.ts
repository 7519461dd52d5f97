import { Type } from '@sinclair/typebox';
import { streamInformation } from '../../monitoring/stream-info.ts';
import { acknowledge, ok } from '../envelope.ts';
import { ApiError } from '../errors.ts';
import { memberOf } from '../json/json-value.ts';
import { requireObject } from '../refusals.ts';
import type { AppRequest, Route } from '../route.ts';
import { PullRequest, StreamInformation } from '../schemas.ts';

const COLLECTION = '/v1/vhosts/{vhost}/apps/{app}/streams';
const ITEM = `${COLLECTION}/{stream}`;

export const streamRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: COLLECTION,
    level: 'app',
    summary: 'Names of all inbound streams',
    response: Type.Array(Type.String()),
    handle: ({ app }) => ok(app.streams.map(({ name }) => name)),
  },
  {
    method: 'POST',
    path: COLLECTION,
    level: 'app',
    summary: 'Pull a stream',
    body: PullRequest,
    handle: pull,
  },
  {
    method: 'GET',
    path: ITEM,
    level: 'stream',
    summary: 'Information about a stream',
    response: StreamInformation,
    handle: ({ server, stream }) => ok(streamInformation(stream, { masked: server.privacyProtection })),
  },
  {
    method: 'DELETE',
    path: ITEM,
    level: 'stream',
    summary: 'Terminate a stream',
    handle: ({ stream }) => {
      stream.terminate({ code: 'deleted', detail: 'deleted through the API' });
      return acknowledge();
    },
  },
];

function pull({ app, body }: AppRequest): never {
  const { name } = pullRequest(requireObject(body));
  if (app.stream(name) !== undefined) throw new ApiError('STREAM_EXISTS');
  throw new ApiError('NOT_IMPLEMENTED', 'pulling a stream');
}

function pullRequest(body: unknown): { readonly name: string; readonly urls: readonly string[] } {
  const name = memberOf(body, 'name');
  const urls = memberOf(body, 'urls');
  if (typeof name !== 'string' || !Array.isArray(urls)) throw new ApiError('STREAM_REQUEST_INCOMPLETE');
  if (urls.length === 0) throw new ApiError('STREAM_URLS_EMPTY');
  return {
    name,
    urls: urls.map((url) => {
      if (typeof url !== 'string') throw new ApiError('STREAM_URL_WRONG');
      return url;
    }),
  };
}
