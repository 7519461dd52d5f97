import { EventFormat } from '../../media/timed-event.ts';
import { Type } from '../../util/typebox.ts';
import { type Answer, acknowledge, type BatchItem, batch, batchAcknowledgement, batchFailure } from '../envelope.ts';
import { ApiError, type ErrorCode } from '../errors.ts';
import { memberOf } from '../json/json-value.ts';
import { refuseMembers } from '../json/member-check.ts';
import { requireObject } from '../refusals.ts';
import type { Route, StreamRequest } from '../route.ts';
import { ConclusionRequestSchema, EventRequestSchema, type EventWish, eventWish } from './event-request.ts';

const STREAM = '/v1/vhosts/{vhost}/apps/{app}/streams/{stream}';

/** Events that reach players with the stream (`sendEvent`, `sendEvents`), and the end of its live playlists (`concludeHlsLive`). */
export const eventRoutes: readonly Route[] = [
  {
    method: 'POST',
    path: `${STREAM}:sendEvent`,
    level: 'stream',
    summary: 'Add an event to a stream: an ID3 tag, a cue or a splice',
    body: EventRequestSchema,
    handle: (request) => {
      inject(request, eventWish(requireObject(request.body)), 'EVENT_NOT_INJECTED');
      return acknowledge();
    },
  },
  {
    method: 'POST',
    path: `${STREAM}:sendEvents`,
    level: 'stream',
    summary: 'Add several events to a stream',
    batch: true,
    body: Type.Array(EventRequestSchema),
    handle: (request) => {
      const { body } = request;
      if (!Array.isArray(body) || body.length === 0) throw new ApiError('EVENTS_MISSING');
      return batch(body.map((item) => sendOne(request, item)));
    },
  },
  {
    method: 'POST',
    path: `${STREAM}:concludeHlsLive`,
    level: 'stream',
    summary: 'End the live playlists of LL-HLS and HLS: nothing is appended afterwards',
    body: ConclusionRequestSchema,
    bodyOptional: true,
    handle: conclude,
  },
];

function sendOne(request: StreamRequest, item: unknown): BatchItem {
  try {
    inject(request, eventWish(requireObject(item)), 'EVENT_NOT_INJECTED');
    return batchAcknowledgement();
  } catch (error) {
    if (error instanceof ApiError) return batchFailure(error);
    throw error;
  }
}

/** An empty body counts as an empty object. */
function conclude(request: StreamRequest): Answer {
  const body = requireObject(request.body ?? {});
  refuseMembers(body, ConclusionRequestSchema);
  const event = { format: EventFormat.CONCLUSION, target: 'all', data: new Uint8Array(0), at: null } as const;
  inject(request, { event, urgent: memberOf(body, 'urgent') === true }, 'CONCLUSION_NOT_INJECTED');
  return acknowledge();
}

function inject({ stream, vhost, app }: StreamRequest, { event, urgent }: EventWish, failed: ErrorCode): void {
  if (!stream.inject(event, urgent)) throw new ApiError(failed, vhost.name, app.name, stream.name);
}
