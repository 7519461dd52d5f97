/** Turns AMF data messages of publishers into ID3 tags, by the rules of `Providers/RTMP/EventGenerator`. */
import type { RtmpProviderConfig } from '../../config/schema/providers.ts';
import { buildId3Tag, type Id3Frame, isTextFrameId } from '../../containers/id3/id3-tag.ts';
import type { SourceEvent } from '../../core/ingest.ts';
import { EventFormat, type EventTarget } from '../../media/timed-event.ts';
import { AmfObject, type AmfValue } from '../../wire/rtmp/amf.ts';
import type { RtmpDataEvent } from '../../wire/rtmp/command.ts';

type RuleConfig = NonNullable<RtmpProviderConfig['eventGenerator']>['event'][number];

/** The beginning of every trigger. */
const SUBJECT = 'AMFDataMessage';
/** Macro for the value that fired the rule. */
const VALUE_MACRO = '${TriggerValue}';
/** Longer values are cut, because the tag must fit an event. */
const MAX_VALUE = 16_384;
const TARGETS: Readonly<Record<NonNullable<RuleConfig['hLSID3v2']>['eventType'], EventTarget>> = {
  video: 'video',
  audio: 'audio',
  event: 'all',
  both: 'all',
};

/** Events for a message, in the order of the rules, with the time of the message. */
export function eventsOf(rules: readonly RuleConfig[], message: RtmpDataEvent, seconds: number): SourceEvent[] {
  return rules.flatMap(({ trigger, hLSID3v2: wanted }) => {
    if (wanted === undefined) return [];
    const value = triggerValue(trigger, message);
    const frame = value === null ? null : frameOf(wanted, value.slice(0, MAX_VALUE));
    if (frame === null) return [];
    return [{ format: EventFormat.ID3, target: TARGETS[wanted.eventType], data: buildId3Tag([frame]), at: seconds }];
  });
}

/** The message's value at the path `AMFDataMessage.<name>…<object member>`, as text; null if there is none. */
function triggerValue(trigger: string, { name, args }: RtmpDataEvent): string | null {
  const [subject, ...path] = trigger.split('.');
  if (subject !== SUBJECT || path.length === 0) return null;
  const values = name === '@setDataFrame' ? args : [name, ...args];
  let step = 0;
  for (const value of values) {
    if (typeof value === 'string' && value === path[step]) step += 1;
    else if (value instanceof AmfObject) {
      const found = memberAt(value, path.slice(step));
      if (found !== null) return found;
    }
    if (step === path.length) return String(value);
  }
  return null;
}

function memberAt(object: AmfObject, path: readonly string[]): string | null {
  let value: AmfValue = object;
  if (path.length === 0) return null;
  for (const key of path) {
    if (!(value instanceof AmfObject)) return null;
    value = value.get(key);
  }
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? String(value) : null;
}

/** Null for an unassigned frame type. */
function frameOf(wanted: NonNullable<RuleConfig['hLSID3v2']>, value: string): Id3Frame | null {
  const filled = (text: string): string => text.replaceAll(VALUE_MACRO, () => value);
  const [info, data] = [filled(wanted.info ?? ''), filled(wanted.data)];
  const id = wanted.frameType.toUpperCase();
  if (id === 'TXXX') return { type: id, description: info, text: data };
  if (id === 'PRIV') return { type: id, owner: info, data: Buffer.from(data) };
  return isTextFrameId(id) ? { type: 'text', id, text: data } : null;
}
