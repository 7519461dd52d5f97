/** An application: a name under which streams live, and what happens to them. */
import type { Static } from '@sinclair/typebox';
import { checkKeyLists, PlayTokensSchema, PublishKeysSchema } from './access-keys.ts';
import { boolean, choice, finishing, integer, list, name, needless, object, optional, path, text, unbuilt } from './field.ts';
import { OutputProfilesSchema } from './output-profile.ts';
import { ApplicationProvidersSchema } from './providers.ts';
import { PublishersSchema } from './publishers.ts';

const TranscodeWebhookSchema = object(
  'Asks a control server for the output profiles of every new stream',
  {
    enable: boolean('Turns it on'),
    controlServerUrl: text('URL of the control server', { form: 'url' }),
    secretKey: text('Key that signs the requests'),
    timeout: integer('Time limit of a request, ms', { default: 1500, minimum: 1 }),
    useLocalProfilesOnConnectionFailure: boolean('Uses the configured output profiles if the control server cannot be reached', {
      default: true,
    }),
    useLocalProfilesOnServerDisallow: boolean('Uses the configured output profiles if the control server refuses', { default: false }),
    useLocalProfilesOnErrorResponse: boolean('Uses the configured output profiles if the control server answers with an error', {
      default: false,
    }),
  },
  {
    finish: finishing<{ readonly controlServerUrl: string }>(({ controlServerUrl }, fail) => {
      if (/^https?:\/\//i.test(controlServerUrl) && URL.canParse(controlServerUrl)) return;
      fail(`TranscodeWebhook.ControlServerUrl must be an http or https URL, but got '${controlServerUrl}'`, 'controlServerUrl');
    }),
  },
);
/** The typed form of `<TranscodeWebhook>`; `timeout` in ms. */
export type TranscodeWebhookConfig = Static<typeof TranscodeWebhookSchema>;

const LIVE_URL = /^stream:\/\/[^/]+\/[^/]+\/[^/]+$/;

interface StandInFinish {
  readonly url: string;
  readonly mediaRootDir?: string;
}

const StandInSchema = object(
  'Stand-in that plays on a stream while its encoder is away or silent',
  {
    url: text('`file://` and a path below `mediaRootDir`, played in a loop; or `stream://VHOST/APP/STREAM`, a stream of this server'),
    mediaRootDir: optional(path('Directory that `file://` URLs start at')),
    streamName: text('Names of its streams; `*`: any text, `?`: zero or one character. The first entry with a matching pattern is used', {
      default: '*',
    }),
    afterMs: integer('Silence of a connected encoder after which the stand-in plays, ms; 0: it plays only when the encoder has left', {
      default: 500,
      minimum: 0,
      maximum: 3_600_000,
    }),
    keepMs: integer('Time without an encoder after which the stream ends, ms; 0: never', {
      default: 0,
      minimum: 0,
      maximum: 604_800_000,
    }),
  },
  {
    finish: finishing<StandInFinish>(({ url, mediaRootDir = '' }, fail) => {
      if (url.startsWith('file://')) {
        if (mediaRootDir === '') fail(`SourceLoss.StandIn.MediaRootDir is missing: '${url}' starts at it`, 'mediaRootDir');
        if (/^file:\/\/\/?$/.test(url) || url.split('/').includes('..'))
          fail(`SourceLoss.StandIn.Url must name a file below MediaRootDir, but got '${url}'`, 'url');
        return;
      }
      if (LIVE_URL.test(url)) return;
      fail(`SourceLoss.StandIn.Url must be file://PATH or stream://VHOST/APP/STREAM, but got '${url}'`, 'url');
    }),
  },
);
/** The typed form of `<StandIn>`; times in ms. */
export type StandInConfig = Static<typeof StandInSchema>;

/** `<SourceLoss>`, an extension of Millrace. */
const SourceLossSchema = object('Behaviour of a stream when its encoder leaves or another encoder connects', {
  keepStreamMs: integer(
    'Time for which a published stream stays without a source, ms; the next source continues the stream. 0: the stream ends at once',
    {
      default: 0,
      minimum: 0,
      maximum: 86_400_000,
    },
  ),
  takeOver: optional(
    choice(
      'A second encoder for a name in use: `block` refuses it, `replace` gives it the stream, `afterSilence` gives it the stream once the ' +
        'first encoder is silent. Absent: `BlockDuplicateStreamName` of the provider decides',
      ['block', 'replace', 'afterSilence'],
    ),
  ),
  takeOverSilenceMs: integer('Silence of the first encoder before `afterSilence` replaces it, ms', { default: 2000, minimum: 0 }),
  standIn: list('Stand-ins that play while the encoder is away or silent', StandInSchema, { default: [] }),
});

const EventGeneratorSchema = object('Sends events according to a file of rules', {
  enable: boolean('Turns it on', { default: false }),
  path: optional(path('File of rules; see docs/guide/events.md')),
});

/** `<Application>`, also the body of the API's application routes. Only the name has to be given. */
export const ApplicationSchema = object(
  'An application',
  {
    name: name('Name of the application, the first part of stream URLs; unique in its virtual host'),
    type: choice('`live` or `vod`; both mean the same', ['live', 'vod'], { refusal: (value) => `Unknown type: ${value}` }),
    outputProfiles: OutputProfilesSchema,
    providers: ApplicationProvidersSchema,
    publishers: PublishersSchema,
    decodes: optional(
      object(
        'Old decoder settings',
        {
          video: optional(
            object('Video', {
              hardwareAcceleration: boolean('Uses hardware if available', { default: false }),
              h264hasBframes: integer('Reordering depth of H.264. It has no effect: the stream has the depth itself', { default: 16 }),
            }),
          ),
        },
        {
          deprecated: 'outputProfiles.decodes and outputProfiles.hwaccels',
          ...needless('OutputProfiles/Decodes and OutputProfiles/HWAccels are used'),
        },
      ),
    ),
    persistentStreams: optional(
      object(
        'Streams that continue without their source. Not built yet',
        {
          stream: list(
            'Streams',
            object('One stream', {
              name: text('Name of the stream'),
              originStreamName: text('Source streams', { default: '*' }),
              fallbackStreamName: optional(text('Stream that is shown instead')),
            }),
            { default: [] },
          ),
        },
        {
          deprecated: 'sourceLoss',
          ...unbuilt('no stream of that name is made; SourceLoss/StandIn keeps a stream on air under its own name'),
        },
      ),
    ),
    sourceLoss: optional(SourceLossSchema),
    transcodeWebhook: optional(TranscodeWebhookSchema),
    eventGenerator: optional(EventGeneratorSchema),
    publishKeys: optional(PublishKeysSchema),
    playTokens: optional(PlayTokensSchema),
  },
  { finish: checkKeyLists },
);
/** The typed form of `<Application>`, with defaults filled in. */
export type ApplicationConfig = Static<typeof ApplicationSchema>;
