/** API schemas of scheduled and multiplex channels; see `schemas.ts` for all others. */
import { Type } from '../util/typebox.ts';
import { Timestamp } from './schemas.ts';

const Count = Type.Integer({ minimum: 0 });
const closed = { additionalProperties: false };

const ScheduleItem = Type.Object({
  url: Type.String({ description: '`file://<path below MediaRootDir>` or `stream://<vhost>/<app>/<stream>`' }),
  start: Type.Optional(Type.Integer({ minimum: 0, description: 'Position in the file at which the item begins, ms' })),
  duration: Type.Optional(Type.Integer({ minimum: -1, description: 'Milliseconds; -1: to the end' })),
  fallbackOnErr: Type.Optional(Type.Boolean({ description: 'False: after a failed item the next item follows, not the fallback program' })),
});
const FallbackProgram = Type.Object({ items: Type.Optional(Type.Array(ScheduleItem)) });
const ScheduleProgram = Type.Object({
  name: Type.Optional(Type.String()),
  scheduled: Type.String({ description: 'ISO 8601 with an offset, or with a zone as in `2026-03-29T02:30:00[Europe/Berlin]`' }),
  repeat: Type.Optional(Type.Boolean()),
  items: Type.Optional(Type.Array(ScheduleItem)),
});
const AudioMap = Type.Array(
  Type.Object({
    name: Type.Optional(Type.String()),
    language: Type.Optional(Type.String()),
    characteristics: Type.Optional(Type.String()),
  }),
);

/** The request to create a scheduled channel. */
export const ScheduledChannelRequestSchema = Type.Object({
  stream: Type.Object({
    name: Type.String(),
    bypassTranscoder: Type.Optional(Type.Boolean()),
    videoTrack: Type.Optional(Type.Boolean()),
    audioTrack: Type.Optional(Type.Boolean()),
    audioMap: Type.Optional(AudioMap),
    errorToleranceDurationMs: Type.Optional(Count),
  }),
  fallbackProgram: Type.Optional(FallbackProgram),
  programs: Type.Optional(Type.Array(ScheduleProgram)),
});

/** The request to change a scheduled channel: each of the two members is replaced as a whole. */
export const ScheduledChannelChangeSchema = Type.Object({
  fallbackProgram: Type.Optional(FallbackProgram),
  programs: Type.Optional(Type.Array(ScheduleProgram)),
});

const ShownItem = Type.Object(
  { url: Type.String(), start: Count, duration: Type.Integer({ minimum: -1 }), fallbackOnErr: Type.Optional(Type.Boolean()) },
  closed,
);
const ShownProgram = Type.Object(
  { name: Type.String(), scheduled: Type.String(), repeat: Type.Boolean(), items: Type.Union([Type.Array(ShownItem), Type.Null()]) },
  closed,
);

/** A scheduled channel. */
export const ScheduledChannelSchema = Type.Object(
  {
    stream: Type.Object(
      {
        name: Type.String(),
        bypassTranscoder: Type.Boolean(),
        videoTrack: Type.Boolean(),
        audioTrack: Type.Boolean(),
        audioMap: Type.Union([AudioMap, Type.Null()]),
        errorToleranceDurationMs: Count,
      },
      closed,
    ),
    fallbackProgram: Type.Optional(ShownProgram),
    programs: Type.Optional(Type.Array(ShownProgram)),
    currentProgram: Type.Object(
      {
        state: Type.Union([Type.Literal('onair'), Type.Literal('offair')]),
        name: Type.Optional(Type.String()),
        repeat: Type.Optional(Type.Boolean()),
        scheduled: Type.Optional(Timestamp),
        end: Type.Optional(Timestamp),
        duration: Type.Optional(Type.Integer({ minimum: -1 })),
        currentItem: Type.Optional(
          Type.Object({ url: Type.String(), start: Count, duration: Type.Integer({ minimum: -1 }), currentPosition: Count }, closed),
        ),
      },
      closed,
    ),
  },
  closed,
);

const MappedTrackSchema = Type.Object({
  sourceTrackName: Type.String({ description: 'Variant name in the source' }),
  newTrackName: Type.String({ description: 'Variant name in the channel' }),
  bitrateConf: Type.Optional(Type.Number({ minimum: 0 })),
  framerateConf: Type.Optional(Type.Number({ minimum: 0 })),
});

const ChannelSourcesSchema = Type.Array(
  Type.Object({
    name: Type.String(),
    url: Type.String({ description: 'stream://<vhost>/<app>/<stream>, an output stream of this server' }),
    trackMap: Type.Array(MappedTrackSchema),
  }),
);

const ChannelRenditionsSchema = Type.Array(
  Type.Object({
    name: Type.String(),
    video: Type.Optional(Type.String()),
    audio: Type.Optional(Type.String()),
    videoIndexHint: Type.Optional(Type.Integer()),
    audioIndexHint: Type.Optional(Type.Integer()),
  }),
);

const CHANNEL_OPTIONS = {
  enableTsPackaging: Type.Optional(Type.Boolean()),
  hlsChunklistPathDepth: Type.Optional(Type.Integer()),
  webrtcAutoAbr: Type.Optional(Type.Boolean()),
};

/** The request to create a multiplex channel. */
export const MultiplexRequestSchema = Type.Object({
  outputStream: Type.Object({ name: Type.String(), bypassTranscoder: Type.Optional(Type.Boolean()) }),
  sourceStreams: ChannelSourcesSchema,
  playlists: Type.Optional(
    Type.Array(
      Type.Object({
        name: Type.String(),
        fileName: Type.String(),
        options: Type.Optional(Type.Object(CHANNEL_OPTIONS)),
        renditions: Type.Optional(ChannelRenditionsSchema),
      }),
    ),
  ),
});

/** A multiplex channel. */
export const MultiplexChannelSchema = Type.Object(
  {
    outputStream: Type.Object({ name: Type.String(), bypassTranscoder: Type.Boolean() }, closed),
    playlists: Type.Optional(
      Type.Array(
        Type.Object(
          {
            name: Type.String(),
            fileName: Type.String(),
            options: Type.Union([Type.Object(CHANNEL_OPTIONS, closed), Type.Null()]),
            renditions: ChannelRenditionsSchema,
          },
          closed,
        ),
      ),
    ),
    pullingMessage: Type.Optional(Type.String({ description: 'Reason for which the channel waits' })),
    sourceStreams: ChannelSourcesSchema,
    state: Type.Union(['None', 'Pulling', 'Playing', 'Stopped'].map((state) => Type.Literal(state))),
  },
  closed,
);
