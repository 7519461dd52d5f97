/** The publishers of an application. A publisher whose object is present, even empty, is enabled. */
import type { Static } from '@sinclair/typebox';
import { CrossDomainsSchema } from './cross-domains.ts';
import { boolean, choice, finishing, integer, needless, object, optional, path, REFUSED, real, text, unbuilt } from './field.ts';
import { createDefaultPlaylist, HlsCacheControlSchema, hlsCommon, maxConnection, unbuiltMaxConnection } from './hls.ts';

/** `<LLHLS>` in `<Publishers>`: fMP4 segments in parts (rfc8216bis). `<DRM>` that is enabled is refused (`not-built.ts`). */
export const LlhlsSchema = object(
  'Serves LL-HLS (fMP4)',
  {
    ...hlsCommon,
    chunkDuration: real('Length of a part, s', { default: 0.5, exclusiveMinimum: 0, maximum: 60 }),
    partHoldBack: real('Distance of players from the live edge, s; 0: three parts', { default: 0, minimum: 0 }),
    enablePreloadHint: boolean('Announces the next part in the playlist', { default: true }),
    dRM: optional(
      object(
        `Encrypts segments: ${REFUSED}`,
        {
          enable: boolean('Turns it on', { default: false }),
          infoFile: optional(path('File with the keys')),
        },
        { xml: 'DRM', aliases: ['drm'] },
      ),
    ),
  },
  { xml: 'LLHLS' },
);
/** The typed form of `<LLHLS>`; durations in seconds. */
export type LlhlsConfig = Static<typeof LlhlsSchema>;

/** `<HLS>` in `<Publishers>`: version 3 playlists of MPEG-TS segments (RFC 8216). */
const HlsSchema = object('Serves HLS (MPEG-TS)', { ...hlsCommon, cacheControl: HlsCacheControlSchema }, { xml: 'HLS' });
/** The typed form of `<HLS>`; durations in seconds. */
export type HlsConfig = Static<typeof HlsSchema>;

/** `<WebRTC>` in `<Publishers>`; media ports and signalling ports are in `<Bind>`. */
const WebrtcPublisherSchema = object(
  'Serves viewers over WebRTC',
  {
    maxConnection,
    timeout: integer('Time without a connectivity check (ICE) after which the session of a viewer ends, ms', {
      default: 30_000,
      minimum: 0,
    }),
    rtx: boolean('Sends lost packets again', { default: false }),
    ulpfec: boolean('Adds forward error correction (RED and ULPFEC)', { default: false }),
    jitterBuffer: boolean('Evens out the times at which frames leave. Not built yet', {
      default: false,
      ...unbuilt('frames leave as they come'),
    }),
    playoutDelay: optional(
      object('Requests a playout delay from players', {
        min: integer('Minimum delay, ms', { minimum: 0 }),
        max: integer('Maximum delay, ms', { minimum: 0 }),
      }),
    ),
    bandwidthEstimation: choice(
      'Estimation of the bandwidth of a viewer: by the player (`REMB`), or by the server from the arrival times of packets (`TransportCC`)',
      ['REMB', 'TransportCC'],
      {
        default: 'REMB',
        refusal: () => "Invalid value for BWE. Valid values are 'TransportCC' or 'REMB'",
      },
    ),
    createDefaultPlaylist,
  },
  { xml: 'WebRTC' },
);
/** The typed form of `<WebRTC>` in `<Publishers>`; times in ms. */
export type WebrtcPublisherConfig = Static<typeof WebrtcPublisherSchema>;

const StreamMapSchema = object('Starts tasks according to a map file', {
  enable: boolean('Turns it on', { default: false }),
  path: optional(path('The map file')),
});

interface FileFinish {
  streamMap?: { enable: boolean; path?: string };
  record?: { enable: boolean; recordInfo?: string };
}

