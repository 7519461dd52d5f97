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
  maxConnection: integer('Most streams of it in the application at a time; 0 means no limit', { default: 0 }),
  timestampMode: optional(
    choice(
      '`ZeroBased` starts every stream at 0, `Original` keeps the timestamps of the source; absent lets the provider choose',
      ['ZeroBased', 'Original'],
      { refusal: (value) => `Invalid TimestampMode value: ${value} (expected: ZeroBased, Original)` },
    ),
  ),
  useIncomingTimestamp: optional(boolean('Keeps the timestamps of the source', { deprecated: 'timestampMode' })),
};

const silence = (milliseconds: number) =>
  integer('Ends the stream after this long without audio and video, ms; 0 waits forever', { default: milliseconds, minimum: 0 });

/** Encoders that are cut off return and need their name. */
const ENCODER_SILENCE_MS = 10_000;
/** Browsers send nothing while a page has both tracks muted; so long may their ICE be silent, too. */
const BROWSER_SILENCE_MS = 30_000;
const pushed = { ...common, packetSilenceTimeoutMs: silence(ENCODER_SILENCE_MS) };
const pushRules = { finish: finishing<Common>(commonRules) };

const noSilence = { ...common, packetSilenceTimeoutMs: optional(integer('Not available for this provider')) };

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

const blockDuplicate = boolean('A second publisher of a name is refused; false throws the first one out', { default: true });
const passthroughProfile = boolean('Adds an output stream that passes the input on untouched', { default: false });

/** `<RTMP>` in `<Providers>`; its ports are in `<Bind>`. */
const RtmpProviderSchema = object(
  'Takes streams published over RTMP',
  {
    ...pushed,
    blockDuplicateStreamName: blockDuplicate,
    passthroughOutputProfile: passthroughProfile,
    eventGenerator: optional(
      object('Turns AMF data messages into ID3 events', {
        event: list(
          'Rules, tried in order',
          object('One rule', {
            trigger: text('`AMFDataMessage.<name of the message>.<member>`, further members behind further dots: what fires the rule'),
            hLSID3v2: optional(
              object(
                'The ID3v2 event to make',
                {
                  eventType: choice('Tracks that carry the event; `event` and `both` are all of them', ['video', 'audio', 'event', 'both']),
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
  'Takes streams published over SRT',
  { ...pushed, blockDuplicateStreamName: blockDuplicate, audioMap: optional(AudioMapSchema) },
  { xml: 'SRT', ...pushRules },
);
/** The typed form of `<SRT>` in `<Providers>`; timeouts in ms. */
export type SrtProviderConfig = Static<typeof SrtProviderSchema>;

/** `<WebRTC>` in `<Providers>`: WHIP, and the reference server's WebSocket protocol with `direction=send`. */
const WebrtcProviderSchema = object(
  'Takes streams published over WebRTC (WHIP)',
  {
    ...common,
    packetSilenceTimeoutMs: silence(BROWSER_SILENCE_MS),
    blockDuplicateStreamName: blockDuplicate,
    timeout: integer('Gives up a connection whose ICE is silent for this long, ms', { default: 30_000, minimum: 0 }),
    fIRInterval: integer('Asks the encoder for a keyframe when none came for this long, ms; 0 leaves it to the encoder', {
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
  'Takes MPEG-TS over UDP',
  {
    ...common,
    packetSilenceTimeoutMs: silence(1500),
    streams: list(
      'Which port feeds which stream',
      object(
        'Streams of some ports',
        {
          name: text('Stream name; `${Port}` stands for the port', { default: 'stream', form: 'stream-name' }),
          port: ports('Ports that feed it', { protocols: ['udp', 'tcp'], default: '4000/udp' }),
          program: optional(
            integer('Number of the program to take of several; absent: the first. An extension of Millrace', {
              minimum: 1,
              maximum: 65_535,
            }),
          ),
          source: optional(
            list(
              'Senders that are accepted, as `192.0.2.10` or `192.0.2.0/24`; default: everybody. An extension of Millrace',
              text('Address'),
            ),
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
    rootPath: optional(path('Directory the paths start at')),
    streamMap: optional(
      object('Which file feeds which stream', {
        stream: list('Entries', object('One entry', { name: name('Stream name'), path: text('File, below the root path') }), {
          default: [],
        }),
      }),
    ),
    passthroughOutputProfile: passthroughProfile,
  },
  { xml: 'FILE', ...noSilenceRules('File') },
);
/** The typed form of `<FILE>` in `<Providers>`. Without `rootPath` only `Server/Storage/AllowedRoots` limits the files. */
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
  rtsp: optional(pulled(`Takes streams published over RTSP: ${NO_EFFECT}`, 'Rtsp', 'RTSP', unbuilt('nobody can publish over RTSP'))),
  mpegts: optional(MpegtsProviderSchema),
  file: optional(FileProviderSchema),
  schedule: optional(
    object(
      'Plays scheduled channels',
      {
        ...noSilence,
        mediaRootDir: path('Directory that the `file://` URLs of items start at'),
        scheduleFilesDir: path('Directory of the schedule files (`.sch`); the server creates a missing one, and the API writes there'),
      },
      noSilenceRules('Scheduled'),
    ),
  ),
  multiplex: optional(
    object(
      'Makes streams of tracks of other streams of this server: multiplex channels',
      { ...common, packetSilenceTimeoutMs: silence(0), muxFilesDir: path('Directory of the .mux files, which define channels') },
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
