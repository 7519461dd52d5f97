/** A client's request to put an event onto a stream. */
import { buildId3Tag, type Id3Frame, isTextFrameId } from '../../containers/id3/id3-tag.ts';
import { buildCue, CUE_TYPES } from '../../containers/markers/cue.ts';
import { buildSpliceInsert } from '../../containers/markers/splice-info.ts';
import { MAX_EVENT_BYTES } from '../../core/event-injector.ts';
import type { SourceEvent } from '../../core/ingest.ts';
import { EventFormat, type EventTarget } from '../../media/timed-event.ts';
import { Type } from '../../util/typebox.ts';
import { ApiError } from '../errors.ts';
import { isJsonObject, memberOf, textIn } from '../json/json-value.ts';
import { refuseMembers } from '../json/member-check.ts';

/** An event, and whether it is sent before waiting events. */
export interface EventWish {
  readonly event: SourceEvent;
  readonly urgent: boolean;
}

const MAX_UINT32 = 2 ** 32 - 1;
const TICKS_PER_MS = 90;
/** Limit of a splice's duration, ms: it has 33 bits of 90 kHz. */
const MAX_SPLICE_DURATION = Math.floor((2 ** 33 - 1) / TICKS_PER_MS);
const TARGETS: Readonly<Record<string, EventTarget>> = { video: 'video', audio: 'audio', event: 'all' };

const ITEM = Type.Object({
  frameType: Type.Optional(Type.String({ description: 'id3v2: TXXX, another text frame, or PRIV' })),
  info: Type.Optional(Type.String({ description: 'id3v2: description of TXXX, owner of PRIV' })),
  data: Type.Optional(Type.String({ description: 'id3v2: the content' })),
  cueType: Type.Optional(Type.String({ description: 'cue: out, cont or in' })),
  elapsed: Type.Optional(Type.Integer({ minimum: 0, description: 'cue of the type cont: elapsed time of the break, ms' })),
  spliceCommand: Type.Optional(Type.String({ description: 'scte35: spliceInsert' })),
  id: Type.Optional(Type.Integer({ minimum: 0, description: 'scte35: splice_event_id' })),
  type: Type.Optional(Type.String({ description: 'scte35: out or in' })),
  duration: Type.Optional(Type.Integer({ minimum: 0, description: 'cue, scte35: duration of the break, ms' })),
  autoReturn: Type.Optional(Type.Boolean({ description: 'scte35: whether the break ends by itself; default: true if it has a duration' })),
});

/** The body of `:sendEvent`, and an item of `:sendEvents`. */
export const EventRequestSchema = Type.Object({
  eventFormat: Type.String({ description: 'id3v2, cue or scte35' }),
  eventType: Type.Optional(Type.String({ description: 'Tracks that carry the event: video, audio, or event for all tracks' })),
  urgent: Type.Optional(Type.Boolean({ description: 'Whether the event precedes waiting events' })),
  events: Type.Array(ITEM, { description: 'Frames of one ID3 tag; of cues and splices only the first is used' }),
});

/** The body of `:concludeHlsLive`. */
export const ConclusionRequestSchema = Type.Object({
  urgent: Type.Optional(Type.Boolean({ description: 'Whether the end precedes waiting events' })),
});

/** Reads one request. Throws `ApiError` if it is incomplete or cannot be carried. */
export function eventWish(body: unknown): EventWish {
  const format = memberOf(body, 'eventFormat');
  const events = memberOf(body, 'events');
  if (typeof format !== 'string' || !Array.isArray(events) || events.length === 0) throw new ApiError('EVENT_INCOMPLETE');
  const target = targetOf(body);
  refuseMembers({ urgent: memberOf(body, 'urgent') ?? null, ...strangersIn(body) }, EventRequestSchema);
  const data = dataOf(format, events as readonly unknown[]);
  if (data.bytes.length > MAX_EVENT_BYTES) throw new ApiError('EVENT_UNMADE');
  return { event: { format: data.format, target, data: data.bytes, at: null }, urgent: memberOf(body, 'urgent') === true };
}

