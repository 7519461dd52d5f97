/** An application: a name under which streams live, and what happens to them. */
import type { Static } from '@sinclair/typebox';
import { boolean, choice, integer, list, name, object, optional, path, text } from './field.ts';
import { OutputProfilesSchema } from './output-profile.ts';
import { ApplicationProvidersSchema } from './providers.ts';
import { PublishersSchema } from './publishers.ts';

const TranscodeWebhookSchema = object('Asks a control server for the output profiles of every new stream', {
  enable: boolean('Turns it on'),
  controlServerUrl: text('URL of the control server'),
  secretKey: text('Key that signs the requests'),
  timeout: integer('Gives up after this long, ms', { default: 1500, minimum: 1 }),
  useLocalProfilesOnConnectionFailure: boolean('Uses the profiles configured here when the server cannot be reached', { default: true }),
  useLocalProfilesOnServerDisallow: boolean('Uses the profiles configured here when the server refuses', { default: false }),
  useLocalProfilesOnErrorResponse: boolean('Uses the profiles configured here when the server answers with an error', { default: false }),
});
export type TranscodeWebhookConfig = Static<typeof TranscodeWebhookSchema>;

const EventGeneratorSchema = object('Sends events by a file of rules', {
  enable: boolean('Turns it on', { default: false }),
  path: optional(path('The rules file')),
});

export const ApplicationSchema = object('An application', {
  name: name('Name of the application, the first part of stream URLs; unique in its virtual host'),
  type: choice('`live`; `vod` is accepted and treated alike', ['live', 'vod'], { refusal: (value) => `Unknown type: ${value}` }),
  outputProfiles: OutputProfilesSchema,
  providers: ApplicationProvidersSchema,
  publishers: PublishersSchema,
  decodes: optional(
    object(
      'Former decoder settings',
      {
        video: optional(
          object('Video', {
            hardwareAcceleration: boolean('Uses hardware where there is any', { default: false }),
            h264hasBframes: integer('Reordering depth of H.264', { default: 16 }),
          }),
        ),
      },
      { deprecated: 'outputProfiles.decodes and outputProfiles.hwaccels' },
    ),
  ),
  persistentStreams: optional(
    object(
      'Streams that stay up when their source goes away',
      {
        stream: list(
          'Streams',
          object('One stream', {
            name: text('Name of the stream'),
            originStreamName: text('Source streams', { default: '*' }),
            fallbackStreamName: optional(text('Stream to show meanwhile')),
          }),
          { default: [] },
        ),
      },
      { deprecated: 'multiplex channels' },
    ),
  ),
  transcodeWebhook: optional(TranscodeWebhookSchema),
  eventGenerator: optional(EventGeneratorSchema),
});
export type ApplicationConfig = Static<typeof ApplicationSchema>;
