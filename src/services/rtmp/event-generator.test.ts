import { describe, expect, it } from 'vitest';
import { AmfObject } from '../../wire/rtmp/amf.ts';
import { eventsOf } from './event-generator.ts';

const CLICK = { name: 'onUserEvent', args: ['click', AmfObject.of({ button: 'ok', at: AmfObject.of({ x: 7 }), none: null })] };

describe('triggers', () => {
  const found = (trigger: string, message: typeof CLICK): string | null => {
    const wanted = { eventType: 'video', frameType: 'PRIV', info: 'owner', data: '${TriggerValue}' } as const;
    const [event] = eventsOf([{ trigger, hLSID3v2: wanted }], message, 0);
    return event === undefined ? null : (Buffer.from(event.data).toString('latin1').split('owner\0')[1] ?? null);
  };

  it.each([
    ['AMFDataMessage.onUserEvent.click.button', 'ok'],
    ['AMFDataMessage.onUserEvent.click.at.x', '7'],
    ['AMFDataMessage.onUserEvent.click', 'click'],
    ['AMFDataMessage.onUserEvent.tap.button', null],
    ['AMFDataMessage.onUserEvent.click.at', null],
    ['AMFDataMessage.onUserEvent.click.none', null],
    ['AMFDataMessage.onUserEvent.click.button.more', null],
    ['AMFDataMessage', null],
    ['Else.onUserEvent.click.button', null],
  ])('%s finds %s', (trigger, value) => {
    expect(found(trigger, CLICK)).toBe(value);
  });

  it('look inside @setDataFrame', () => {
    const message = { name: '@setDataFrame', args: ['onTextData', AmfObject.of({ text: 'hello' })] };
    expect(found('AMFDataMessage.onTextData.text', message)).toBe('hello');
  });
});

describe('events of a message', () => {
  const rule = (
    frameType: string,
    eventType: 'video' | 'audio' | 'event' | 'both' = 'video',
    trigger = 'AMFDataMessage.onUserEvent.click.button',
  ) => ({
    trigger,
    hLSID3v2: { eventType, frameType, info: 'was ${TriggerValue}', data: '<${TriggerValue}>' },
  });

  it('are tags with the value inside, one for each matching rule', () => {
    const rules = [
      rule('TXXX'),
      rule('priv', 'audio'),
      rule('TIT2', 'both'),
      rule('NONE'),
      rule('TXXX', 'video', 'AMFDataMessage.else'),
      { trigger: 'x' },
    ];
    const events = eventsOf(rules, CLICK, 2.5);
    expect(events.map(({ format, target, at }) => [format, target, at])).toEqual([
      ['id3v2', 'video', 2.5],
      ['id3v2', 'audio', 2.5],
      ['id3v2', 'all', 2.5],
    ]);
    const texts = events.map(({ data }) => Buffer.from(data).toString('latin1'));
    expect(texts[0]).toContain('TXXX\0\0\0\x0d\0\0\x03was ok\0<ok>\0');
    expect(texts[1]).toContain('PRIV');
    expect(texts[2]).toContain('TIT2');
  });

  it('insert a value literally, even with "$&" in it', () => {
    const message = { name: 'onUserEvent', args: ['click', AmfObject.of({ button: '$& $1 $$' })] };
    const [event] = eventsOf([rule('TXXX')], message, 0);
    expect(Buffer.from(event?.data ?? []).toString('latin1')).toContain('<$& $1 $$>');
  });

  it('cut a value to the room of an ID3 tag', () => {
    const message = { name: 'onUserEvent', args: ['click', AmfObject.of({ button: 'x'.repeat(1_000_000) })] };
    expect(eventsOf([rule('TXXX')], message, 0)[0]?.data.length).toBeLessThan(33_000);
  });
});
