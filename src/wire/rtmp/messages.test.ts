import { describe, expect, test } from 'vitest';
import { codeOf } from '../../../test/support/error-code.ts';
import { ProtocolError } from '../../util/protocol-error.ts';
import { MAX_AGGREGATE_MESSAGES, readAggregate } from './aggregate.ts';
import { AmfObject } from './amf.ts';
import { serializeAmf0 } from './amf0.ts';
import { commandMessage, dataMessage, parseCommand, parseDataEvent } from './command.ts';
import { controlMessage, parseControlValue, parseUserControl, peerBandwidthMessage, userControlMessage } from './control.ts';
import { MessageType, PeerBandwidthLimit, type RtmpMessage, UserControlEvent } from './message.ts';
import { formatRtmpUrl, parseRtmpUrl, parseStreamKey } from './rtmp-url.ts';

const AT = { chunkStreamId: 4, streamId: 1, timestamp: 100 };

describe('control messages', () => {
  test('carry one number', () => {
    const message = controlMessage(MessageType.SET_CHUNK_SIZE, 4096);
    expect(message).toMatchObject({ chunkStreamId: 2, streamId: 0, typeId: 1 });
    expect(Buffer.from(message.payload).toString('hex')).toBe('00001000');
    expect(parseControlValue(message)).toBe(4096);
  });

  test('SetPeerBandwidth adds the limit type', () => {
    const message = peerBandwidthMessage(2_500_000, PeerBandwidthLimit.DYNAMIC);
    expect(Buffer.from(message.payload).toString('hex')).toBe('002625a002');
  });

  test('user control events have a type and values', () => {
    const message = userControlMessage(UserControlEvent.SET_BUFFER_LENGTH, 1, 3000);
    expect(Buffer.from(message.payload).toString('hex')).toBe('00030000000100000bb8');
    expect(parseUserControl(message)).toEqual({ event: 3, value: 1 });
    expect(parseUserControl(userControlMessage(UserControlEvent.PING_REQUEST))).toEqual({ event: 6, value: 0 });
  });

  test('truncated messages are refused', () => {
    for (let length = 0; length < 4; length += 1) {
      const message = { ...AT, typeId: MessageType.SET_CHUNK_SIZE, payload: Buffer.alloc(length) };
      expect(() => parseControlValue(message)).toThrow(ProtocolError);
      if (length < 2) expect(() => parseUserControl(message)).toThrow(ProtocolError);
    }
  });
});

describe('commands', () => {
  const command = { name: 'publish', transactionId: 5, args: [null, 'stream', 'live'] };

  test('survive the round trip', () => {
    expect(parseCommand(commandMessage(command, 1))).toEqual(command);
  });

  test('of the AMF3 type have a format selector in front, which some clients omit', () => {
    const amf0 = serializeAmf0([command.name, command.transactionId, ...command.args]);
    for (const payload of [Buffer.concat([Buffer.from([0]), amf0]), amf0]) {
      expect(parseCommand({ ...AT, typeId: MessageType.COMMAND_AMF3, payload })).toEqual(command);
    }
  });

  test('may switch to AMF3 inside', () => {
    const payload = Buffer.concat([Buffer.from([0]), serializeAmf0(['connect', 1]), Buffer.from('110a0b010761707006096c69766501', 'hex')]);
    const { args } = parseCommand({ ...AT, typeId: MessageType.COMMAND_AMF3, payload });
    expect(args).toEqual([AmfObject.of({ app: 'live' })]);
  });

  test.each([[[]], [[1]], [[null, 'connect']]])('without a name are refused: %j', (values) => {
    expect(() => parseCommand({ ...AT, typeId: MessageType.COMMAND_AMF0, payload: serializeAmf0(values) })).toThrow(ProtocolError);
  });

  test('data messages carry a name and values', () => {
    const event = { name: '@setDataFrame', args: ['onMetaData', new AmfObject([['width', 640]], 'ecma-array')] };
    const message = dataMessage(event, AT);
    expect(message.typeId).toBe(MessageType.DATA_AMF0);
    expect(parseDataEvent(message)).toEqual(event);
    expect(() => parseDataEvent({ ...message, payload: serializeAmf0([null]) })).toThrow(ProtocolError);
  });
});

