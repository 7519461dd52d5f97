import { expect, test, vi } from 'vitest';
import { ChunkReader, DEFAULT_CHUNK_READER_LIMITS } from './chunk-reader.ts';
import { ACKNOWLEDGEMENT_WINDOW, ConnectionControl } from './connection-control.ts';
import { controlMessage, parseControlValue, peerBandwidthMessage, userControlMessage } from './control.ts';
import { MessageType, PeerBandwidthLimit, type RtmpMessage, UserControlEvent } from './message.ts';

function setUp(): {
  readonly control: ConnectionControl;
  readonly reader: ChunkReader;
  readonly sent: RtmpMessage[];
  readonly read: (bytes: number) => void;
} {
  const sent: RtmpMessage[] = [];
  const reader = new ChunkReader({ onMessage: () => undefined, limits: DEFAULT_CHUNK_READER_LIMITS });
  const control = new ConnectionControl({ reader, send: (message) => sent.push(message) });
  const read = (bytes: number): void => {
    control.countBytes(bytes);
    control.acknowledge();
  };
  return { control, reader, sent, read };
}

test('more than half a window is acknowledged, once for each read', () => {
  const { control, sent, read } = setUp();
  const acknowledged = (): number[] => sent.splice(0).map((message) => parseControlValue(message));
  read(ACKNOWLEDGEMENT_WINDOW / 2);
  expect(acknowledged()).toEqual([]);
  read(1);
  expect(acknowledged()).toEqual([ACKNOWLEDGEMENT_WINDOW / 2 + 1]);
  control.receive(controlMessage(MessageType.WINDOW_ACK_SIZE, 100));
  read(50);
  read(1000);
  expect(acknowledged()).toEqual([control.bytesIn]);
  // A small window does not cause an acknowledgement for every byte.
  control.receive(controlMessage(MessageType.WINDOW_ACK_SIZE, 0));
  for (const bytes of [10, 0, 10]) read(bytes);
  expect(acknowledged()).toEqual([control.bytesIn - 10, control.bytesIn]);
  read(2 ** 32);
  expect(acknowledged()).toEqual([control.bytesIn - 2 ** 32]);
});

test('control messages are handled, pings are answered, and other messages are left to the session', () => {
  const { control, reader, sent } = setUp();
  const told = { chunkSize: vi.spyOn(reader, 'setChunkSize'), abort: vi.spyOn(reader, 'abort') };
  const taken = [
    controlMessage(MessageType.SET_CHUNK_SIZE, 4096),
    controlMessage(MessageType.ABORT, 4),
    controlMessage(MessageType.ACKNOWLEDGEMENT, 5),
    peerBandwidthMessage(6, PeerBandwidthLimit.DYNAMIC),
    userControlMessage(UserControlEvent.STREAM_BEGIN, 1),
    userControlMessage(UserControlEvent.PING_REQUEST, 77),
  ];
  expect(taken.map((message) => control.receive(message))).toEqual(taken.map(() => true));
  expect(told.chunkSize.mock.calls).toEqual([[4096]]);
  expect(told.abort.mock.calls).toEqual([[4]]);
  expect(sent).toEqual([userControlMessage(UserControlEvent.PING_RESPONSE, 77)]);
  for (const typeId of [MessageType.VIDEO, MessageType.COMMAND_AMF0, 99]) {
    expect(control.receive({ ...controlMessage(typeId, 1) })).toBe(false);
  }
  expect(sent).toHaveLength(1);
});
