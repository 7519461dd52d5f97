/** Parts of the server that can be turned on and off. */
import type { Static } from '@sinclair/typebox';
import { boolean, integer, NO_EFFECT, object, unbuilt } from './field.ts';

const enable = (on: boolean) => boolean('Turns it on', { default: on });
const module = (description: string, on: boolean, xml?: string) =>
  object(description, { enable: enable(on) }, xml === undefined ? { default: {} } : { xml, default: {} });

/** `<Modules>`. Without the element every module has its own default. */
export const ModulesSchema = object(
  'Parts of the server that can be turned on and off',
  {
    http2: module('HTTP/2 on TLS ports', true, 'HTTP2'),
    llhls: module('LL-HLS. If it is off, no application serves LL-HLS', true, 'LLHLS'),
    p2p: object(
      `Viewers serve each other: ${NO_EFFECT}`,
      { enable: enable(false), maxClientPeersPerHostPeer: integer('Viewers served by one viewer', { default: 2, minimum: 0 }) },
      { xml: 'P2P', default: {}, ...unbuilt('viewers do not serve each other') },
    ),
    recovery: object(
      `Removes streams that cannot keep up: ${NO_EFFECT}`,
      {
        enable: enable(false),
        deleteLazyStreamTimeout: integer('Time with queues over their limit after which a stream is removed, ms; 0: never', {
          default: 0,
          minimum: 0,
        }),
      },
      { default: {}, ...unbuilt('streams that cannot keep up drop frames and stay') },
    ),
    playerPage: module(
      'Player page at `http://HOST:3333/APP/STREAM`: browsers get a page that plays the stream, if access control permits it. An extension of Millrace',
      true,
    ),
    dynamicAppRemoval: module('Removes an application that was made from a template when it has no streams any longer', false),
    etag: object(`ETag headers: ${NO_EFFECT}`, { enable: enable(false) }, { xml: 'ETag', default: {}, ...unbuilt('answers have no ETag') }),
    transcoder: object(
      'Transcoder processes',
      {
        jobsPerProcess: integer(
          'Number of small jobs (streams with only audio or image encodes) that share a process; 1: each job has its own process',
          {
            default: 8,
            minimum: 1,
            maximum: 64,
          },
        ),
        maxProcesses: integer(
          'Maximum number of processes. Each process takes about 130 MB and has one ladder or up to `JobsPerProcess` small jobs; further streams are not encoded. 0: four for each core, at least eight',
          { default: 0, minimum: 0, maximum: 4096 },
        ),
      },
      { default: {} },
    ),
    ertmp: module(
      'Enhanced RTMP: H.265, AV1, VP9, Opus and several tracks from RTMP encoders. If it is off, RTMP takes only original FLV: H.264, AAC, MP3, and H.265 with codec id 12',
      true,
      'ERTMP',
    ),
  },
  { default: {} },
);
/** The typed form of `<Modules>`: all members are there. */
export type ModulesConfig = Static<typeof ModulesSchema>;
