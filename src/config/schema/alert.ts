/** Messages to a control server when something is wrong. */
import type { Static } from '@sinclair/typebox';
import { bitrate, integer, object, optional, path, real, text } from './field.ts';

const presence = (description: string, xml?: string) => optional(object(description, {}, xml === undefined ? {} : { xml }));
const pixels = (what: string) => optional(integer(`${what}, pixels`, { minimum: 0 }));
const hertz = (what: string) => optional(integer(`${what}, Hz`, { minimum: 0 }));
const rate = (what: string, alias: string) => optional(real(`${what}, per second`, { minimum: 0, aliases: [alias] }));

const IngressSchema = object('Rules for streams coming in', {
  streamStatus: presence('A stream begins or ends'),
  minBitrate: optional(bitrate('Least bit rate, bit/s')),
  maxBitrate: optional(bitrate('Most bit rate, bit/s')),
  minFramerate: rate('Least frames', 'minFPS'),
  maxFramerate: rate('Most frames', 'maxFPS'),
  minWidth: pixels('Least width'),
  maxWidth: pixels('Most width'),
  minHeight: pixels('Least height'),
  maxHeight: pixels('Most height'),
  minSamplerate: hertz('Least sample rate'),
  maxSamplerate: hertz('Most sample rate'),
  longKeyFrameInterval: presence('Keyframes are more than 4 s apart'),
  hasBFrames: presence('The video has B-frames'),
});

const EgressSchema = object('Rules for streams going out', {
  streamStatus: presence('A stream begins or ends'),
  llhlsReady: presence('LL-HLS can be played', 'LLHLSReady'),
  hlsReady: presence('HLS can be played', 'HLSReady'),
  transcodeStatus: presence('A codec fails'),
});

/** `<Rules>`, inside the configuration or in a file of its own. */
export const AlertRulesSchema = object('Rules for alerts', {
  ingress: optional(IngressSchema),
  egress: optional(EgressSchema),
  internalQueueCongestion: presence('A queue is full'),
});
/** The typed form of `<Rules>`. */
export type AlertRulesConfig = Static<typeof AlertRulesSchema>;

/** `<Alert>` of the server. */
export const AlertSchema = object('Messages to a control server when something happens or is wrong', {
  url: text('URL of the control server', { form: 'url' }),
  secretKey: text('Key that signs the requests'),
  timeout: integer('Gives up after this long, ms', { default: 3000, minimum: 1 }),
  rulesFile: optional(path('File with the rules, instead of `Rules`: its root element is `Rules`, and the server follows its changes')),
  rules: optional(AlertRulesSchema),
});
/** The typed form of `<Alert>`; `timeout` in ms. */
export type AlertConfig = Static<typeof AlertSchema>;
