/** Requests and responses of OVT: JSON in UTF-8, laid out as packets. */
import { ProtocolError } from '../../util/protocol-error.ts';
import { OvtPayloadType, PacketWriter } from './packet.ts';
import { UNCOMMON_CODEC_IDS } from './wire-numbers.ts';

/** Commands of clients, and `segment`, which servers send to clients that asked for marks. Case does not matter on the wire. */
export const OvtCommand = { DESCRIBE: 'describe', PLAY: 'play', STOP: 'stop', SEGMENT: 'segment' } as const;

/** Commands of clients. */
const REQUESTS = [OvtCommand.DESCRIBE, OvtCommand.PLAY, OvtCommand.STOP] as const;

/** A request of a client. On the wire `command` is the member `application`. */
export interface OvtRequest {
  /** Counted up from 1 by the client. */
  readonly id: number;
  /** One of `OvtCommand`, or as the client wrote it. */
  readonly command: string;
  /** URL of the stream. */
  readonly target: string;
  /** The `UNCOMMON_CODEC_IDS` that the client supports. Absent: none; the reference ignores the member. */
  readonly codecs?: readonly number[];
  /** The client accepts events: packets of data tracks. Absent: it does not; the reference server's reaction to them is unknown. */
  readonly events?: boolean;
  /** Ids of the servers that request the stream, the first one first and the client last. Absent: unknown. */
  readonly path?: readonly string[];
  /**
   * The client accepts marks: it learns where segments begin, and gets the media since the segment before the present one. Absent: it does
   * not.
   */
  readonly marks?: boolean;
  /** Proof that the client knows the key of the server, sent after the server has asked for it. */
  readonly proof?: string;
}

/** A response of the server, one for each request. */
export interface OvtResponse {
  /** Id of the request; 0 without one. */
  readonly id: number;
  /** In lower case. */
  readonly command: string;
  readonly code: number;
  readonly message: string;
  /** The response to `describe`; undefined in other responses. */
  readonly contents: unknown;
}

/**
 * Codes of responses, which resemble those of HTTP. `NOT_STARTED`: the stream exists, ask again. `UNPROVEN`: used between our servers only.
 */
export const OvtStatus = { OK: 200, NOT_STARTED: 202, UNPROVEN: 401, NOT_FOUND: 404, INTERNAL: 500 } as const;

/** Limits of the servers in a path and of the characters of a server id. */
const MAX_PATH = 32;
const MAX_ID = 64;

/** A request as packets. `now`: wall clock, ms. */
export function serializeRequest({ id, command, target, codecs, events, path, marks, proof }: OvtRequest, now: number): Buffer {
  return serializeMessage(OvtPayloadType.REQUEST, { id, application: command, target, codecs, events, path, marks, proof }, now);
}

/** A response as packets. `now`: wall clock, ms. */
export function serializeResponse({ id, command, code, message, contents }: OvtResponse, now: number): Buffer {
  const json = { id, application: command, code, message, ...(contents !== undefined && { contents }) };
  return serializeMessage(OvtPayloadType.RESPONSE, json, now);
}

/** Throws `OVT_MESSAGE`, which names the member at fault. */
export function parseRequest(payload: Uint8Array): OvtRequest {
  const json = parseJson(payload);
  const { codecs } = json;
  const written = textOf(json, 'application');
  return {
    id: idOf(json),
    command: REQUESTS.find((command) => command === written.toLowerCase()) ?? written,
    target: textOf(json, 'target'),
    ...(Array.isArray(codecs) && { codecs: UNCOMMON_CODEC_IDS.filter((codec) => codecs.includes(codec)) }),
    ...(json['events'] === true && { events: true }),
    ...(json['marks'] === true && { marks: true }),
    ...(typeof json['proof'] === 'string' && json['proof'].length <= MAX_ID && { proof: json['proof'] }),
    ...(json['path'] !== undefined && { path: pathOf(json['path']) }),
  };
}

/** Throws `OVT_MESSAGE`, which names the member at fault. */
export function parseResponse(payload: Uint8Array): OvtResponse {
  const json = parseJson(payload);
  const { code } = json;
  if (typeof code !== 'number') throw new ProtocolError('OVT_MESSAGE', "'code' is no number");
  return {
    id: idOf(json),
    command: textOf(json, 'application').toLowerCase(),
    code,
    message: textOf(json, 'message'),
    contents: json['contents'] ?? undefined,
  };
}

function serializeMessage(type: OvtPayloadType, json: object, now: number): Buffer {
  const payload = Buffer.from(JSON.stringify(json));
  const writer = new PacketWriter(type, 0);
  writer.begin(payload.length, 0, now);
  writer.put(payload);
  return writer.finish();
}

/** Members by name. */
export type JsonMembers = Readonly<Record<string, unknown>>;

/** True for a JSON object; arrays and null are none. */
export function isMembers(value: unknown): value is JsonMembers {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function parseJson(payload: Uint8Array): JsonMembers {
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(payload));
  } catch {
    throw new ProtocolError('OVT_MESSAGE', 'a message is not JSON');
  }
  if (!isMembers(value)) throw new ProtocolError('OVT_MESSAGE', 'a message is not a JSON object');
  return value;
}

/** Ids of servers; invalid ones are left out, and the list is cut at the accepted maximum. */
export function pathOf(value: unknown): readonly string[] {
  if (!Array.isArray(value)) return [];
  return value.slice(0, MAX_PATH).filter((id): id is string => typeof id === 'string' && id.length <= MAX_ID);
}

function idOf({ id }: JsonMembers): number {
  if (typeof id !== 'number' || !Number.isInteger(id) || id < 0) throw new ProtocolError('OVT_MESSAGE', "'id' is no whole number");
  return id;
}

function textOf(json: JsonMembers, key: string): string {
  const value = json[key];
  if (typeof value !== 'string') throw new ProtocolError('OVT_MESSAGE', `'${key}' is no text`);
  return value;
}
