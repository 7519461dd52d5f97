/** The providers of an application. A provider whose object is present, even empty, is enabled. */
import type { Static } from '@sinclair/typebox';
import { AddressSet } from '../../util/address-set.ts';
import { CrossDomainsSchema } from './cross-domains.ts';
import {
  as,
  boolean,
  choice,
  type Fail,
  finishing,
  integer,
  list,
  NO_EFFECT,
  name,
  object,
  optional,
  path,
  ports,
  text,
  unbuilt,
} from './field.ts';

interface Common {
  timestampMode?: 'ZeroBased' | 'Original';
  useIncomingTimestamp?: boolean;
}

function commonRules(value: Common): void {
  if (value.timestampMode === undefined && value.useIncomingTimestamp === true) value.timestampMode = 'Original';
}

const common = {
  maxConnection: integer('Maximum number of streams of this provider in the application; 0: no limit', { default: 0 }),
  timestampMode: optional(
    choice(
      '`ZeroBased` starts every stream at 0, `Original` keeps the timestamps of the source; absent: the choice of the provider',
      ['ZeroBased', 'Original'],
      { refusal: (value) => `Invalid TimestampMode value: ${value} (expected: ZeroBased, Original)` },
    ),
  ),
  useIncomingTimestamp: optional(boolean('Keeps the timestamps of the source', { deprecated: 'timestampMode' })),
};

const silence = (milliseconds: number) =>
  integer('Time without audio and video after which the stream ends, ms; 0: never', { default: milliseconds, minimum: 0 });

/** Encoders that lost their connection return and need their stream name. */
const ENCODER_SILENCE_MS = 10_000;
/** Browsers send nothing while a page has muted both tracks; their ICE may be silent for the same time. */
const BROWSER_SILENCE_MS = 30_000;
const pushed = { ...common, packetSilenceTimeoutMs: silence(ENCODER_SILENCE_MS) };
const pushRules = { finish: finishing<Common>(commonRules) };

const noSilence = { ...common, packetSilenceTimeoutMs: optional(integer('Not supported by this provider')) };

function noSilenceRules(type: string) {
  return {
    finish: finishing<Common & { packetSilenceTimeoutMs?: number }>((value, fail: Fail) => {
      commonRules(value);
      if (value.packetSilenceTimeoutMs !== undefined) {
        fail(`PacketSilenceTimeoutMs is not supported for this provider type: ${type}`, 'packetSilenceTimeoutMs');
      }
    }),
  };
}

const AudioMapSchema = object('Names for the audio tracks of the source, in their order', {
  item: list(
    'One entry for each audio track',
    object('Name of an audio track', {
      name: text('Label shown to viewers'),
      language: optional(text('Language tag, e.g. `en`')),
      characteristics: optional(text('HLS CHARACTERISTICS value, e.g. `public.accessibility.describes-video`')),
    }),
    { default: [] },
  ),
});
/** The typed form of `<AudioMap>`: the n-th item is for the n-th audio track. */
export type AudioMapConfig = Static<typeof AudioMapSchema>;

const blockDuplicate = boolean('Refuses a second publisher of a name; if false, the second publisher replaces the first', {
  default: true,
});
const passthroughProfile = boolean('Adds an output stream that passes the input through unchanged', { default: false });

/** `<RTMP>` in `<Providers>`; its ports are in `<Bind>`. */
const RtmpProviderSchema = object(
  'Accepts streams published over RTMP',
  {
    ...pushed,
    blockDuplicateStreamName: blockDuplicate,
    passthroughOutputProfile: passthroughProfile,
    eventGenerator: optional(
      object('Turns AMF data messages into ID3 events', {
        event: list(
          'Rules, tried in order',
          object('One rule', {
            trigger: text('Trigger of the rule: `AMFDataMessage.<name of the message>.<member>`; nested members follow after further dots'),
            hLSID3v2: optional(
              object(
                'The ID3v2 event to make',
                {
                  eventType: choice('Tracks that carry the event; `event` and `both`: all tracks', ['video', 'audio', 'event', 'both']),
                  frameType: text('ID3 frame: `TXXX`, another text frame or `PRIV`'),
                  info: optional(text('Description of `TXXX`, owner of `PRIV`; `${TriggerValue}` stands for the value')),
                  data: text('Content of the frame; `${TriggerValue}` stands for the value'),
                },
                { aliases: ['hlsID3v2', 'hlsId3v2'] },
              ),
            ),
          }),
          { default: [] },
        ),
      }),
    ),
  },
  { xml: 'RTMP', ...pushRules },
);
/** The typed form of `<RTMP>` in `<Providers>`; timeouts in ms. */
export type RtmpProviderConfig = Static<typeof RtmpProviderSchema>;

/** `<SRT>` in `<Providers>`; ports, latency and passphrases are in `<Bind>`. */
const SrtProviderSchema = object(
  'Accepts streams published over SRT',
  { ...pushed, blockDuplicateStreamName: blockDuplicate, audioMap: optional(AudioMapSchema) },
  { xml: 'SRT', ...pushRules },
);
/** The typed form of `<SRT>` in `<Providers>`; timeouts in ms. */
export type SrtProviderConfig = Static<typeof SrtProviderSchema>;