/** Members of `body` without an error text of their own. */
function strangersIn(body: unknown): Record<string, unknown> {
  if (!isJsonObject(body)) return {};
  return Object.fromEntries(Object.entries(body).filter(([name]) => name !== 'eventFormat' && name !== 'events' && name !== 'eventType'));
}

function targetOf(body: unknown): EventTarget {
  const type = memberOf(body, 'eventType');
  if (type === undefined) return 'all';
  if (typeof type !== 'string') throw new ApiError('EVENT_TYPE_WRONG');
  const target = Object.hasOwn(TARGETS, type.toLowerCase()) ? TARGETS[type.toLowerCase()] : undefined;
  if (target === undefined) throw new ApiError('EVENT_TYPE_UNSUPPORTED', type);
  return target;
}

function dataOf(format: string, events: readonly unknown[]): { readonly format: EventFormat; readonly bytes: Uint8Array } {
  const known = format.toLowerCase();
  switch (known) {
    case EventFormat.ID3:
      return { format: known, bytes: buildId3Tag(events.map(frameOf)) };
    case EventFormat.CUE:
      return { format: known, bytes: cueOf(events[0]) };
    case EventFormat.SCTE35:
      return { format: known, bytes: spliceOf(events[0]) };
    default:
      throw new ApiError('EVENT_FORMAT_UNSUPPORTED', format);
  }
}

function frameOf(item: unknown): Id3Frame {
  const frameType = memberOf(item, 'frameType');
  if (typeof frameType !== 'string') throw new ApiError('EVENT_FRAME_MISSING');
  checkItem(item);
  const id = frameType.toUpperCase();
  if (id === 'TXXX') return { type: id, description: textIn(item, 'info'), text: textIn(item, 'data') };
  if (id === 'PRIV') return { type: id, owner: textIn(item, 'info'), data: Buffer.from(textIn(item, 'data')) };
  if (!isTextFrameId(id)) throw new ApiError('EVENT_FRAME_UNSUPPORTED', frameType);
  return { type: 'text', id, text: textIn(item, 'data') };
}

function cueOf(item: unknown): Uint8Array {
  const cueType = memberOf(item, 'cueType');
  if (typeof cueType !== 'string') throw new ApiError('EVENT_CUE_MISSING');
  const type = CUE_TYPES.find((known) => known === cueType.toLowerCase());
  if (type === undefined) throw new ApiError('EVENT_CUE_UNSUPPORTED', cueType);
  checkItem(item);
  return buildCue({ type, duration: uint32(item, 'duration') ?? 0, elapsed: uint32(item, 'elapsed') ?? 0 });
}

/** The section of a splice, whose time is set by the core. */
function spliceOf(item: unknown): Uint8Array {
  const command = memberOf(item, 'spliceCommand') ?? 'spliceInsert';
  if (typeof command !== 'string' || command.toLowerCase() !== 'spliceinsert') throw new ApiError('EVENT_SPLICE_UNSUPPORTED');
  const id = uint32(item, 'id');
  if (id === null) throw new ApiError('EVENT_ID_MISSING');
  const type = memberOf(item, 'type');
  if (typeof type !== 'string') throw new ApiError('EVENT_SPLICE_TYPE_MISSING');
  const direction = type.toLowerCase();
  if (direction !== 'out' && direction !== 'in') throw new ApiError('EVENT_SPLICE_TYPE_WRONG');
  checkItem(item);
  const duration = uint32(item, 'duration', MAX_SPLICE_DURATION) ?? 0;
  const autoReturn = memberOf(item, 'autoReturn') !== false;
  const hasDuration = direction === 'out' && duration > 0;
  return buildSpliceInsert({
    id,
    type: direction,
    time: 0,
    duration: hasDuration ? duration * TICKS_PER_MS : null,
    autoReturn: hasDuration && autoReturn,
  });
}

function checkItem(item: unknown): void {
  refuseMembers(item, ITEM, 'events.');
}

/** Null for an absent member. */
function uint32(item: unknown, name: string, max = MAX_UINT32): number | null {
  const value = memberOf(item, name);
  if (value === undefined || value === null) return null;
  if (typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= max) return value;
  throw new ApiError('MEMBER_INVALID', `events.${name}`, `a whole number from 0 to ${max}`);
}
