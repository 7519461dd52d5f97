/** Command and data messages: an AMF list with a name in front (RTMP 1.0 §7.1.1, §7.1.2). */
import { ProtocolError } from '../../util/protocol-error.ts';
import type { AmfLimits, AmfValue } from './amf.ts';
import { parseAmf0, serializeAmf0 } from './amf0.ts';
import { COMMAND_CHUNK_STREAM, MessageType, type RtmpMessage } from './message.ts';

/** A remote procedure call or its answer. */
export interface RtmpCommand {
  readonly name: string;
  readonly transactionId: number;
  /** The values after the transaction id, the command object (or null) first. */
  readonly args: readonly AmfValue[];
}

/** A data message: `@setDataFrame`, `onMetaData`, `onTextData` … */
export interface RtmpDataEvent {
  readonly name: string;
  readonly args: readonly AmfValue[];
}

/** Throws `ProtocolError` when the message is no well-formed command. */
export function parseCommand(message: RtmpMessage, limits?: AmfLimits): RtmpCommand {
  const [name, transactionId, ...args] = parseValues(message, limits);
  if (typeof name !== 'string') throw new ProtocolError('RTMP_COMMAND', 'a command starts with its name');
  return { name, transactionId: typeof transactionId === 'number' ? transactionId : 0, args };
}

/** Throws `ProtocolError` when the message is no well-formed data message. */
export function parseDataEvent(message: RtmpMessage, limits?: AmfLimits): RtmpDataEvent {
  const [name, ...args] = parseValues(message, limits);
  if (typeof name !== 'string') throw new ProtocolError('RTMP_DATA', 'a data message starts with its name');
  return { name, args };
}

/** A command as AMF0, which peers of either object encoding read. */
export function commandMessage(command: RtmpCommand, streamId: number): RtmpMessage {
  return {
    chunkStreamId: COMMAND_CHUNK_STREAM,
    typeId: MessageType.COMMAND_AMF0,
    streamId,
    timestamp: 0,
    payload: serializeAmf0([command.name, command.transactionId, ...command.args]),
  };
}

/** A data message as AMF0. */
export function dataMessage(event: RtmpDataEvent, at: { streamId: number; chunkStreamId: number; timestamp: number }): RtmpMessage {
  return { ...at, typeId: MessageType.DATA_AMF0, payload: serializeAmf0([event.name, ...event.args]) };
}

function parseValues(message: RtmpMessage, limits: AmfLimits | undefined): AmfValue[] {
  const { typeId, payload } = message;
  // Messages of the AMF3 types carry a format selector, always 0, and then AMF0 with switches to AMF3.
  const selector = (typeId === MessageType.COMMAND_AMF3 || typeId === MessageType.DATA_AMF3) && payload[0] === 0 ? 1 : 0;
  return parseAmf0(payload, limits === undefined ? { offset: selector } : { offset: selector, limits });
}