/** `<FILE>` in `<Publishers>`. `Record`, the older form, is read as `StreamMap`. */
const FilePublisherSchema = object(
  'Records streams to files',
  {
    maxConnection: unbuiltMaxConnection,
    rootPath: optional(text('Directory of all recordings; paths outside of it are refused')),
    filePath: optional(text('Path of a recording; macros are replaced', { form: 'written-path' })),
    infoPath: optional(text('Path of the information file; macros are replaced', { form: 'written-path' })),
    streamMap: optional(StreamMapSchema),
    retention: optional(
      object(
        'Removal of old recorded files. Only files that the server has recorded and still has in its index are removed. An extension of Millrace',
        {
          maxAge: integer('Age at which a file is removed, seconds after its end; 0: never', { default: 0, minimum: 0 }),
          maxBytes: integer(
            'Maximum size of all files of the application together, bytes. Beyond it the oldest files are removed; 0: no limit',
            {
              default: 0,
              minimum: 0,
            },
          ),
        },
      ),
    ),
    record: optional(
      object(
        'Starts recordings according to a map file',
        {
          enable: boolean('Turns it on', { default: false }),
          recordInfo: optional(path('The map file')),
        },
        { deprecated: 'streamMap' },
      ),
    ),
  },
  {
    xml: 'FILE',
    finish: finishing<FileFinish>((value) => {
      if (value.streamMap !== undefined || value.record === undefined) return;
      const { enable, recordInfo } = value.record;
      value.streamMap = recordInfo === undefined ? { enable } : { enable, path: recordInfo };
    }),
  },
);
/** The typed form of `<FILE>` in `<Publishers>`; paths still have their macros. */
export type FilePublisherConfig = Static<typeof FilePublisherSchema>;

/** `<Push>` in `<Publishers>`. Receivers are named by the API or by the map file, not here. */
const PushPublisherSchema = object('Pushes streams to other servers', {
  streamMap: optional(StreamMapSchema),
  connectionTimeout: integer('Time limit for connecting, ms; -1: 5000', { default: -1, minimum: -1 }),
  sendTimeout: integer('Time that the receiver may read nothing of waiting data, ms; -1: 2000', { default: -1, minimum: -1 }),
});
/** The typed form of `<Push>`; timeouts in ms, -1 for the default. */
export type PushPublisherConfig = Static<typeof PushPublisherSchema>;

const plain = (description: string, xml: string) => object(description, { maxConnection }, { xml });
const formerPush = (xml: string) => optional(object('Enables push', { maxConnection: unbuiltMaxConnection }, { xml, deprecated: 'push' }));

interface PublishersFinish {
  push?: PushPublisherConfig;
  rtmpPush?: unknown;
  srtPush?: unknown;
  mPEGTSPush?: unknown;
}

const WORKERS = needless('threads are shared by all applications');

/** Everything that may serve a stream. */
export const PublishersSchema = object(
  'Outputs of streams; a listed publisher is enabled',
  {
    appWorkerCount: integer('Workers of the application; read for compatibility', { default: 1, minimum: 0, ...WORKERS }),
    streamWorkerCount: integer('Workers of each stream; read for compatibility', { default: 8, minimum: 0, ...WORKERS }),
    delayBufferTimeMs: integer(
      'Delay of all output, ms. A stream buffers at most 256 MiB; a full buffer drops new packets, of video all packets up to the next keyframe. ' +
        'When the source ends, the buffered media still goes out, within some seconds; a stream that is deleted or refused drops its buffer',
      { default: 0, minimum: 0, maximum: 300_000 },
    ),
    ovt: optional(plain('Serves edges over OVT', 'OVT')),
    srt: optional(plain('Serves viewers over SRT', 'SRT')),
    webrtc: optional(WebrtcPublisherSchema),
    llhls: optional(LlhlsSchema),
    hls: optional(HlsSchema),
    file: optional(FilePublisherSchema),
    push: optional(PushPublisherSchema),
    thumbnail: optional(object('Serves images', { maxConnection: unbuiltMaxConnection, crossDomains: optional(CrossDomainsSchema) })),
    rtmpPush: formerPush('RTMPPush'),
    srtPush: formerPush('SRTPush'),
    mPEGTSPush: formerPush('MPEGTSPush'),
  },
  {
    default: {},
    finish: finishing<PublishersFinish>((value) => {
      if (value.push !== undefined) return;
      if ((value.rtmpPush ?? value.srtPush ?? value.mPEGTSPush) !== undefined) value.push = { connectionTimeout: -1, sendTimeout: -1 };
    }),
  },
);
/** The typed form of `<Publishers>`; a publisher that is undefined is off. */
export type PublishersConfig = Static<typeof PublishersSchema>;
