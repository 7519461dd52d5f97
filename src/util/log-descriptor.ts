/** Finds a way to write the log that never blocks. */
import fs from 'node:fs';

/** How to write to a descriptor: see `LogSinkOptions`. */
export interface LogDescriptor {
  readonly descriptor: number;
  readonly waits: 'never' | 'file';
}

/** Opened separately, so that other holders of the descriptor keep their blocking mode. */
const ASKED = fs.constants.O_WRONLY | fs.constants.O_NONBLOCK | fs.constants.O_NOCTTY;

/**
 * The descriptor of standard error. A file is written through the inherited descriptor, because its position is shared with other programs.
 * Pipes and terminals are opened again without blocking, so that a write fails instead of waiting for a reader that has stopped. A socket
 * cannot be opened again; Node.js makes it non-blocking.
 */
export function standardError(): LogDescriptor {
  try {
    if (fs.fstatSync(2).isFile()) return { descriptor: 2, waits: 'file' };
    return { descriptor: fs.openSync('/proc/self/fd/2', ASKED), waits: 'never' };
  } catch {
    // There may be no /proc, the pipe may belong to another user, or its reader may be gone.
    void process.stderr;
    return { descriptor: 2, waits: 'never' };
  }
}
