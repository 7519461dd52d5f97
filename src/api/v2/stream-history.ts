/** The recent past of a stream. An extension of Millrace. */
import { SAMPLE_MS } from '../../monitoring/figure-history.ts';
import { formatTimestamp } from '../../util/timestamp.ts';
import { Type } from '../../util/typebox.ts';
import { ok } from '../envelope.ts';
import type { Route } from '../route.ts';
import { Timestamp } from '../schemas.ts';

const SampleSchema = Type.Object(
  {
    framerate: Type.Optional(
      Type.Number({ description: 'Frames per second of the first video track, over the last second; absent without video', minimum: 0 }),
    ),
    keyFrameInterval: Type.Optional(
      Type.Integer({ description: 'Frames between the last two keyframes of the first video track', minimum: 0 }),
    ),
    throughputIn: Type.Integer({ description: 'Bytes received per second since the previous sample', minimum: 0 }),
    throughputOut: Type.Integer({ description: 'Bytes sent per second since the previous sample', minimum: 0 }),
    time: Timestamp,
    viewers: Type.Integer({ description: 'Viewers over WebRTC, LL-HLS, HLS and SRT', minimum: 0 }),
  },
  { additionalProperties: false },
);

/** The past of an inbound stream. */
export const streamHistoryRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: '/v2/vhosts/{vhost}/apps/{app}/streams/{stream}/history',
    level: 'stream',
    summary: 'Throughput, frame rate, keyframe interval and viewers of a stream in the last half hour',
    response: Type.Object(
      {
        intervalMs: Type.Integer({ description: 'Time between two samples' }),
        samples: Type.Array(SampleSchema, {
          description:
            'Samples, the oldest first; none for times without the stream. Samples of an earlier stream of the same name are included',
        }),
      },
      { additionalProperties: false },
    ),
    handle: ({ control, vhost, app, stream }) =>
      ok({
        intervalMs: SAMPLE_MS,
        samples: control.streamHistory.samples(vhost.name, app.name, stream.name).map(({ at, ...figures }) => ({
          ...figures,
          time: formatTimestamp(at),
        })),
      }),
  },
];
