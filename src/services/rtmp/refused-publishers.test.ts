import { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { systemClock } from '../../util/clock.ts';
import { AmfObject } from '../../wire/rtmp/amf.ts';
import { ChunkWriter } from '../../wire/rtmp/chunk-writer.ts';
import { commandMessage } from '../../wire/rtmp/command.ts';
import { userControlMessage } from '../../wire/rtmp/control.ts';
import { ClientHandshake } from '../../wire/rtmp/handshake.ts';
import { UserControlEvent } from '../../wire/rtmp/message.ts';
import { RefusedPublishers } from './refused-publishers.ts';
import { DEFAULT_RTMP_LIMITS, DEFAULT_RTMP_TIMEOUTS } from './rtmp-options.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test('a silent connection is closed after the time that the server grants its peers', () => {
  const timeouts = { ...DEFAULT_RTMP_TIMEOUTS, refusal: 5000 };
  const refused = new RefusedPublishers({ limits: DEFAULT_RTMP_LIMITS, timeouts, clock: systemClock });
  const socket = new Socket();
  refused.answer(socket);
  vi.advanceTimersByTime(4999);
  expect(socket.destroyed).toBe(false);
  vi.advanceTimersByTime(1);
  expect(socket.destroyed).toBe(true);
});

test('data after the connect command is ignored, and the refusal is still sent', async () => {
  vi.useRealTimers();
  const written: Buffer[] = [];
  const stream = new Duplex({
    read: () => undefined,
    write: (chunk: Buffer, _encoding, done) => {
      written.push(chunk);
      done();
    },
  });
  const errors: unknown[] = [];
  stream.on('error', (error) => errors.push(error));
  const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  const refused = new RefusedPublishers({ limits: DEFAULT_RTMP_LIMITS, timeouts: DEFAULT_RTMP_TIMEOUTS, clock: systemClock });
  refused.answer(stream as unknown as Socket);
  const handshake = new ClientHandshake({ variant: 'simple' });
  stream.push(handshake.hello);
  await turn();
  const { reply } = handshake.push(Buffer.concat(written.splice(0)));
  const writer = new ChunkWriter();
  const connect = commandMessage({ name: 'connect', transactionId: 1, args: [AmfObject.of({ app: 'app' })] }, 0);
  const ping = userControlMessage(UserControlEvent.PING_REQUEST, 1);
  stream.push(Buffer.concat([reply ?? Buffer.alloc(0), writer.write(connect), writer.write(ping)]));
  await turn();
  expect(errors).toEqual([]);
  expect(stream.writableFinished).toBe(true);
  expect(Buffer.concat(written).toString('latin1')).toContain('NetConnection.Connect.Rejected');
  stream.destroy();
});
