/** Whether an SRT listener answers: a handshake that is begun and not gone on with, so that no connection comes of it. */
import { randomInt } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { isIPv6 } from 'node:net';
import type { Clock } from '../../util/clock.ts';
import { ProtocolError } from '../../util/protocol-error.ts';
import { answersInduction, inductionRequest } from '../../wire/srt/induction.ts';

const REPEAT_MS = 250;
const MAX_SOCKET_ID = 0x3fff_ffff;

/** The target of a probe. */
export interface SrtProbeOptions {
  /** An address, not a name. */
  readonly host: string;
  readonly port: number;
  /** For the whole of it, ms. */
  readonly timeout: number;
  readonly clock: Clock;
}

/** Round trip, ms; null: no answer in time, or none that can come. Never rejects. */
export async function probeSrt({ host, port, timeout, clock }: SrtProbeOptions): Promise<number | null> {
  const socket = createSocket(isIPv6(host) ? 'udp6' : 'udp4');
  const request = inductionRequest(randomInt(1, MAX_SOCKET_ID), host);
  const { promise, resolve } = Promise.withResolvers<number | null>();
  const began = clock.monotonic();
  const send = (): void => socket.send(request);
  const repeat = setInterval(send, REPEAT_MS);
  // Timers come first: an answer that waits in the socket of a busy process still counts.
  const end = setTimeout(() => setImmediate(resolve, null), timeout);
  socket.on('error', () => resolve(null));
  socket.on('message', (datagram) => {
    if (isAnswer(datagram)) resolve(clock.monotonic() - began);
  });
  // The socket is connected: datagrams of others do not come, and a closed port is an error at once.
  socket.connect(port, host, send);
  try {
    return await promise;
  } finally {
    clearInterval(repeat);
    clearTimeout(end);
    socket.close();
  }
}

function isAnswer(datagram: Uint8Array): boolean {
  try {
    return answersInduction(datagram);
  } catch (error) {
    if (error instanceof ProtocolError) return false;
    throw error;
  }
}
