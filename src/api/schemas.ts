/** Schemas of answers: the contract tests check every answer against them, and OpenAPI is generated from them. */

import type { TSchema } from '@sinclair/typebox';
import { VirtualHostSchema } from '../config/index.ts';
import { ProviderKind, PublisherKind, SourceType } from '../core/kinds.ts';
import { Type } from '../util/typebox.ts';

/** A wall clock time, in the form of all answers. */
export const Timestamp = Type.String({ pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}[+-]\\d\\d:\\d\\d$' });
const Count = Type.Integer({ minimum: 0 });
const closed = { additionalProperties: false };

/** A virtual host to be created: unlike in a file, `host` is required. */
export const VirtualHostDefinition: TSchema = { ...VirtualHostSchema, required: [...VirtualHostSchema.required, 'host'] };

/** A virtual host; its members are described by the configuration reference. */
export const VirtualHostAnswer = Type.Object({
  name: Type.String(),
  host: Type.Object({}),
  distribution: Type.Optional(Type.String()),
});

/** An output profile; its members are described by the configuration reference. */
export const OutputProfile = Type.Object({
  name: Type.String(),
  outputStreamName: Type.String(),
  encodes: Type.Optional(Type.Object({ audios: Type.Array(Type.Object({})), videos: Type.Array(Type.Object({})) })),
});

/** An application; its members are described by the configuration reference. */
export const ApplicationAnswer = Type.Object({
  name: Type.String(),
  type: Type.String(),
  dynamic: Type.Optional(Type.Boolean()),
  outputProfiles: Type.Optional(Type.Object({ outputProfile: Type.Optional(Type.Array(OutputProfile)) })),
  providers: Type.Optional(Type.Object({})),
  publishers: Type.Optional(Type.Object({})),
  publishKeys: Type.Optional(Type.Array(Type.Object({ name: Type.String() }))),
  playTokens: Type.Optional(Type.Array(Type.Object({ name: Type.String() }))),
});

/** A publish key or play token, without the key itself. */
export const AccessKey = Type.Object({
  name: Type.String(),
  created: Type.Optional(Type.String({ description: 'Absent: the key came with the definition of the application' })),
  expires: Type.Optional(Type.String({ description: 'Absent: never' })),
  streams: Type.Optional(Type.String({ description: 'Absent: all streams' })),
  lastUsed: Type.Optional(Type.String({ description: 'Absent: not used since the start of the server' })),
});

/** The request to pull a stream. */
export const PullRequest = Type.Object({
  name: Type.String(),
  urls: Type.Array(Type.String(), { minItems: 1 }),
  properties: Type.Optional(
    Type.Object({
      persistent: Type.Optional(Type.Boolean()),
      noInputFailoverTimeoutMs: Type.Optional(Type.Integer()),
      unusedStreamDeletionTimeoutMs: Type.Optional(Type.Integer()),
      ignoreRtcpSRTimestamp: Type.Optional(Type.Boolean()),
      relay: Type.Optional(Type.Boolean()),
      retryCount: Type.Optional(Type.Integer()),
    }),
  ),
});

const Bitrates = { bitrate: Type.String(), bitrateAvg: Type.String(), bitrateConf: Type.String(), bitrateLatest: Type.String() };

const VideoTrack = Type.Object(
  {
    ...Bitrates,
    bypass: Type.Boolean(),
    codec: Type.String(),
    deltaFramesSinceLastKeyFrame: Count,
    framerate: Type.Number(),
    framerateAvg: Type.Number(),
    framerateConf: Type.Number(),
    framerateLatest: Type.Number(),
    hasBframes: Type.Boolean(),
    height: Count,
    keyFrameInterval: Count,
    keyFrameIntervalAvg: Type.Number(),
    keyFrameIntervalConf: Type.Number(),
    keyFrameIntervalLatest: Count,
    maxHeight: Count,
    maxWidth: Count,
    width: Count,
  },
  closed,
);

const AudioTrack = Type.Object({ ...Bitrates, bypass: Type.Boolean(), channel: Count, codec: Type.String(), samplerate: Count }, closed);

const TrackSchema = Type.Union([
  Type.Object({ id: Type.Integer(), name: Type.String(), type: Type.Literal('Video'), video: VideoTrack }, closed),
  Type.Object({ audio: AudioTrack, id: Type.Integer(), name: Type.String(), type: Type.Literal('Audio') }, closed),
  Type.Object({ id: Type.Integer(), name: Type.String(), type: Type.Union([Type.Literal('Data'), Type.Literal('Subtitle')]) }, closed),
]);

const PlaylistSchema = Type.Object(
  {
    fileName: Type.String(),
    name: Type.String(),
    options: Type.Object(
      { enableTsPackaging: Type.Boolean(), hlsChunklistPathDepth: Type.Integer(), webrtcAutoAbr: Type.Boolean() },
      closed,
    ),
    renditions: Type.Array(
      Type.Object(
        { audioVariantName: Type.Optional(Type.String()), name: Type.String(), videoVariantName: Type.Optional(Type.String()) },
        closed,
      ),
    ),
  },
  closed,
);

/** Information about a stream. */
export const StreamInformation = Type.Object(
  {
    input: Type.Object(
      {
        createdTime: Timestamp,
        sourceType: Type.Union(Object.values(SourceType).map((type) => Type.Literal(type))),
        sourceUrl: Type.Optional(Type.String()),
        tracks: Type.Array(TrackSchema),
      },
      closed,
    ),
    name: Type.String(),
    outputs: Type.Array(
      Type.Object(
        {
          name: Type.String(),
          playlists: Type.Array(PlaylistSchema),
          tracks: Type.Array(TrackSchema),
          /** Absent without any. */
          warnings: Type.Optional(Type.Array(Type.String())),
        },
        closed,
      ),
    ),
  },
  closed,
);

/** The request to record a stream. */
export const RecordRequestSchema = Type.Object({
  id: Type.String(),
  stream: Type.Object({
    name: Type.String(),
    trackIds: Type.Optional(Type.Array(Type.Integer())),
    variantNames: Type.Optional(Type.Array(Type.String())),
  }),
  filePath: Type.Optional(Type.String()),
  infoPath: Type.Optional(Type.String()),
  interval: Type.Optional(Count),
  metadata: Type.Optional(Type.String()),
  schedule: Type.Optional(Type.String()),
  // An empty text counts as absent.
  segmentationRule: Type.Optional(Type.Union(['continuity', 'discontinuity', ''].map((rule) => Type.Literal(rule)))),
});

/** The name of one task. */
export const TaskIdSchema = Type.Object({ id: Type.String() });

/** Recorded files of an application. */
export const RecordedFilesSchema = Type.Object(
  {
    expires: Timestamp,
    more: Type.Boolean({ description: 'Whether there are more than 1000 files; request the rest from the end of the last file on' }),
    playlist: Type.Optional(Type.String({ description: 'Path of all files as HLS, if the request names a stream' })),
    recordings: Type.Array(
      Type.Object(
        {
          bytes: Count,
          container: Type.Union([Type.Literal('mp4'), Type.Literal('ts')]),
          durationMs: Count,
          endTime: Timestamp,
          file: Type.String({ description: 'Path of the file, with ranges' }),
          id: Type.String(),
          playlist: Type.String({ description: 'Path of the file as HLS' }),
          startTime: Timestamp,
          stream: Type.String(),
          task: Type.String({ description: 'Id of the recording task' }),
        },
        { additionalProperties: false },
      ),
    ),
  },
  { additionalProperties: false },
);
/** A recording task. */
export const RecordTaskSchema = Type.Object(
  {
    app: Type.String(),
    createdTime: Timestamp,
    filePath: Type.Optional(Type.String()),
    finishTime: Type.Optional(Timestamp),
    id: Type.String(),
    infoPath: Type.Optional(Type.String()),
    interval: Type.Optional(Count),
    isConfig: Type.Boolean(),
    metadata: Type.Optional(Type.String()),
    outputFilePath: Type.Optional(Type.String()),
    outputInfoPath: Type.Optional(Type.String()),
    reason: Type.Optional(Type.String()),
    recordBytes: Type.Optional(Count),
    recordTime: Type.Optional(Count),
    schedule: Type.Optional(Type.String()),
    segmentationRule: Type.Union([Type.Literal('continuity'), Type.Literal('discontinuity')]),
    sequence: Type.Optional(Count),
    startTime: Type.Optional(Timestamp),
    state: Type.Union(['ready', 'recording', 'stopping', 'stopped', 'error'].map((state) => Type.Literal(state))),
    stream: Type.Object({ name: Type.String(), trackIds: Type.Array(Type.Integer()), variantNames: Type.Array(Type.String()) }, closed),
    totalRecordBytes: Type.Optional(Count),
    totalRecordTime: Type.Optional(Count),
    vhost: Type.String(),
  },
  closed,
);

/** The request to dump a stream. */
export const DumpRequestSchema = Type.Object({
  id: Type.String(),
  outputStreamName: Type.String(),
  outputPath: Type.String(),
  playlist: Type.Optional(Type.Array(Type.String())),
  infoFile: Type.Optional(Type.String()),
  userData: Type.Optional(Type.String()),
});

/** Selects a dump, or all dumps of an output stream. */
export const DumpSelectionSchema = Type.Object({ outputStreamName: Type.String(), id: Type.Optional(Type.String()) });

/** A dump. */
export const DumpSchema = Type.Object(
  {
    enabled: Type.Boolean(),
    id: Type.String(),
    infoFile: Type.Optional(Type.String()),
    outputPath: Type.String(),
    outputStreamName: Type.String(),
    playlist: Type.Optional(Type.Array(Type.String())),
    userData: Type.Optional(Type.String()),
  },
  closed,
);

/** The request to push a stream. */
export const PushRequestSchema = Type.Object({
  id: Type.String(),
  stream: Type.Object({
    name: Type.String(),
    trackIds: Type.Optional(Type.Array(Type.Integer())),
    variantNames: Type.Optional(Type.Array(Type.String())),
  }),
  protocol: Type.String(),
  url: Type.String(),
  streamKey: Type.Optional(Type.String({ description: 'Required for the protocol rtmp' })),
});

/** A push task. */
export const PushTaskSchema = Type.Object(
  {
    app: Type.String(),
    createdTime: Timestamp,
    finishTime: Timestamp,
    id: Type.String(),
    isConfig: Type.Boolean(),
    protocol: Type.Union(['rtmp', 'srt', 'mpegts'].map((protocol) => Type.Literal(protocol))),
    reason: Type.Optional(Type.String()),
    sentBytes: Count,
    sentTime: Count,
    sequence: Count,
    startTime: Timestamp,
    state: Type.Union(['ready', 'connecting', 'pushing', 'stopping', 'stopped', 'error'].map((state) => Type.Literal(state))),
    stream: Type.Object({ name: Type.String(), trackIds: Type.Array(Type.Integer()), variantNames: Type.Array(Type.String()) }, closed),
    streamKey: Type.Optional(Type.String()),
    totalsentBytes: Count,
    totalsentTime: Count,
    url: Type.String(),
    vhost: Type.String(),
  },
  closed,
);

const PublisherConnections = Type.Object(countsOf(Object.values(PublisherKind)), closed);
const ProviderConnections = Type.Object(countsOf(Object.values(ProviderKind)), closed);

/** Version 1 statistics. */
export const StatisticsV1Schema = Type.Object(
  {
    avgThroughputIn: Count,
    avgThroughputOut: Count,
    connections: PublisherConnections,
    createdTime: Timestamp,
    lastRecvTime: Timestamp,
    lastSentTime: Timestamp,
    lastThroughputIn: Count,
    lastThroughputOut: Count,
    lastUpdatedTime: Timestamp,
    maxThroughputIn: Count,
    maxThroughputOut: Count,
    maxTotalConnectionTime: Timestamp,
    maxTotalConnections: Count,
    totalBytesIn: Count,
    totalBytesOut: Count,
    totalConnections: Count,
  },
  closed,
);

/** Version 2 statistics. */
export const StatisticsV2Schema = Type.Object(
  {
    createdTime: Timestamp,
    lastUpdatedTime: Timestamp,
    providers: Type.Object(
      {
        avgThroughputIn: Count,
        connections: ProviderConnections,
        lastRecvTime: Timestamp,
        lastThroughputIn: Count,
        maxThroughputIn: Count,
        totalBytesIn: Count,
      },
      closed,
    ),
    publishers: Type.Object(
      {
        avgThroughputOut: Count,
        connections: PublisherConnections,
        lastSentTime: Timestamp,
        lastThroughputOut: Count,
        maxThroughputOut: Count,
        maxTotalConnectionTime: Timestamp,
        maxTotalConnections: Count,
        totalBytesOut: Count,
        totalConnections: Count,
      },
      closed,
    ),
  },
  closed,
);

/** Statistics of a viewer session. */
export const SessionStatisticsSchema = Type.Object(
  {
    avgThroughputOut: Count,
    createdTime: Timestamp,
    lastSentTime: Timestamp,
    lastThroughputOut: Count,
    lastUpdatedTime: Timestamp,
    maxThroughputOut: Count,
    totalBytesOut: Count,
  },
  closed,
);

/** State of one queue. */
export const QueueStatusSchema = Type.Object(
  {
    avgWaitingTime: Count,
    drop: Count,
    id: Type.Integer(),
    inputPerSecond: Count,
    outputPerSecond: Count,
    peak: Count,
    size: Count,
    threshold: Count,
    type: Type.String(),
    urn: Type.String(),
  },
  closed,
);

/** A codec module: software of the codec library, or a device. */
export const CodecModuleSchema = Type.Object(
  {
    busId: Type.String(),
    displayName: Type.String(),
    id: Count,
    isDecoder: Type.Boolean(),
    isDefault: Type.Boolean(),
    isEncoder: Type.Boolean(),
    isHwAccel: Type.Boolean(),
    mediaType: Type.Union([Type.Literal('Video'), Type.Literal('Audio')]),
    metrics: Type.Object({ active: Type.Object({ decoder: Count, encoder: Count }, closed) }, closed),
    module: Type.String(),
    name: Type.String(),
    supportedCodecs: Type.Array(Type.String()),
  },
  closed,
);

function countsOf<K extends string>(kinds: readonly K[]): Record<K, typeof Count> {
  return Object.fromEntries(kinds.map((kind) => [kind, Count])) as Record<K, typeof Count>;
}
