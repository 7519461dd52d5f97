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
 * Standard error. A file is written as it is: its position is shared with other programs that have it open. Pipes and terminals are opened
 * once more, so that a write to a reader that has stopped fails and does not wait; a socket cannot be reopened, Node.js makes it
 * non-blocking.
 */
export function standardError(): LogDescriptor {
  try {
    if (fs.fstatSync(2).isFile()) return { descriptor: 2, waits: 'file' };
    return { descriptor: fs.openSync('/proc/self/fd/2', ASKED), waits: 'never' };
  } catch {
    // Also if there is no /proc, the pipe belongs to another user, or its reader is gone.
    void process.stderr;
    return { descriptor: 2, waits: 'never' };
  }
}
