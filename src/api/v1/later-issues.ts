/** Endpoints of the contract that a later issue builds: found, authorised and looked up like the others, then 501. */
import { Type } from '../../util/typebox.ts';
import { ApiError } from '../errors.ts';
import type { Method, Route } from '../route.ts';

const APP = '/v1/vhosts/{vhost}/apps/{app}';
const STREAM = `${APP}/streams/{stream}`;

const STREAM_ENDPOINTS: readonly (readonly [Method, string, string])[] = [['POST', `${STREAM}:sendSubtitles`, 'subtitles']];

/** Each answers 501 after the same checks as any other route, so that clients learn of a wrong name or token first. */
export const laterRoutes: readonly Route[] = [...STREAM_ENDPOINTS.map((endpoint): Route => ({ ...describe(endpoint), level: 'stream' }))];

function describe([method, path, what]: readonly [Method, string, string]) {
  const missing = 'APP_OR_STREAM_NOT_FOUND' as const;
  const handle = (): never => {
    throw new ApiError('NOT_IMPLEMENTED', what);
  };
  const channel = method === 'GET' && path.endsWith('/{channel}');
  const hasBody = method === 'POST' || method === 'PATCH';
  return {
    method,
    path,
    summary: `Not implemented: ${what}`,
    handle,
    success: null,
    ...(hasBody && { body: Type.Unknown() }),
    ...(channel && { missing }),
  };
}
