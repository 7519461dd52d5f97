/** The file of rules of an application's event generator. */
import { ConfigError } from '../../config/index.ts';
import type { XmlElement } from '../../config/xml.ts';
import { EventFormat, type EventTarget } from '../../media/timed-event.ts';
import { AmfObject } from '../../wire/rtmp/amf.ts';
import { serializeAmf0 } from '../../wire/rtmp/amf0.ts';

/** One enabled rule. */
export interface EventRule {
  /** Inbound streams that get its events; takes `*` and `?`. */
  readonly streamName: string;
  /** Between two events, ms. */
  readonly interval: number;
  readonly format: typeof EventFormat.SEI | typeof EventFormat.AMF;
  readonly target: EventTarget;
  readonly urgent: boolean;
  readonly keyframeOnly: boolean;
  /** The bytes of an event that is made at `now`, ms since the epoch. */
  make(now: number): Uint8Array;
}

const ROOT = 'EventInfo';
/** A stream takes 50 events a second. */
const MIN_INTERVAL = 20;
const MAX_INTERVAL = 2 ** 31 - 1;
const MAX_RULES = 64;
const MAX_TEXT = 16_384;
const TARGETS: Readonly<Record<string, EventTarget>> = { video: 'video', audio: 'audio', event: 'all' };
/** UUID by which players such as OvenPlayer recognise the messages. */
const SEI_UUID = Buffer.from('464d4c475241494e434f4c4f55524201', 'hex');
const TIME_MACRO = '${EpochTime}';

/** The rules that are enabled. Throws `ConfigError` with the line and the element at fault. */
export function parseEventRules(root: XmlElement): EventRule[] {
  if (root.name !== ROOT) throw faultOf(root, `the root element must be ${ROOT}, but is ${root.name}`);
  const rules = root.children.filter((element) => element.name === 'Event' && isTrue(element, 'Enable')).map(ruleOf);
  if (rules.length > MAX_RULES) throw faultOf(root, `${ROOT} has ${rules.length} events, at most ${MAX_RULES} can be enabled`);
  return rules;
}

function ruleOf(event: XmlElement): EventRule {
  const streamName = textOf(event, 'SourceStreamName');
  if (streamName === '') throw faultIn(event, 'SourceStreamName', 'is missing');
  const intervalText = textOf(event, 'Interval');
  const interval = Number(intervalText);
  if (!/^\d+$/.test(intervalText) || interval < MIN_INTERVAL || interval > MAX_INTERVAL) {
    throw faultIn(event, 'Interval', `must be a number of milliseconds from ${MIN_INTERVAL} on, but is ${JSON.stringify(intervalText)}`);
  }
  const typeText = textOf(event, 'EventType');
  const target = TARGETS[typeText.toLowerCase() || 'event'];
  if (target === undefined) throw faultIn(event, 'EventType', `must be video, audio or event, but is ${JSON.stringify(typeText)}`);
  const values = childOf(event, 'Values');
  if (values === undefined) throw faultIn(event, 'Values', 'is missing');
  const format = textOf(event, 'EventFormat').toLowerCase();
  if (format !== EventFormat.SEI && format !== EventFormat.AMF) {
    throw faultIn(event, 'EventFormat', `must be sei or amf, but is ${JSON.stringify(textOf(event, 'EventFormat'))}`);
  }
  const make = format === EventFormat.SEI ? seiMaker(values) : amfMaker(values);
  return { streamName, interval, format, target, urgent: isTrue(event, 'Urgent'), keyframeOnly: isTrue(values, 'KeyframeOnly'), make };
}

/** A UUID, the time in eight bytes, and the data. */
function seiMaker(values: XmlElement): EventRule['make'] {
  const type = textOf(values, 'SeiType');
  if (type !== '' && type.toLowerCase() !== 'userdataunregistered') {
    throw faultIn(values, 'SeiType', `must be UserDataUnregistered, but is ${JSON.stringify(type)}`);
  }
  const data = limited(values, 'Data', textOf(values, 'Data'));
  return (now) => {
    const time = Buffer.alloc(8);
    time.writeBigUInt64BE(BigInt(Math.round(now)));
    return Buffer.concat([SEI_UUID, time, Buffer.from(withTime(data, now))]);
  };
}

/** The first element is the name of the message, those inside it are the members of its object. */
function amfMaker(values: XmlElement): EventRule['make'] {
  const message = values.children.find(({ name }) => name !== 'KeyframeOnly');
  if (message === undefined) throw faultIn(values, 'onTextData', 'is missing: the message to send, with its members inside');
  const fill = objectMaker(message);
  return (now) => serializeAmf0([message.name, fill(now)]);
}

function objectMaker(element: XmlElement): (now: number) => AmfObject {
  const members = element.children.map((child): [string, (now: number) => string | AmfObject] => {
    if (child.children.length > 0) return [child.name, objectMaker(child)];
    const text = limited(element, child.name, child.text);
    return [child.name, (now) => withTime(text, now)];
  });
  return (now) => new AmfObject(members.map(([name, make]) => [name, make(now)]));
}

function withTime(text: string, now: number): string {
  return text.replaceAll(TIME_MACRO, String(Math.round(now)));
}

function limited(parent: XmlElement, name: string, text: string): string {
  if (text.length > MAX_TEXT) throw faultIn(parent, name, `has ${text.length} characters, at most ${MAX_TEXT} can be sent`);
  return text;
}

function childOf({ children }: XmlElement, name: string): XmlElement | undefined {
  return children.find((child) => child.name === name);
}

function textOf(element: XmlElement, name: string): string {
  return (childOf(element, name)?.text ?? '').trim();
}

function isTrue(element: XmlElement, name: string): boolean {
  return textOf(element, name).toLowerCase() === 'true';
}

/** At the child where it is there, else where it should be. */
function faultIn(element: XmlElement, name: string, what: string): ConfigError {
  return faultOf(childOf(element, name) ?? element, `${element.name}/${name} ${what}`);
}

function faultOf({ file, line, name }: XmlElement, message: string): ConfigError {
  return new ConfigError(`${file}:${line}: ${message}`, { path: name, file, line });
}