describe('aggregates', () => {
  function inner(typeId: number, timestamp: number, body: string): Buffer {
    const bytes = Buffer.from(body, 'hex');
    const header = Buffer.alloc(11);
    header.writeUInt8(typeId, 0);
    header.writeUIntBE(bytes.length, 1, 3);
    header.writeUIntBE(timestamp & 0xff_ffff, 4, 3);
    header.writeUInt8(timestamp >>> 24, 7);
    const back = Buffer.alloc(4);
    back.writeUInt32BE(11 + bytes.length);
    return Buffer.concat([header, bytes, back]);
  }
  const payload = Buffer.concat([inner(8, 0xffff_fff0, 'aa'), inner(9, 0x10, 'bbcc'), inner(8, 0x20, '')]);
  const aggregate = { ...AT, typeId: MessageType.AGGREGATE, payload };

  function messagesOf(message: RtmpMessage): RtmpMessage[] {
    const messages: RtmpMessage[] = [];
    readAggregate(message, (found) => messages.push(found));
    return messages;
  }

  test('are split, the first message at the time of the aggregate', () => {
    const messages = messagesOf(aggregate).map((m) => [m.typeId, m.streamId, m.timestamp, Buffer.from(m.payload).toString('hex')]);
    expect(messages).toEqual([
      [8, 1, 100, 'aa'],
      [9, 1, 132, 'bbcc'],
      [8, 1, 148, ''],
    ]);
  });

  test('ended at every byte give a prefix or a ProtocolError', () => {
    for (let end = 0; end < payload.length; end += 1) {
      try {
        const messages = messagesOf({ ...aggregate, payload: payload.subarray(0, end) });
        expect(messages.length).toBeLessThanOrEqual(3);
      } catch (error) {
        expect(error).toBeInstanceOf(ProtocolError);
      }
    }
  });
});

describe('aggregates of very many messages', () => {
  const one = Buffer.from('08 000001 000000 00 000000 ff 0000000c'.replaceAll(' ', ''), 'hex');

  test('are read one message at a time, and not beyond the limit', () => {
    const payload = Buffer.concat(Array.from({ length: MAX_AGGREGATE_MESSAGES + 1 }, () => one));
    const message = { ...AT, typeId: MessageType.AGGREGATE, payload };
    let read = 0;
    const count = (): void => {
      read += 1;
    };
    expect(codeOf(() => readAggregate(message, count))).toBe('RTMP_AGGREGATE');
    expect(read).toBe(MAX_AGGREGATE_MESSAGES);
    readAggregate({ ...message, payload: payload.subarray(one.length) }, count);
    expect(read).toBe(2 * MAX_AGGREGATE_MESSAGES);
  });

  test('are left at the first message that their reader refuses', () => {
    const message = { ...AT, typeId: MessageType.AGGREGATE, payload: Buffer.concat([one, one, one]) };
    let read = 0;
    const refuse = (): void => {
      read += 1;
      throw new ProtocolError('REFUSED', 'no more');
    };
    expect(codeOf(() => readAggregate(message, refuse))).toBe('REFUSED');
    expect(read).toBe(1);
  });
});

describe('URLs', () => {
  const url = { scheme: 'rtmp', host: 'media.example', port: 0, app: 'live', stream: '', query: '' };

  test.each([
    { text: 'rtmp://media.example/live', parsed: url },
    { text: 'RTMPS://media.example:443/live/', parsed: { ...url, scheme: 'rtmps', port: 443 } },
    { text: 'rtmp://media.example/live/stream', parsed: { ...url, stream: 'stream' } },
    { text: 'rtmp://media.example/live/stream/deeper?a=1&b=2', parsed: { ...url, stream: 'stream', query: 'a=1&b=2' } },
    { text: 'rtmp://media.example/live?a=1?b=2', parsed: { ...url, query: 'a=1' } },
    { text: 'rtmp://[2001:db8::1]:1935/live', parsed: { ...url, host: '[2001:db8::1]', port: 1935 } },
    { text: 'rtmp://user:secret@media.example/live', parsed: url },
    { text: 'rtmp:///live', parsed: { ...url, host: '' } },
    { text: 'rtmp://media.example', parsed: { ...url, app: '' } },
    { text: 'rtmp://media.example:70000/live', parsed: null },
    { text: 'media.example/live', parsed: null },
    { text: '', parsed: null },
  ])('reads $text', ({ text, parsed }) => {
    expect(parseRtmpUrl(text)).toEqual(parsed);
  });

  test.each(['rtmp://media.example/live', 'rtmp://h:1935/app/stream?a=1', 'rtmps://[::1]:443/app?x'])('round-trips %s', (text) => {
    expect(formatRtmpUrl(parseRtmpUrl(text)!)).toBe(text);
  });

  test.each([
    { key: 'stream', parts: { name: 'stream', query: '' } },
    { key: 'stream?a=1&b', parts: { name: 'stream', query: 'a=1&b' } },
    { key: 'stream?a=1?b=2', parts: { name: 'stream', query: 'a=1' } },
    { key: '?a=1', parts: { name: '', query: 'a=1' } },
    { key: '', parts: { name: '', query: '' } },
  ])('splits the stream key "$key"', ({ key, parts }) => {
    expect(parseStreamKey(key)).toEqual(parts);
  });
});
