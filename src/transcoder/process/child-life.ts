/**
 * Life of a process in this folder: it communicates with the server over descriptor 3 only. When that closes, or on any error, it exits at
 * once, because a hanging codec would block an orderly end.
 */
import { Socket } from 'node:net';

const SOCKET_DESCRIPTOR = 3;

/** The work of a process. */
export interface ChildWork {
  start(): void;
  /** Bytes from the server. */
  receive(chunk: Buffer): void;
}

/** Runs the work that `create` makes, until the server ends or disconnects. */
export function live(create: (socket: Socket) => ChildWork): void {
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
  const work = create(socket);
  socket.on('data', (chunk: Buffer) => work.receive(chunk));
  work.start();
}

function end(): void {
  process.kill(process.pid, 'SIGKILL');
}
