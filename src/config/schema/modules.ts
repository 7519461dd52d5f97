/** Parts of the server that can be turned on and off. */
import type { Static } from '@sinclair/typebox';
import { boolean, integer, NO_EFFECT, object, unbuilt } from './field.ts';

const enable = (on: boolean) => boolean('Turns it on', { default: on });
const module = (description: string, on: boolean, xml?: string) =>
  object(description, { enable: enable(on) }, xml === undefined ? { default: {} } : { xml, default: {} });

/** `<Modules>`. Without the element every module has its own default. */
export const ModulesSchema = object(
  'Parts that can be turned on and off',
  {
    http2: module('HTTP/2 on TLS ports', true, 'HTTP2'),
    llhls: module('LL-HLS; off, no application serves it', true, 'LLHLS'),
    p2p: object(
      `Viewers serve each other: ${NO_EFFECT}`,
      { enable: enable(false), maxClientPeersPerHostPeer: integer('Viewers served by one viewer', { default: 2, minimum: 0 }) },
      { xml: 'P2P', default: {}, ...unbuilt('viewers do not serve each other') },
    ),
    recovery: object(
      `Removes streams that cannot keep up: ${NO_EFFECT}`,
      {
        enable: enable(false),
        deleteLazyStreamTimeout: integer('After this long with queues over their limit, ms; 0 means never', { default: 0, minimum: 0 }),
      },
      { default: {}, ...unbuilt('streams that cannot keep up drop frames and stay') },
    ),
    playerPage: module(
      'A browser that opens `http://HOST:3333/APP/STREAM` gets a page that plays the stream, if access control permits it. An extension of Millrace',
      true,
    ),
    dynamicAppRemoval: module('Removes applications made from a template once they have no streams', false),
    etag: object(`ETag headers: ${NO_EFFECT}`, { enable: enable(false) }, { xml: 'ETag', default: {}, ...unbuilt('answers have no ETag') }),
    transcoder: object(
      'Processes that encode',
      {
        jobsPerProcess: integer('Small jobs (streams with audio or image encodes only) that share a process; 1: none share one', {
          default: 8,
          minimum: 1,
          maximum: 64,
        }),
        maxProcesses: integer(
          'Most processes at once, of about 130 MB each, with one ladder or `JobsPerProcess` small jobs; streams beyond that are not encoded. 0 means four for each core, at least eight',
          { default: 0, minimum: 0, maximum: 4096 },
        ),
      },
      { default: {} },
    ),
    ertmp: module(
      'Enhanced RTMP: H.265, AV1, VP9, Opus and several tracks from RTMP encoders; off, only H.264 and what FLV always had',
      true,
      'ERTMP',
    ),
  },
  { default: {} },
);
/** The typed form of `<Modules>`: all members are there. */
export type ModulesConfig = Static<typeof ModulesSchema>;
