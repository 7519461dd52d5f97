import { describe, expect, it } from 'vitest';
import { ConfigError } from '../../config/index.ts';
import { parseXml } from '../../config/xml.ts';
import { AmfObject } from '../../wire/rtmp/amf.ts';
import { parseAmf0 } from '../../wire/rtmp/amf0.ts';
import { parseEventRules } from './event-rules.ts';

const parsed = (xml: string, file: string) => parseEventRules(parseXml(xml, file));

const NOW = Date.UTC(2026, 0, 1);

function event(values: string, members = '<Interval>1000</Interval><EventFormat>sei</EventFormat>'): string {
  return `<EventInfo>\n<Event>\n<Enable>true</Enable><SourceStreamName>live*</SourceStreamName>${members}\n<Values>${values}</Values>\n</Event>\n</EventInfo>`;
}

describe('parseEventRules', () => {
  it('makes SEI that players know, with the time in it', () => {
    const [rule] = parsed(
      event(
        '<SeiType>UserDataUnregistered</SeiType><Data>at ${EpochTime}</Data><KeyframeOnly>true</KeyframeOnly>',
        '<Interval>500</Interval><EventFormat>SEI</EventFormat><EventType>video</EventType><Urgent>true</Urgent>',
      ),
      'e.xml',
    );
    expect(rule).toMatchObject({ streamName: 'live*', interval: 500, format: 'sei', target: 'video', urgent: true, keyframeOnly: true });
    const bytes = Buffer.from(rule?.make(NOW) ?? []);
    expect(bytes.subarray(0, 16).toString('hex')).toBe('464d4c475241494e434f4c4f55524201');
    expect(Number(bytes.readBigUInt64BE(16))).toBe(NOW);
    expect(bytes.subarray(24).toString()).toBe(`at ${NOW}`);
  });

  it('makes AMF messages of any name, with objects inside', () => {
    const [rule] = parsed(
      event(
        '<onUserDataEvent><time>${EpochTime}</time><who><name>me</name></who></onUserDataEvent>',
        '<Interval>20</Interval><EventFormat>amf</EventFormat>',
      ),
      'e.xml',
    );
    expect(rule).toMatchObject({ format: 'amf', target: 'all', urgent: false, keyframeOnly: false });
    const [name, object] = parseAmf0(rule?.make(NOW) ?? new Uint8Array(0));
    expect([name, object]).toEqual(['onUserDataEvent', AmfObject.of({ time: String(NOW), who: AmfObject.of({ name: 'me' }) })]);
  });

  it('skips events that are not enabled', () => {
    expect(parsed('<EventInfo><Event><Enable>false</Enable></Event><Event/></EventInfo>', 'e.xml')).toEqual([]);
  });

  it.each([
    ['<Events/>', 'e.xml:1: the root element must be EventInfo, but is Events'],
    ['<EventInfo>\n<Event><Enable>true</Enable></Event></EventInfo>', 'e.xml:2: Event/SourceStreamName is missing'],
    [event('', '<EventFormat>sei</EventFormat>'), 'e.xml:2: Event/Interval must be a number of milliseconds from 20 on, but is ""'],
    [event('', '\n<Interval>19</Interval>'), 'e.xml:4: Event/Interval must be a number of milliseconds from 20 on, but is "19"'],
    [
      event('', '<Interval>20</Interval><EventType>both</EventType>'),
      'e.xml:3: Event/EventType must be video, audio or event, but is "both"',
    ],
    [event('', '<Interval>20</Interval><EventFormat>id3v2</EventFormat>'), 'e.xml:3: Event/EventFormat must be sei or amf, but is "id3v2"'],
    [event('\n<SeiType>PicTiming</SeiType>'), 'e.xml:5: Values/SeiType must be UserDataUnregistered, but is "PicTiming"'],
    [
      event('', '<Interval>20</Interval><EventFormat>amf</EventFormat>'),
      'e.xml:4: Values/onTextData is missing: the message to send, with its members inside',
    ],
    [event(`<Data>${'x'.repeat(20_000)}</Data>`), 'e.xml:4: Values/Data has 20000 characters, at most 16384 can be sent'],
    [event('').replace(/<Values>.*<\/Values>/s, ''), 'e.xml:2: Event/Values is missing'],
    [
      `<EventInfo>${event('')
        .replaceAll(/<\/?EventInfo>/g, '')
        .repeat(65)}</EventInfo>`,
      'e.xml:1: EventInfo has 65 events, at most 64 can be enabled',
    ],
  ])('reports the place of %s', (xml, message) => {
    const parse = () => parsed(xml, 'e.xml');
    expect(parse).toThrow(ConfigError);
    expect(parse).toThrow(message);
  });
});
