/**
 * The program of a transcoder process. It speaks with the server over descriptor 3 and does nothing else; when that closes, or
 * anything goes wrong, it is gone at once: a codec that is stuck would hold up every gentler end.
 */
import { Socket } from 'node:net';
import { availableParallelism } from 'node:os';
import { systemClock } from '../../util/clock.ts';
import { TranscoderChild } from './transcoder-child.ts';

const SOCKET_DESCRIPTOR = 3;

function end(): void {
  process.kill(process.pid, 'SIGKILL');
}

// The server decides when to stop: Ctrl-C reaches the whole process group.
process.on('SIGINT', () => {});
process.on('SIGTERM', () => {});
process.on('SIGHUP', () => {});
process.on('uncaughtException', (error) => {
  process.stderr.write(`${error.stack ?? error.message}\n`, end);
});
process.on('unhandledRejection', (reason) => {
  process.stderr.write(`${reason instanceof Error ? (reason.stack ?? reason.message) : String(reason)}\n`, end);
});

const socket = new Socket({ fd: SOCKET_DESCRIPTOR, readable: true, writable: true });
socket.on('error', end);
socket.on('close', end);
socket.on('end', end);
const child = new TranscoderChild(socket, { clock: systemClock, cpus: availableParallelism() });
socket.on('data', (chunk: Buffer) => child.receive(chunk));
child.start();
