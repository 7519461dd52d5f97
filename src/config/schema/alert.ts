/** Messages to a control server when something is wrong. */
import type { Static } from '@sinclair/typebox';
import { bitrate, integer, object, optional, path, real, text } from './field.ts';

const presence = (description: string, xml?: string) => optional(object(description, {}, xml === undefined ? {} : { xml }));
const pixels = (what: string) => optional(integer(`${what}, pixels`, { minimum: 0 }));
const hertz = (what: string) => optional(integer(`${what}, Hz`, { minimum: 0 }));
const rate = (what: string, alias: string) => optional(real(`${what}, frames/s`, { minimum: 0, aliases: [alias] }));

const IngressSchema = object('Rules for inbound streams', {
  streamStatus: presence('A stream begins or ends'),
  minBitrate: optional(bitrate('Minimum bit rate, bit/s')),
  maxBitrate: optional(bitrate('Maximum bit rate, bit/s')),
  minFramerate: rate('Minimum frame rate', 'minFPS'),
  maxFramerate: rate('Maximum frame rate', 'maxFPS'),
  minWidth: pixels('Minimum width'),
  maxWidth: pixels('Maximum width'),
  minHeight: pixels('Minimum height'),
  maxHeight: pixels('Maximum height'),
  minSamplerate: hertz('Minimum sample rate'),
  maxSamplerate: hertz('Maximum sample rate'),
  longKeyFrameInterval: presence('Keyframes are more than 4 s apart'),
  hasBFrames: presence('The video has B-frames'),
});

const EgressSchema = object('Rules for outbound streams', {
  streamStatus: presence('A stream begins or ends'),
  llhlsReady: presence('LL-HLS can be played', 'LLHLSReady'),
  hlsReady: presence('HLS can be played', 'HLSReady'),
  transcodeStatus: presence('A codec fails'),
});

/** `<Rules>`, inside the configuration or in a file of its own. */
export const AlertRulesSchema = object('Rules for alerts', {
  ingress: optional(IngressSchema),
  egress: optional(EgressSchema),
  internalQueueCongestion: presence('An internal queue is full'),
});
/** The typed form of `<Rules>`. */
export type AlertRulesConfig = Static<typeof AlertRulesSchema>;

/** `<Alert>` of the server. */
export const AlertSchema = object('Alerts: messages to a control server about events and problems', {
  url: text('URL of the control server', { form: 'url' }),
  secretKey: text('Key that signs the requests'),
  timeout: integer('Time limit of a request, ms', { default: 3000, minimum: 1 }),
  rulesFile: optional(
    path(
      'File with the rules, instead of `Rules`. The root element of the file is `Rules`; the server reads the file again when it changes',
    ),
  ),
  rules: optional(AlertRulesSchema),
});
/** The typed form of `<Alert>`; `timeout` in ms. */
export type AlertConfig = Static<typeof AlertSchema>;