/** `<WebRTC>` in `<Providers>`: WHIP, and the reference server's WebSocket protocol with `direction=send`. */
const WebrtcProviderSchema = object(
  'Accepts streams published over WebRTC (WHIP)',
  {
    ...common,
    packetSilenceTimeoutMs: silence(BROWSER_SILENCE_MS),
    blockDuplicateStreamName: blockDuplicate,
    timeout: integer('Time without a connectivity check (ICE) after which a connection is closed, ms', { default: 30_000, minimum: 0 }),
    fIRInterval: integer('Time without a keyframe after which the server requests a keyframe from the encoder, ms; 0: no such requests', {
      xml: 'FIRInterval',
      aliases: ['firInterval'],
      default: 3000,
      minimum: 0,
    }),
    crossDomains: optional(CrossDomainsSchema),
  },
  { xml: 'WebRTC', ...pushRules },
);
/** The typed form of `<WebRTC>` in `<Providers>`; times in ms. */
export type WebrtcProviderConfig = Static<typeof WebrtcProviderSchema>;

interface SourceFinish {
  readonly source?: readonly string[];
}

const sourceRules = finishing<SourceFinish>(({ source = [] }, fail) => {
  const wrong = source.find((entry) => !AddressSet.isAddress(entry));
  if (wrong !== undefined) fail(`Source must be an IP address or a network as 192.0.2.0/24, but got '${wrong}'`, 'source');
});

/** `<MPEGTS>` in `<Providers>`: over UDP, and over TCP where `<Bind>` has such ports. */
const MpegtsProviderSchema = object(
  'Accepts MPEG-TS over UDP and TCP',
  {
    ...common,
    packetSilenceTimeoutMs: silence(1500),
    streams: list(
      'Streams of the ports',
      object(
        'Streams of one or more ports',
        {
          name: text('Stream name; `${Port}` stands for the port', { default: 'stream', form: 'stream-name' }),
          port: ports('Ports', { protocols: ['udp', 'tcp'], default: '4000/udp' }),
          program: optional(
            integer('Program number, for sources with several programs; absent: the first program. An extension of Millrace', {
              minimum: 1,
              maximum: 65_535,
            }),
          ),
          source: optional(
            list('Accepted senders, as `192.0.2.10` or `192.0.2.0/24`; default: all. An extension of Millrace', text('Address')),
          ),
        },
        { finish: sourceRules },
      ),
      { xml: 'StreamMap', flatten: 'stream', aliases: ['streamMap'], default: [] },
    ),
    audioMap: optional(AudioMapSchema),
  },
  { xml: 'MPEGTS', ...pushRules },
);
/** The typed form of `<MPEGTS>` in `<Providers>`; stream names still have their macros. */
export type MpegtsProviderConfig = Static<typeof MpegtsProviderSchema>;

/** `<FILE>` in `<Providers>`: plays what `file://` URLs name, below the root path. */
const FileProviderSchema = object(
  'Plays files as streams',
  {
    ...noSilence,
    rootPath: optional(path('Directory that all paths start at')),
    streamMap: optional(
      object('Streams made from files', {
        stream: list(
          'Entries',
          object('One entry', { name: name('Stream name'), path: text('Path of the file, relative to the root path') }),
          {
            default: [],
          },
        ),
      }),
    ),
    passthroughOutputProfile: passthroughProfile,
  },
  { xml: 'FILE', ...noSilenceRules('File') },
);
/** The typed form of `<FILE>` in `<Providers>`. Without `rootPath`, files below `Server/Storage/AllowedRoots` are played; without both, none. */
export type FileProviderConfig = Static<typeof FileProviderSchema>;

const pulled = (description: string, type: string, xml: string, notes = {}) =>
  object(description, noSilence, { xml, ...noSilenceRules(type), ...notes });

/** All providers of streams. */
const ProvidersSchema = object('Sources of streams; a listed provider is enabled', {
  ovt: optional(pulled('Pulls streams from another origin over OVT', 'Ovt', 'OVT')),
  rtmp: optional(RtmpProviderSchema),
  srt: optional(SrtProviderSchema),
  webrtc: optional(WebrtcProviderSchema),
  rtspPull: optional(
    object(
      'Pulls streams over RTSP',
      { ...noSilence, blockDuplicateStreamName: blockDuplicate },
      { xml: 'RTSPPull', ...noSilenceRules('RtspPull') },
    ),
  ),
  rtsp: optional(pulled(`Accepts streams published over RTSP: ${NO_EFFECT}`, 'Rtsp', 'RTSP', unbuilt('nobody can publish over RTSP'))),
  mpegts: optional(MpegtsProviderSchema),
  file: optional(FileProviderSchema),
  schedule: optional(
    object(
      'Plays scheduled channels',
      {
        ...noSilence,
        mediaRootDir: path('Directory that the `file://` URLs of items start at'),
        scheduleFilesDir: path(
          'Directory of the schedule files (`.sch`); the server creates it if it is missing, and the API writes to it',
        ),
      },
      noSilenceRules('Scheduled'),
    ),
  ),
  multiplex: optional(
    object(
      'Multiplex channels: streams made of tracks of other streams of this server',
      { ...common, packetSilenceTimeoutMs: silence(0), muxFilesDir: path('Directory of the `.mux` files, which define channels') },
      pushRules,
    ),
  ),
});
/** The typed form of `<Providers>`; a provider that is undefined is off. */
export type ProvidersConfig = Static<typeof ProvidersSchema>;

/** The providers of an application; absent means none. */
export const ApplicationProvidersSchema = as(ProvidersSchema, 'Sources of streams; a listed provider is enabled', {
  default: {},
});
