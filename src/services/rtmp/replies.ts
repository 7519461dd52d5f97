/** Answers of the server, with the texts that encoders know. */
import { AUDIO_FOURCCS, VIDEO_FOURCCS } from '../../containers/flv/fourcc.ts';
import { AmfObject, type AmfValue } from '../../wire/rtmp/amf.ts';
import { commandMessage } from '../../wire/rtmp/command.ts';
import type { RtmpMessage } from '../../wire/rtmp/message.ts';

/** Codes of refusals that clients know. */
export type RefusalStatus =
  | 'NetConnection.Connect.InvalidApp'
  | 'NetConnection.Connect.Rejected'
  | 'NetStream.Publish.BadName'
  | 'NetStream.Publish.Rejected'
  | 'NetStream.Play.Failed';

/** The one message stream a connection can create. */
export const MESSAGE_STREAM_ID = 1;

const SERVER_VERSION = '3,5,2,654';
const CAPABILITIES = 31;
/** Enhanced RTMP: multitrack is accepted, the ModEx chain is parsed. */
const CAPS_EX = 0x02 | 0x04;
const CAN_FORWARD = 0x04;

/** `_result` of `connect`. `enhanced`: names the parts of Enhanced RTMP that the client may send. */
export function connectResult(options: {
  transactionId: number;
  clientId: number;
  objectEncoding: number;
  enhanced: boolean;
}): RtmpMessage {
  const properties: Record<string, AmfValue> = { fmsVer: `FMS/${SERVER_VERSION}`, capabilities: CAPABILITIES, mode: 1 };
  if (options.enhanced) {
    properties['fourCcList'] = [...VIDEO_FOURCCS, ...AUDIO_FOURCCS];
    properties['videoFourCcInfoMap'] = infoMap(VIDEO_FOURCCS);
    properties['audioFourCcInfoMap'] = infoMap(AUDIO_FOURCCS);
    properties['capsEx'] = CAPS_EX;
  }
  const information = AmfObject.of({
    level: 'status',
    code: 'NetConnection.Connect.Success',
    description: 'Connection succeeded.',
    clientid: options.clientId,
    objectEncoding: options.objectEncoding,
    data: new AmfObject([['version', SERVER_VERSION]], 'ecma-array'),
  });
  return commandMessage({ name: '_result', transactionId: options.transactionId, args: [AmfObject.of(properties), information] }, 0);
}

/** `_result` of `createStream`. */
export function createStreamResult(transactionId: number): RtmpMessage {
  return commandMessage({ name: '_result', transactionId, args: [null, MESSAGE_STREAM_ID] }, 0);
}

/** `onFCPublish`, the answer to `FCPublish`. */
export function fcPublishStatus(clientId: number): RtmpMessage {
  const information = status({ level: 'status', code: 'NetStream.Publish.Start', description: 'FCPublish', clientId });
  return commandMessage({ name: 'onFCPublish', transactionId: 0, args: [null, information] }, 0);
}

/** `onStatus` that lets the publisher send. */
export function publishStarted(clientId: number): RtmpMessage {
  return onStatus(status({ level: 'status', code: 'NetStream.Publish.Start', description: 'Publishing', clientId }));
}

/** `onStatus` for a refused peer, before its connection is closed: ffmpeg and OBS show its description. */
export function refused(code: RefusalStatus, description: string): RtmpMessage {
  return onStatus(AmfObject.of({ level: 'error', code, description }));
}

/** `_error`, the answer to a refused `connect`. */
export function connectRefused(
  transactionId: number,
  description: string,
  code: RefusalStatus = 'NetConnection.Connect.InvalidApp',
): RtmpMessage {
  const information = AmfObject.of({ level: 'error', code, description });
  return commandMessage({ name: '_error', transactionId, args: [null, information] }, 0);
}

function onStatus(information: AmfObject): RtmpMessage {
  return commandMessage({ name: 'onStatus', transactionId: 0, args: [null, information] }, MESSAGE_STREAM_ID);
}

function status(fields: { level: string; code: string; description: string; clientId: number }): AmfObject {
  const { level, code, description, clientId } = fields;
  return AmfObject.of({ level, code, description, clientid: clientId });
}

function infoMap(fourCcs: readonly string[]): AmfObject {
  return new AmfObject(fourCcs.map((fourCc) => [fourCc, CAN_FORWARD] as const));
}
